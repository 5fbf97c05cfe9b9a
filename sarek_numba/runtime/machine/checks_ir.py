"""The launcher's text, first part: guards and checks of arguments; see `launch_ir`."""

from __future__ import annotations

OBJECTS = {
    "object.true": True,
    "object.false": False,
    "object.none": None,
    "object.exception": Exception,
    "object.name.array": "_array",
    "object.name.storage": "_storage",
    "object.name.lock": "lock",
    "object.name.ready": "ready",
    "object.name.acquire": "acquire",
    "object.name.release": "release",
}
"""Objects of Python that the text names; each process tells their addresses."""

DECLARATIONS = """
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare ptr @PyCell_Get(ptr)
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare ptr @PyObject_CallNoArgs(ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_CallMethodObjArgs(ptr, ptr, ...)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyBytes_FromStringAndSize(ptr, i64)
declare ptr @PyErr_Occurred()
declare i32 @PyErr_ExceptionMatches(ptr)
declare void @PyErr_Clear()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare double @llvm.fabs.f64(double)

@object.name.array = global ptr null
@object.true = global ptr null
@object.name.storage = global ptr null
@object.name.lock = global ptr null
@object.name.release = global ptr null
@object.name.ready = global ptr null
@object.name.acquire = global ptr null
@object.false = global ptr null
@object.none = global ptr null
@object.exception = global ptr null
"""

