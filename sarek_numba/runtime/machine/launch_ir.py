"""The launcher: one function of machine code that CPython calls for a launch.

    PyObject *launch(PyObject *table, PyObject *const *arguments, Py_ssize_t count)

follows the table (`tables` has its layout) in place of Python code: guards, a check for each
argument, overlaps, parameters, and what the device adds, `run`:

    define internal i1 @run(ptr %table, ptr %parameters)

It gives None after the launch, which `run` says was done; False, with nothing done, if something is
not as the table says; and else the parameters as bytes, for Python code that does the rest. Behind
the parameters stand the serial numbers of the vectors' memory, whose locks are held then, and one
more word, which is 0 unless `run` wrote something there. All functions of CPython are called with
the GIL.

`$…` stand for offsets in objects of CPython and NumPy; addresses of objects are in globals. So the
machine code is the same in each process, and is kept on disk.
"""

from __future__ import annotations

from sarek_numba.runtime.machine.checks_ir import CHECKS, DECLARATIONS

_LAUNCH = """
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
  %object.2 = load ptr, ptr @object.name.storage
  %storage = call ptr @PyObject_GetAttr(ptr %object, ptr %object.2)
  %object.3 = load ptr, ptr @object.name.lock
  %lock = call ptr @PyObject_GetAttr(ptr %storage, ptr %object.3)
  %object.4 = load ptr, ptr @object.name.release
  %answer = call ptr (ptr, ptr, ...) @PyObject_CallMethodObjArgs(
    ptr %lock, ptr %object.4, ptr null)
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
  %object.5 = load ptr, ptr @object.name.storage
  %storage = call ptr @PyObject_GetAttr(ptr %object, ptr %object.5)
  %has.storage = icmp ne ptr %storage, null
  br i1 %has.storage, label %ask, label %no
ask:
  %object.6 = load ptr, ptr @object.name.lock
  %lock = call ptr @PyObject_GetAttr(ptr %storage, ptr %object.6)
  %object.7 = load ptr, ptr @object.name.ready
  %ready = call ptr @PyObject_GetAttr(ptr %storage, ptr %object.7)
  call void @Py_DecRef(ptr %storage)
  %object.8 = load ptr, ptr @object.name.acquire
  %object.9 = load ptr, ptr @object.false
  %answer = call ptr (ptr, ptr, ...) @PyObject_CallMethodObjArgs(
    ptr %lock, ptr %object.8,
    ptr %object.9, ptr null)
  call void @Py_DecRef(ptr %answer)
  call void @Py_DecRef(ptr %lock)
  call void @Py_DecRef(ptr %ready)
  %object.10 = load ptr, ptr @object.true
  %is.ours = icmp eq ptr %answer, %object.10
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
  %outcome = getelementptr i64, ptr %parameters, i64 %words
  store i64 0, ptr %outcome
  %is.done = call i1 @run(ptr %table, ptr %parameters)
  br i1 %is.done, label %done, label %leave
done:
  call void @end_vectors(ptr %vectors, ptr %arguments, i64 %vectors.count)
  %object.11 = load ptr, ptr @object.none
  call void @Py_IncRef(ptr %object.11)
  %object.12 = load ptr, ptr @object.none
  ret ptr %object.12
leave:
  %words.all = add i64 %words, 1
  %bytes = mul i64 %words.all, 8
  %packed = call ptr @PyBytes_FromStringAndSize(ptr %parameters, i64 %bytes)
  ret ptr %packed
refuse:
  %error = call ptr @PyErr_Occurred()
  %is.error = icmp ne ptr %error, null
  br i1 %is.error, label %failed, label %refused
failed:
  %object.13 = load ptr, ptr @object.exception
  %is.usual = call i32 @PyErr_ExceptionMatches(ptr %object.13)
  %is.other = icmp eq i32 %is.usual, 0
  br i1 %is.other, label %raise, label %clear
raise:
  ret ptr null
clear:
  call void @PyErr_Clear()
  br label %refused
refused:
  %object.14 = load ptr, ptr @object.false
  call void @Py_IncRef(ptr %object.14)
  %object.15 = load ptr, ptr @object.false
  ret ptr %object.15
}
"""


def text_of(run: str) -> str:
    """The text of a launcher of a device that runs launches so."""
    return "\n".join([DECLARATIONS, CHECKS, run, _LAUNCH])
