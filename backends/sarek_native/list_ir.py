"""The loop that does a list of launches, copies and fills in one call.

A record of the table has eight words: what to call; its arguments; what a kernel is given as
`launch`; how many blocks there are, and how many of them run before the time is looked at. Where
these show that the rest is worth waking other threads for, `list` leaves with the number of the
record, whose first blocks are done; else with the number of records. What is copied and filled is
called as a kernel is.
"""

from __future__ import annotations

TEXT = """
declare i32 @clock_gettime(i32, ptr)
declare ptr @memmove(ptr, ptr, i64)

define internal i64 @now(ptr %time) {
  %status = call i32 @clock_gettime(i32 $CLOCK, ptr %time)
  %seconds = load i64, ptr %time
  %nanoseconds.at = getelementptr i64, ptr %time, i64 1
  %nanoseconds = load i64, ptr %nanoseconds.at
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %nanoseconds
  ret i64 %sum
}

define i64 @list(ptr %table, i64 %begin, i64 %count, ptr %scratch, i64 %worth) {
entry:
  %time = alloca [2 x i64]
  br label %loop
loop:
  %k = phi i64 [ %begin, %entry ], [ %next, %done ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %record, label %end
end:
  ret i64 %count
record:
  %at = mul i64 %k, 8
  %kernel.at = getelementptr i64, ptr %table, i64 %at
  %kernel = load ptr, ptr %kernel.at
  %arguments.at = getelementptr i64, ptr %kernel.at, i64 1
  %arguments = load ptr, ptr %arguments.at
  %launch.at = getelementptr i64, ptr %kernel.at, i64 2
  %launch = load ptr, ptr %launch.at
  %blocks.at = getelementptr i64, ptr %kernel.at, i64 3
  %blocks = load i64, ptr %blocks.at
  %first.at = getelementptr i64, ptr %kernel.at, i64 4
  %first = load i64, ptr %first.at
  %single = icmp eq i64 %blocks, %first
  br i1 %single, label %whole, label %part
whole:
  call void %kernel(ptr %arguments, ptr %launch, ptr %scratch, i64 0, i64 %blocks)
  br label %done
part:
  %start = call i64 @now(ptr %time)
  call void %kernel(ptr %arguments, ptr %launch, ptr %scratch, i64 0, i64 %first)
  %stop = call i64 @now(ptr %time)
  %took = sub i64 %stop, %start
  %others = sub i64 %blocks, %first
  %total = mul i64 %took, %others
  %left = sdiv i64 %total, %first
  %is.long = icmp sgt i64 %left, %worth
  br i1 %is.long, label %leave, label %rest
leave:
  ret i64 %k
rest:
  call void %kernel(ptr %arguments, ptr %launch, ptr %scratch, i64 %first, i64 %blocks)
  br label %done
done:
  %next = add i64 %k, 1
  br label %loop
}

; --- bytes: where to, where from, how many --------------------------------------------------------

define void @copy(ptr %arguments, ptr %launch, ptr %scratch, i64 %first, i64 %last) {
  %to = load ptr, ptr %arguments
  %of.at = getelementptr i64, ptr %arguments, i64 1
  %of = load ptr, ptr %of.at
  %size.at = getelementptr i64, ptr %arguments, i64 2
  %size = load i64, ptr %size.at
  %same = call ptr @memmove(ptr %to, ptr %of, i64 %size)
  ret void
}

; --- the same with the bytes of one word: what is filled is doubled -------------------------------

define void @fill(ptr %arguments, ptr %launch, ptr %scratch, i64 %first, i64 %last) {
entry:
  %to = load ptr, ptr %arguments
  %of.at = getelementptr i64, ptr %arguments, i64 1
  %of = load ptr, ptr %of.at
  %size.at = getelementptr i64, ptr %arguments, i64 2
  %size = load i64, ptr %size.at
  %width.at = getelementptr i64, ptr %arguments, i64 3
  %width = load i64, ptr %width.at
  %one = call ptr @memmove(ptr %to, ptr %of, i64 %width)
  br label %loop
loop:
  %filled = phi i64 [ %width, %entry ], [ %now, %more ]
  %left = sub i64 %size, %filled
  %going = icmp sgt i64 %left, 0
  br i1 %going, label %more, label %end
more:
  %enough = icmp slt i64 %left, %filled
  %step = select i1 %enough, i64 %left, i64 %filled
  %behind = getelementptr i8, ptr %to, i64 %filled
  %some = call ptr @memmove(ptr %behind, ptr %to, i64 %step)
  %now = add i64 %filled, %step
  br label %loop
end:
  ret void
}
"""
