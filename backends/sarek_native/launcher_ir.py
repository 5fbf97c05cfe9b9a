"""What the launcher does on this device: the kernel itself, without the GIL.

Where the first blocks show that the rest is worth waking other threads for, and where the scratch
memory is too much for the stack, the launch is left to Python code.
"""

from __future__ import annotations

RUN = """
declare i32 @clock_gettime(i32, ptr)

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
"""