CHECKS = """
; --- guards ---------------------------------------------------------------------------------------

define internal i1 @holds(ptr %guard, ptr %slot) {
entry:
  %kind = load i64, ptr %guard
  %container.at = getelementptr i64, ptr %guard, i64 1
  %container = load ptr, ptr %container.at
  %key.at = getelementptr i64, ptr %guard, i64 2
  %key = load ptr, ptr %key.at
  %expected.at = getelementptr i64, ptr %guard, i64 3
  %expected = load ptr, ptr %expected.at
  switch i64 %kind, label %call [ i64 0, label %item  i64 1, label %cell  i64 2, label %context ]
item:
  %borrowed = call ptr @PyDict_GetItemWithError(ptr %container, ptr %key)
  %item.holds = icmp eq ptr %borrowed, %expected
  ret i1 %item.holds
cell:
  %content = call ptr @PyCell_Get(ptr %container)
  br label %owned
context:
  store ptr null, ptr %slot
  %status = call i32 @PyContextVar_Get(ptr %container, ptr null, ptr %slot)
  %value = load ptr, ptr %slot
  br label %owned
call:
  %answer = call ptr @PyObject_CallNoArgs(ptr %container)
  br label %owned
owned:
  %found = phi ptr [ %content, %cell ], [ %value, %context ], [ %answer, %call ]
  %holds = icmp eq ptr %found, %expected
  call void @Py_DecRef(ptr %found)
  ret i1 %holds
}

; --- arguments: record is start, end, elements, extents, strides, bytes from start to element 0; of
; a number its bits are first, those of an imaginary part next ------------------------------------

define internal i1 @strided(ptr %check, i64 %origin, ptr %extents, ptr %strides, ptr %record) {
entry:
  %ndim.at = getelementptr i64, ptr %check, i64 3
  %ndim = load i64, ptr %ndim.at
  %flags.at = getelementptr i64, ptr %check, i64 4
  %flags = load i64, ptr %flags.at
  %written.bits = lshr i64 %flags, 32
  %written = icmp ne i64 %written.bits, 0
  %itemsize.at = getelementptr i64, ptr %check, i64 7
  %itemsize = load i64, ptr %itemsize.at
  %first.end = add i64 %origin, %itemsize
  br label %axis
axis:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %start = phi i64 [ %origin, %entry ], [ %start.next, %next ]
  %end = phi i64 [ %first.end, %entry ], [ %end.next, %next ]
  %left = icmp slt i64 %k, %ndim
  br i1 %left, label %look, label %spanned
look:
  %extent.at = getelementptr i64, ptr %extents, i64 %k
  %extent = load i64, ptr %extent.at
  %stride.at = getelementptr i64, ptr %strides, i64 %k
  %stride = load i64, ptr %stride.at
  %several = icmp sgt i64 %extent, 1
  br i1 %several, label %step, label %next
step:
  %beyond = srem i64 %stride, %itemsize
  %is.whole = icmp eq i64 %beyond, 0
  br i1 %is.whole, label %apart, label %no
apart:
  %repeats = icmp eq i64 %stride, 0
  %is.bad = and i1 %repeats, %written
  br i1 %is.bad, label %no, label %move
move:
  %steps = sub i64 %extent, 1
  %distance = mul i64 %stride, %steps
  %is.up = icmp sgt i64 %stride, 0
  %up = select i1 %is.up, i64 %distance, i64 0
  %down = select i1 %is.up, i64 0, i64 %distance
  %moved.end = add i64 %end, %up
  %moved.start = add i64 %start, %down
  br label %next
next:
  %start.next = phi i64 [ %start, %look ], [ %moved.start, %move ]
  %end.next = phi i64 [ %end, %look ], [ %moved.end, %move ]
  %k.next = add i64 %k, 1
  br label %axis
spanned:
  %span = sub i64 %end, %start
  %most.at = getelementptr i64, ptr %check, i64 6
  %most = load i64, ptr %most.at
  %is.short = icmp ule i64 %span, %most
  br i1 %is.short, label %yes, label %no
yes:
  store i64 %start, ptr %record
  %end.at = getelementptr i64, ptr %record, i64 1
  store i64 %end, ptr %end.at
  %offset = sub i64 %origin, %start
  %offset.at = getelementptr i64, ptr %record, i64 5
  store i64 %offset, ptr %offset.at
  ret i1 true
no:
  ret i1 false
}

define internal i1 @array(ptr %check, ptr %array, ptr %record) {
entry:
  %dtype.at = getelementptr i8, ptr %array, i64 $DTYPE
  %dtype = load ptr, ptr %dtype.at
  %wanted.at = getelementptr i64, ptr %check, i64 2
  %wanted = load ptr, ptr %wanted.at
  %is.dtype = icmp eq ptr %dtype, %wanted
  br i1 %is.dtype, label %axes, label %no
axes:
  %ndim.at = getelementptr i8, ptr %array, i64 $NDIM
  %ndim.32 = load i32, ptr %ndim.at
  %ndim = sext i32 %ndim.32 to i64
  %wanted.ndim.at = getelementptr i64, ptr %check, i64 3
  %wanted.ndim = load i64, ptr %wanted.ndim.at
  %is.ndim = icmp eq i64 %ndim, %wanted.ndim
  br i1 %is.ndim, label %flagged, label %no
flagged:
  %flags.at = getelementptr i8, ptr %array, i64 $FLAGS
  %flags = load i32, ptr %flags.at
  %flags.kept = and i32 %flags, $FLAG_MASK
  %wanted.flags.at = getelementptr i64, ptr %check, i64 4
  %wanted.flags.64 = load i64, ptr %wanted.flags.at
  %wanted.flags = trunc i64 %wanted.flags.64 to i32
  %is.flags = icmp eq i32 %flags.kept, %wanted.flags
  br i1 %is.flags, label %aligned, label %no
aligned:
  %data.at = getelementptr i8, ptr %array, i64 $DATA
  %start = load i64, ptr %data.at
  %mask.at = getelementptr i64, ptr %check, i64 5
  %mask = load i64, ptr %mask.at
  %beyond = and i64 %start, %mask
  %is.aligned = icmp eq i64 %beyond, 0
  br i1 %is.aligned, label %sized, label %no
sized:
  %extents.at = getelementptr i8, ptr %array, i64 $EXTENTS
  %extents = load ptr, ptr %extents.at
  %strides.at = getelementptr i8, ptr %array, i64 $STRIDES
  %strides = load ptr, ptr %strides.at
  br label %axis
axis:
  %k = phi i64 [ 0, %sized ], [ %k.next, %multiply ]
  %elements = phi i64 [ 1, %sized ], [ %product, %multiply ]
  %left = icmp slt i64 %k, %ndim
  br i1 %left, label %multiply, label %counted
multiply:
  %extent.at = getelementptr i64, ptr %extents, i64 %k
  %extent = load i64, ptr %extent.at
  %product = mul i64 %elements, %extent
  %k.next = add i64 %k, 1
  br label %axis
counted:
  %itemsize.at = getelementptr i64, ptr %check, i64 7
  %itemsize = load i64, ptr %itemsize.at
  %bytes = mul i64 %elements, %itemsize
  %most.at = getelementptr i64, ptr %check, i64 6
  %most = load i64, ptr %most.at
  %is.short = icmp ule i64 %bytes, %most
  br i1 %is.short, label %yes, label %no
yes:
  %elements.at = getelementptr i64, ptr %record, i64 2
  store i64 %elements, ptr %elements.at
  %kept.extents.at = getelementptr i64, ptr %record, i64 3
  store ptr %extents, ptr %kept.extents.at
  %kept.strides.at = getelementptr i64, ptr %record, i64 4
  store ptr %strides, ptr %kept.strides.at
  %whole.flags = and i32 %wanted.flags, $CONTIGUOUS
  %is.strided = icmp eq i32 %whole.flags, 0
  br i1 %is.strided, label %gaps, label %whole
gaps:
  %is.within = call i1 @strided(
    ptr %check, i64 %start, ptr %extents, ptr %strides, ptr %record)
  ret i1 %is.within
whole:
  %end = add i64 %start, %bytes
  store i64 %start, ptr %record
  %end.at = getelementptr i64, ptr %record, i64 1
  store i64 %end, ptr %end.at
  ret i1 true
no:
  ret i1 false
}

define internal i1 @is_narrow(double %real) {
entry:
  %size = call double @llvm.fabs.f64(double %real)
  %small = fcmp ult double %size, 0x47EFFFFFF0000000
  %infinite = fcmp oeq double %size, 0x7FF0000000000000
  %finite = or i1 %small, %infinite
  ret i1 %finite
}

define internal i1 @argument(ptr %check, ptr %object, ptr %record, ptr %slot) {
entry:
  %kind = load i64, ptr %check
  %type.at = getelementptr i64, ptr %check, i64 1
  %wanted = load ptr, ptr %type.at
  %is.same = icmp eq i64 %kind, 5
  br i1 %is.same, label %same, label %typed
same:
  %is.object = icmp eq ptr %object, %wanted
  ret i1 %is.object
typed:
  %object.type.at = getelementptr i8, ptr %object, i64 $TYPE
  %type = load ptr, ptr %object.type.at
  %is.type = icmp eq ptr %type, %wanted
  br i1 %is.type, label %kinds, label %no
kinds:
  switch i64 %kind, label %bool [ i64 0, label %array  i64 1, label %vector  i64 2, label %int
    i64 3, label %float  i64 4, label %scalar  i64 7, label %complex  i64 8, label %halves
    i64 9, label %wide ]
array:
  %is.array = call i1 @array(ptr %check, ptr %object, ptr %record)
  ret i1 %is.array
vector:
  %object.0 = load ptr, ptr @object.name.array
  %elements = call ptr @PyObject_GetAttr(ptr %object, ptr %object.0)
  %has.elements = icmp ne ptr %elements, null
  br i1 %has.elements, label %described, label %no
described:
  call void @Py_DecRef(ptr %elements)
  %is.vector = call i1 @array(ptr %check, ptr %elements, ptr %record)
  ret i1 %is.vector
int:
  store i32 0, ptr %slot
  %whole = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %slot)
  %overflow = load i32, ptr %slot
  %least.at = getelementptr i64, ptr %check, i64 2
  %least = load i64, ptr %least.at
  %most.at = getelementptr i64, ptr %check, i64 3
  %most = load i64, ptr %most.at
  %within = icmp eq i32 %overflow, 0
  %above = icmp sge i64 %whole, %least
  %below = icmp sle i64 %whole, %most
  %between = and i1 %above, %below
  %fits = and i1 %within, %between
  store i64 %whole, ptr %record
  ret i1 %fits
float:
  %real = call double @PyFloat_AsDouble(ptr %object)
  store double %real, ptr %record
  %narrow.at = getelementptr i64, ptr %check, i64 2
  %narrow = load i64, ptr %narrow.at
  %any = icmp eq i64 %narrow, 0
  %finite = call i1 @is_narrow(double %real)
  %passes = or i1 %any, %finite
  ret i1 %passes
scalar:
  %value.at = getelementptr i8, ptr %object, i64 $SCALAR
  %bits = load i64, ptr %value.at
  store i64 %bits, ptr %record
  ret i1 true
complex:
  %parts.at = getelementptr i8, ptr %object, i64 $COMPLEX
  %first = load double, ptr %parts.at
  %second.at = getelementptr double, ptr %parts.at, i64 1
  %second = load double, ptr %second.at
  store double %first, ptr %record
  %second.kept = getelementptr double, ptr %record, i64 1
  store double %second, ptr %second.kept
  %narrowed.at = getelementptr i64, ptr %check, i64 2
  %narrowed = load i64, ptr %narrowed.at
  %anything = icmp eq i64 %narrowed, 0
  %first.fits = call i1 @is_narrow(double %first)
  %second.fits = call i1 @is_narrow(double %second)
  %both.fit = and i1 %first.fits, %second.fits
  %takes = or i1 %anything, %both.fit
  ret i1 %takes
halves:
  %pair.at = getelementptr i8, ptr %object, i64 $SCALAR
  %pair = load i64, ptr %pair.at
  %pair.second = lshr i64 %pair, 32
  store i64 %pair, ptr %record
  %pair.second.kept = getelementptr i64, ptr %record, i64 1
  store i64 %pair.second, ptr %pair.second.kept
  ret i1 true
wide:
  %wide.at = getelementptr i8, ptr %object, i64 $SCALAR
  %wide.first = load i64, ptr %wide.at
  %wide.second.at = getelementptr i64, ptr %wide.at, i64 1
  %wide.second = load i64, ptr %wide.second.at
  store i64 %wide.first, ptr %record
  %wide.second.kept = getelementptr i64, ptr %record, i64 1
  store i64 %wide.second, ptr %wide.second.kept
  ret i1 true
bool:
  %object.1 = load ptr, ptr @object.true
  %truth = icmp eq ptr %object, %object.1
  %one = zext i1 %truth to i64
  store i64 %one, ptr %record
  ret i1 true
no:
  ret i1 false
}
"""
