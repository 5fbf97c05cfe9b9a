"""What the launcher does on an OpenCL device: set arguments that changed, enqueue, wait.

The first word of the device's part of the table is the address of a block of int64 (or 0, where all
is left to Python code):

    0       whether the kernel object has the arguments that the block says
    1 … 4   clSetKernelArg, clEnqueueNDRangeKernel, clWaitForEvents, clReleaseEvent
    5, 6    the queue and the kernel
    7, 8    how many parameters there are, and how many vectors
    9 … 11  threads of the grid
    12 … 14 threads of a block
    16 …    the bytes of each parameter, 0 for memory
    then    the parameters, and the serial numbers of the vectors' buffers

Scalars are set here. Where a vector's buffer is another one, or the driver refuses something, the
launch is left to Python code, which does it again. What fails while it is waited for is not done
again: its event is the last of the words that Python code gets.

The block is read and written with the GIL, which is held until the launch was given to the queue.
"""

from __future__ import annotations

FIXED = 16  # words before the bytes of the parameters

RUN = """
define internal i1 @run(ptr %table, ptr %parameters) {
entry:
  %event = alloca ptr
  %block.at = getelementptr i64, ptr %table, i64 3
  %block = load ptr, ptr %block.at
  %is.none = icmp eq ptr %block, null
  br i1 %is.none, label %leave, label %begin
begin:
  %valid = load i64, ptr %block
  %is.valid = icmp ne i64 %valid, 0
  br i1 %is.valid, label %set, label %leave
set:
  %set.at = getelementptr ptr, ptr %block, i64 1
  %set.argument = load ptr, ptr %set.at
  %enqueue.at = getelementptr ptr, ptr %block, i64 2
  %enqueue = load ptr, ptr %enqueue.at
  %wait.at = getelementptr ptr, ptr %block, i64 3
  %wait = load ptr, ptr %wait.at
  %release.at = getelementptr ptr, ptr %block, i64 4
  %release = load ptr, ptr %release.at
  %queue.at = getelementptr ptr, ptr %block, i64 5
  %queue = load ptr, ptr %queue.at
  %kernel.at = getelementptr ptr, ptr %block, i64 6
  %kernel = load ptr, ptr %kernel.at
  %fills.at = getelementptr i64, ptr %block, i64 7
  %fills = load i64, ptr %fills.at
  %vectors.at = getelementptr i64, ptr %block, i64 8
  %vectors = load i64, ptr %vectors.at
  %grid = getelementptr i64, ptr %block, i64 9
  %threads = getelementptr i64, ptr %block, i64 12
  %sizes = getelementptr i64, ptr %block, i64 16
  %known = getelementptr i64, ptr %sizes, i64 %fills
  %known.serials = getelementptr i64, ptr %known, i64 %fills
  %serials = getelementptr i64, ptr %parameters, i64 %fills
  br label %vector
vector:
  %v = phi i64 [ 0, %set ], [ %v.next, %same ]
  %vectors.left = icmp slt i64 %v, %vectors
  br i1 %vectors.left, label %compare, label %parameter
compare:
  %serial.at = getelementptr i64, ptr %serials, i64 %v
  %serial = load i64, ptr %serial.at
  %known.serial.at = getelementptr i64, ptr %known.serials, i64 %v
  %known.serial = load i64, ptr %known.serial.at
  %is.same = icmp eq i64 %serial, %known.serial
  br i1 %is.same, label %same, label %leave
same:
  %v.next = add i64 %v, 1
  br label %vector
parameter:
  %k = phi i64 [ 0, %vector ], [ %k.next, %next ]
  %left = icmp slt i64 %k, %fills
  br i1 %left, label %look, label %start
look:
  %word.at = getelementptr i64, ptr %parameters, i64 %k
  %word = load i64, ptr %word.at
  %known.at = getelementptr i64, ptr %known, i64 %k
  %known.word = load i64, ptr %known.at
  %is.known = icmp eq i64 %word, %known.word
  br i1 %is.known, label %next, label %change
change:
  %size.at = getelementptr i64, ptr %sizes, i64 %k
  %size = load i64, ptr %size.at
  %is.memory = icmp eq i64 %size, 0
  br i1 %is.memory, label %leave, label %scalar
scalar:
  %number = trunc i64 %k to i32
  %set.status = call i32 %set.argument(ptr %kernel, i32 %number, i64 %size, ptr %word.at)
  %is.set = icmp eq i32 %set.status, 0
  br i1 %is.set, label %keep, label %spoilt
keep:
  store i64 %word, ptr %known.at
  br label %next
next:
  %k.next = add i64 %k, 1
  br label %parameter
spoilt:
  store i64 0, ptr %block
  br label %leave
start:
  %status = call i32 %enqueue(ptr %queue, ptr %kernel, i32 3, ptr null, ptr %grid, ptr %threads,
    i32 0, ptr null, ptr %event)
  %is.started = icmp eq i32 %status, 0
  br i1 %is.started, label %finish, label %leave
finish:
  %thread = call ptr @PyEval_SaveThread()
  %wait.status = call i32 %wait(i32 1, ptr %event)
  call void @PyEval_RestoreThread(ptr %thread)
  %mark = load ptr, ptr %event
  %is.done = icmp eq i32 %wait.status, 0
  br i1 %is.done, label %done, label %failed
done:
  %ignored = call i32 %release(ptr %mark)
  ret i1 true
failed:
  %outcome.at = getelementptr i64, ptr %serials, i64 %vectors
  store ptr %mark, ptr %outcome.at
  br label %leave
leave:
  ret i1 false
}
"""
