"""The launcher: one function of machine code that CPython calls for a launch.

    PyObject *launch(PyObject *table, PyObject *const *arguments, Py_ssize_t count)

follows the table (`launcher` has its layout) in place of Python code: guards, a check for each
argument, overlaps, parameters, and the kernel itself, without the GIL. It gives None after the
launch; False, with nothing done, if something is not as the table says; and the parameters as
bytes, with what the table calls `first` blocks done, if the rest is worth waking other threads for.
Behind the parameters stand the serial numbers of the vectors' memory, whose locks are held then.

`$…` stand for numbers of this process: offsets in objects of CPython and NumPy, addresses of
objects. All functions of CPython are called with the GIL.
"""

from __future__ import annotations

TEXT = """
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
declare i32 @clock_gettime(i32, ptr)
declare double @llvm.fabs.f64(double)

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
  %elements = call ptr @PyObject_GetAttr(ptr %object, ptr inttoptr (i64 $NAME_ARRAY to ptr))
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
  %truth = icmp eq ptr %object, inttoptr (i64 $TRUE to ptr)
  %one = zext i1 %truth to i64
  store i64 %one, ptr %record
  ret i1 true
no:
  ret i1 false
}

; --- whether arrays share no bytes, or, unless `apart`, start together ----------------------------

define internal i1 @separate(ptr %table, ptr %records) {
entry:
  %count.at = getelementptr i64, ptr %table, i64 1
  %count = load i64, ptr %count.at
  %arrays.at = getelementptr i64, ptr %table, i64 10
  %list.offset = load i64, ptr %arrays.at
  %list = getelementptr i64, ptr %table, i64 %list.offset
  %arrays = load i64, ptr %list
  %apart.at = getelementptr i64, ptr %table, i64 9
  %apart.word = load i64, ptr %apart.at
  %apart = icmp ne i64 %apart.word, 0
  br label %outer
outer:
  %i = phi i64 [ 1, %entry ], [ %i.next, %outer.next ]
  %outer.left = icmp sle i64 %i, %arrays
  br i1 %outer.left, label %first, label %yes
first:
  %i.at = getelementptr i64, ptr %list, i64 %i
  %i.record = load i64, ptr %i.at
  %one = getelementptr i64, ptr %records, i64 %i.record
  %start = load i64, ptr %one
  %end.at = getelementptr i64, ptr %one, i64 1
  %end = load i64, ptr %end.at
  br label %inner
inner:
  %j = phi i64 [ 1, %first ], [ %j.next, %inner.next ]
  %inner.left = icmp slt i64 %j, %i
  br i1 %inner.left, label %second, label %outer.next
second:
  %j.at = getelementptr i64, ptr %list, i64 %j
  %j.record = load i64, ptr %j.at
  %other = getelementptr i64, ptr %records, i64 %j.record
  %other.start = load i64, ptr %other
  %other.end.at = getelementptr i64, ptr %other, i64 1
  %other.end = load i64, ptr %other.end.at
  %later = icmp ugt i64 %start, %other.start
  %from = select i1 %later, i64 %start, i64 %other.start
  %sooner = icmp ult i64 %end, %other.end
  %to = select i1 %sooner, i64 %end, i64 %other.end
  %shares = icmp ult i64 %from, %to
  %differ = icmp ne i64 %start, %other.start
  %counts = or i1 %differ, %apart
  %clash = and i1 %shares, %counts
  br i1 %clash, label %no, label %inner.next
inner.next:
  %j.next = add i64 %j, 1
  br label %inner
outer.next:
  %i.next = add i64 %i, 1
  br label %outer
yes:
  ret i1 true
no:
  ret i1 false
}

; --- the parameters of the kernel -----------------------------------------------------------------

define internal i1 @parameter(ptr %fill, ptr %records, ptr %to) {
entry:
  %kind = load i64, ptr %fill
  %record.at = getelementptr i64, ptr %fill, i64 1
  %record.offset = load i64, ptr %record.at
  %record = getelementptr i64, ptr %records, i64 %record.offset
  %axis.at = getelementptr i64, ptr %fill, i64 2
  %axis = load i64, ptr %axis.at
  %extra.at = getelementptr i64, ptr %fill, i64 3
  %extra = load i64, ptr %extra.at
  %word = load i64, ptr %record
  switch i64 %kind, label %fixed [ i64 0, label %plain  i64 1, label %int.single
    i64 2, label %int.double  i64 3, label %float.single  i64 4, label %length
    i64 5, label %extent  i64 6, label %stride  i64 8, label %offset ]
plain:
  store i64 %word, ptr %to
  ret i1 true
int.single:
  %wide = sitofp i64 %word to double
  %single = fptrunc double %wide to float
  store float %single, ptr %to
  ret i1 true
int.double:
  %double = sitofp i64 %word to double
  store double %double, ptr %to
  ret i1 true
float.single:
  %real = bitcast i64 %word to double
  %rounded = fptrunc double %real to float
  store float %rounded, ptr %to
  ret i1 true
length:
  %elements.at = getelementptr i64, ptr %record, i64 2
  %elements = load i64, ptr %elements.at
  br label %whole
extent:
  %extents.at = getelementptr i64, ptr %record, i64 3
  %extents = load ptr, ptr %extents.at
  %extent.at = getelementptr i64, ptr %extents, i64 %axis
  %extent.value = load i64, ptr %extent.at
  br label %whole
stride:
  %extents.of.at = getelementptr i64, ptr %record, i64 3
  %extents.of = load ptr, ptr %extents.of.at
  %extent.of.at = getelementptr i64, ptr %extents.of, i64 %axis
  %extent.of = load i64, ptr %extent.of.at
  %strides.at = getelementptr i64, ptr %record, i64 4
  %strides = load ptr, ptr %strides.at
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %stride.bytes = load i64, ptr %stride.at
  %steps = sdiv i64 %stride.bytes, %extra
  %several = icmp sgt i64 %extent.of, 1
  %stride.value = select i1 %several, i64 %steps, i64 0
  br label %whole
offset:
  %offset.at = getelementptr i64, ptr %record, i64 5
  %offset.bytes = load i64, ptr %offset.at
  %offset.value = sdiv i64 %offset.bytes, %extra
  br label %whole
whole:
  %number = phi i64 [ %elements, %length ], [ %extent.value, %extent ],
    [ %stride.value, %stride ], [ %offset.value, %offset ]
  store i64 %number, ptr %to
  %short = trunc i64 %number to i32
  %long = sext i32 %short to i64
  %fits = icmp eq i64 %long, %number
  ret i1 %fits
fixed:
  store i64 %extra, ptr %to
  ret i1 true
}

; --- vectors: that nobody uses, and whose `ready` has the key of the table, or any; their serials -

define internal void @end_vectors(ptr %list, ptr %arguments, i64 %count) {
entry:
  br label %next
next:
  %k = phi i64 [ %count, %entry ], [ %k.less, %one ]
  %left = icmp sgt i64 %k, 0
  br i1 %left, label %one, label %done
one:
  %k.less = sub i64 %k, 1
  %word = mul i64 %k.less, 2
  %entry.at = getelementptr i64, ptr %list, i64 %word
  %at = getelementptr i64, ptr %entry.at, i64 1
  %position = load i64, ptr %at
  %object.at = getelementptr ptr, ptr %arguments, i64 %position
  %object = load ptr, ptr %object.at
  %storage = call ptr @PyObject_GetAttr(ptr %object, ptr inttoptr (i64 $NAME_STORAGE to ptr))
  %lock = call ptr @PyObject_GetAttr(ptr %storage, ptr inttoptr (i64 $NAME_LOCK to ptr))
  %answer = call ptr (ptr, ptr, ...) @PyObject_CallMethodObjArgs(
    ptr %lock, ptr inttoptr (i64 $NAME_RELEASE to ptr), ptr null)
  call void @Py_DecRef(ptr %answer)
  call void @Py_DecRef(ptr %lock)
  call void @Py_DecRef(ptr %storage)
  br label %next
done:
  ret void
}

define internal i1 @begin_vectors(ptr %list, ptr %arguments, ptr %serials, ptr %slot, i64 %any) {
entry:
  %count = load i64, ptr %list
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %begun ]
  %left = icmp slt i64 %k, %count
  br i1 %left, label %one, label %yes
one:
  %word = mul i64 %k, 2
  %entry.at = getelementptr i64, ptr %list, i64 %word
  %at = getelementptr i64, ptr %entry.at, i64 1
  %position = load i64, ptr %at
  %key.at = getelementptr i64, ptr %entry.at, i64 2
  %key = load ptr, ptr %key.at
  %object.at = getelementptr ptr, ptr %arguments, i64 %position
  %object = load ptr, ptr %object.at
  %storage = call ptr @PyObject_GetAttr(ptr %object, ptr inttoptr (i64 $NAME_STORAGE to ptr))
  %has.storage = icmp ne ptr %storage, null
  br i1 %has.storage, label %ask, label %no
ask:
  %lock = call ptr @PyObject_GetAttr(ptr %storage, ptr inttoptr (i64 $NAME_LOCK to ptr))
  %ready = call ptr @PyObject_GetAttr(ptr %storage, ptr inttoptr (i64 $NAME_READY to ptr))
  call void @Py_DecRef(ptr %storage)
  %answer = call ptr (ptr, ptr, ...) @PyObject_CallMethodObjArgs(
    ptr %lock, ptr inttoptr (i64 $NAME_ACQUIRE to ptr),
    ptr inttoptr (i64 $FALSE to ptr), ptr null)
  call void @Py_DecRef(ptr %answer)
  call void @Py_DecRef(ptr %lock)
  call void @Py_DecRef(ptr %ready)
  %is.ours = icmp eq ptr %answer, inttoptr (i64 $TRUE to ptr)
  br i1 %is.ours, label %look, label %no
look:
  %k.next = add i64 %k, 1
  %serial.object = call ptr @PyDict_GetItemWithError(ptr %ready, ptr %key)
  %is.ready = icmp ne ptr %serial.object, null
  br i1 %is.ready, label %known, label %unknown
known:
  %serial.known = call i64 @PyLong_AsLongLongAndOverflow(ptr %serial.object, ptr %slot)
  br label %begun
unknown:
  %is.strict = icmp eq i64 %any, 0
  br i1 %is.strict, label %not.ready, label %begun
begun:
  %serial = phi i64 [ %serial.known, %known ], [ 0, %unknown ]
  %serial.at = getelementptr i64, ptr %serials, i64 %k
  store i64 %serial, ptr %serial.at
  br label %next
not.ready:
  call void @end_vectors(ptr %list, ptr %arguments, i64 %k.next)
  ret i1 false
no:
  call void @end_vectors(ptr %list, ptr %arguments, i64 %k)
  ret i1 false
yes:
  ret i1 true
}

; --- running: true if all blocks are done ---------------------------------------------------------

define internal i64 @now(ptr %time) {
  %status = call i32 @clock_gettime(i32 $CLOCK, ptr %time)
  %seconds = load i64, ptr %time
  %nanoseconds.at = getelementptr i64, ptr %time, i64 1
  %nanoseconds = load i64, ptr %nanoseconds.at
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %nanoseconds
  ret i64 %sum
}

define internal i1 @run(ptr %table, ptr %parameters) {
entry:
  %time = alloca [2 x i64]
  %blocks.at = getelementptr i64, ptr %table, i64 4
  %blocks = load i64, ptr %blocks.at
  %first.at = getelementptr i64, ptr %table, i64 5
  %first = load i64, ptr %first.at
  %launch = getelementptr i64, ptr %table, i64 16
  %nothing = icmp eq i64 %first, 0
  br i1 %nothing, label %rest, label %prepare
prepare:
  %kernel.at = getelementptr i64, ptr %table, i64 3
  %kernel = load ptr, ptr %kernel.at
  %size.at = getelementptr i64, ptr %table, i64 6
  %size = load i64, ptr %size.at
  %scratch = alloca i8, i64 %size, align 64
  %thread = call ptr @PyEval_SaveThread()
  %single = icmp eq i64 %blocks, %first
  br i1 %single, label %whole, label %part
whole:
  call void %kernel(ptr %parameters, ptr %launch, ptr %scratch, i64 0, i64 %blocks)
  br label %done
part:
  %start = call i64 @now(ptr %time)
  call void %kernel(ptr %parameters, ptr %launch, ptr %scratch, i64 0, i64 %first)
  %end = call i64 @now(ptr %time)
  %took = sub i64 %end, %start
  %others = sub i64 %blocks, %first
  %total = mul i64 %took, %others
  %left = sdiv i64 %total, %first
  %worth.at = getelementptr i64, ptr %table, i64 7
  %worth = load i64, ptr %worth.at
  %is.long = icmp sgt i64 %left, %worth
  br i1 %is.long, label %leave, label %go.on
go.on:
  call void %kernel(ptr %parameters, ptr %launch, ptr %scratch, i64 %first, i64 %blocks)
  br label %done
done:
  call void @PyEval_RestoreThread(ptr %thread)
  ret i1 true
leave:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %rest
rest:
  ret i1 false
}

; --- the whole ------------------------------------------------------------------------------------

define ptr @launch(ptr %self, ptr %arguments, i64 %given) {
entry:
  %slot = alloca i64
  %table.at = getelementptr i8, ptr %self, i64 $DATA
  %table = load ptr, ptr %table.at
  %guards = load i64, ptr %table
  %count.at = getelementptr i64, ptr %table, i64 1
  %count = load i64, ptr %count.at
  %fills.at = getelementptr i64, ptr %table, i64 2
  %fills = load i64, ptr %fills.at
  %arrays.at = getelementptr i64, ptr %table, i64 10
  %arrays.offset = load i64, ptr %arrays.at
  %vectors.at = getelementptr i64, ptr %table, i64 11
  %vectors.offset = load i64, ptr %vectors.at
  %vectors = getelementptr i64, ptr %table, i64 %vectors.offset
  %is.count = icmp eq i64 %given, %count
  br i1 %is.count, label %room, label %refuse
room:
  %record.words = mul i64 %count, 6
  %records.some = add i64 %record.words, 1
  %records = alloca i64, i64 %records.some
  %vectors.count = load i64, ptr %vectors
  %words = add i64 %fills, %vectors.count
  %parameters.some = add i64 %words, 1
  %parameters = alloca i64, i64 %parameters.some
  %table.guards = getelementptr i64, ptr %table, i64 24
  br label %guard
guard:
  %g = phi i64 [ 0, %room ], [ %g.next, %guarded ]
  %guard.at = phi ptr [ %table.guards, %room ], [ %guard.next, %guarded ]
  %guards.left = icmp slt i64 %g, %guards
  br i1 %guards.left, label %hold, label %check
hold:
  %is.held = call i1 @holds(ptr %guard.at, ptr %slot)
  br i1 %is.held, label %guarded, label %refuse
guarded:
  %g.next = add i64 %g, 1
  %guard.next = getelementptr i64, ptr %guard.at, i64 4
  br label %guard
check:
  %a = phi i64 [ 0, %guard ], [ %a.next, %checked ]
  %check.at = phi ptr [ %guard.at, %guard ], [ %check.next, %checked ]
  %record.at = phi ptr [ %records, %guard ], [ %record.next, %checked ]
  %arguments.left = icmp slt i64 %a, %count
  br i1 %arguments.left, label %look, label %together
look:
  %object.at = getelementptr ptr, ptr %arguments, i64 %a
  %object = load ptr, ptr %object.at
  %is.argument = call i1 @argument(ptr %check.at, ptr %object, ptr %record.at, ptr %slot)
  br i1 %is.argument, label %checked, label %refuse
checked:
  %a.next = add i64 %a, 1
  %check.next = getelementptr i64, ptr %check.at, i64 8
  %record.next = getelementptr i64, ptr %record.at, i64 6
  br label %check
together:
  %is.separate = call i1 @separate(ptr %table, ptr %records)
  br i1 %is.separate, label %fill, label %refuse
fill:
  %f = phi i64 [ 0, %together ], [ %f.next, %filled ]
  %fill.at = phi ptr [ %check.at, %together ], [ %fill.next, %filled ]
  %fills.left = icmp slt i64 %f, %fills
  br i1 %fills.left, label %put, label %take
put:
  %to = getelementptr i64, ptr %parameters, i64 %f
  %is.filled = call i1 @parameter(ptr %fill.at, ptr %records, ptr %to)
  br i1 %is.filled, label %filled, label %refuse
filled:
  %f.next = add i64 %f, 1
  %fill.next = getelementptr i64, ptr %fill.at, i64 4
  br label %fill
take:
  %serials = getelementptr i64, ptr %parameters, i64 %fills
  %any.at = getelementptr i64, ptr %table, i64 12
  %any = load i64, ptr %any.at
  %is.taken = call i1 @begin_vectors(
    ptr %vectors, ptr %arguments, ptr %serials, ptr %slot, i64 %any)
  br i1 %is.taken, label %go, label %refuse
go:
  %counter.at = getelementptr i64, ptr %table, i64 8
  %counter = load ptr, ptr %counter.at
  %launches = load i64, ptr %counter
  %launches.next = add i64 %launches, 1
  store i64 %launches.next, ptr %counter
  %is.done = call i1 @run(ptr %table, ptr %parameters)
  br i1 %is.done, label %done, label %leave
done:
  call void @end_vectors(ptr %vectors, ptr %arguments, i64 %vectors.count)
  call void @Py_IncRef(ptr inttoptr (i64 $NONE to ptr))
  ret ptr inttoptr (i64 $NONE to ptr)
leave:
  %bytes = mul i64 %words, 8
  %packed = call ptr @PyBytes_FromStringAndSize(ptr %parameters, i64 %bytes)
  ret ptr %packed
refuse:
  %error = call ptr @PyErr_Occurred()
  %is.error = icmp ne ptr %error, null
  br i1 %is.error, label %failed, label %refused
failed:
  %is.usual = call i32 @PyErr_ExceptionMatches(ptr inttoptr (i64 $EXCEPTION to ptr))
  %is.other = icmp eq i32 %is.usual, 0
  br i1 %is.other, label %raise, label %clear
raise:
  ret ptr null
clear:
  call void @PyErr_Clear()
  br label %refused
refused:
  call void @Py_IncRef(ptr inttoptr (i64 $FALSE to ptr))
  ret ptr inttoptr (i64 $FALSE to ptr)
}
"""
