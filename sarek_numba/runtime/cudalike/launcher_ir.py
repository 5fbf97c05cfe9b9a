"""What the launcher does on a device: give the driver a launch that begins at once.

The first word of the device's part of the table is the address of a block of int64 (or 0, where all
is left to Python code):

    0       the opening in which Python code noted what this block's launch uses
    1       the address of the state of the batch that launches come to: the opening, 0 for none;
            how many came from here; how many more may
    2, 3    the driver's calls that launch and that tell the context
    4 … 6   the context, or its number, as that call tells it; the function, the stream
    7, 8    how many parameters the kernel has, and how many words stand behind them
    9 … 14  blocks of the grid, threads of a block
    15      bytes of dynamic shared memory
    16 …    for each parameter whether it is memory
    then    for each parameter the device's address, if it is memory
    then    the words behind the parameters: of each vector the host's address and its elements,
            and then the serial numbers of the vectors' buffers

A launch whose words behind the parameters are those of the block uses what was noted, in the same
opening, so there is nothing to note. Numbers are taken as they are. What is not so is left to
Python code. The last of the words that it gets is the status of the driver, if that is a failure,
or `GIVEN` where the launch was given and the opening ended meanwhile.

The GIL is held all the time: an opening ends at the hands of Python code alone.
"""

from __future__ import annotations

FIXED = 16  # words before the kinds of the parameters
GIVEN = -1

RUN = """
define internal i1 @run(ptr %table, ptr %parameters) {
entry:
  %current = alloca ptr
  %block.at = getelementptr i64, ptr %table, i64 3
  %block = load ptr, ptr %block.at
  %is.none = icmp eq ptr %block, null
  br i1 %is.none, label %leave, label %begin
begin:
  %noted = load i64, ptr %block
  %state.at = getelementptr ptr, ptr %block, i64 1
  %state = load ptr, ptr %state.at
  %open = load i64, ptr %state
  %is.open = icmp eq i64 %noted, %open
  br i1 %is.open, label %room, label %leave
room:
  %count.at = getelementptr i64, ptr %state, i64 1
  %left.at = getelementptr i64, ptr %state, i64 2
  %left = load i64, ptr %left.at
  %has.room = icmp sgt i64 %left, 0
  br i1 %has.room, label %sizes, label %leave
sizes:
  %fills.at = getelementptr i64, ptr %block, i64 7
  %fills = load i64, ptr %fills.at
  %behind.at = getelementptr i64, ptr %block, i64 8
  %behind = load i64, ptr %behind.at
  %kinds = getelementptr i64, ptr %block, i64 16
  %addresses = getelementptr i64, ptr %kinds, i64 %fills
  %known = getelementptr i64, ptr %addresses, i64 %fills
  %words = getelementptr i64, ptr %parameters, i64 %fills
  br label %compare
compare:
  %w = phi i64 [ 0, %sizes ], [ %w.next, %equal ]
  %words.left = icmp slt i64 %w, %behind
  br i1 %words.left, label %look, label %context
look:
  %word.at = getelementptr i64, ptr %words, i64 %w
  %word = load i64, ptr %word.at
  %known.at = getelementptr i64, ptr %known, i64 %w
  %known.word = load i64, ptr %known.at
  %is.equal = icmp eq i64 %word, %known.word
  br i1 %is.equal, label %equal, label %leave
equal:
  %w.next = add i64 %w, 1
  br label %compare
context:
  %ask.at = getelementptr ptr, ptr %block, i64 3
  %ask = load ptr, ptr %ask.at
  store ptr null, ptr %current
  %asked = call i32 %ask(ptr %current)
  %is.asked = icmp eq i32 %asked, 0
  br i1 %is.asked, label %told, label %leave
told:
  %now = load ptr, ptr %current
  %context.at = getelementptr ptr, ptr %block, i64 4
  %wanted = load ptr, ptr %context.at
  %is.current = icmp eq ptr %now, %wanted
  br i1 %is.current, label %list, label %leave
list:
  %some = add i64 %fills, 1
  %given = alloca ptr, i64 %some
  %values = alloca i64, i64 %some
  br label %parameter
parameter:
  %k = phi i64 [ 0, %list ], [ %k.next, %put ]
  %fills.left = icmp slt i64 %k, %fills
  br i1 %fills.left, label %put, label %start
put:
  %kind.at = getelementptr i64, ptr %kinds, i64 %k
  %kind = load i64, ptr %kind.at
  %is.memory = icmp ne i64 %kind, 0
  %address.at = getelementptr i64, ptr %addresses, i64 %k
  %address = load i64, ptr %address.at
  %number.at = getelementptr i64, ptr %parameters, i64 %k
  %number = load i64, ptr %number.at
  %value = select i1 %is.memory, i64 %address, i64 %number
  %value.at = getelementptr i64, ptr %values, i64 %k
  store i64 %value, ptr %value.at
  %given.at = getelementptr ptr, ptr %given, i64 %k
  store ptr %value.at, ptr %given.at
  %k.next = add i64 %k, 1
  br label %parameter
start:
  %launch.at = getelementptr ptr, ptr %block, i64 2
  %launch = load ptr, ptr %launch.at
  %function.at = getelementptr ptr, ptr %block, i64 5
  %function = load ptr, ptr %function.at
  %stream.at = getelementptr ptr, ptr %block, i64 6
  %stream = load ptr, ptr %stream.at
$SIZES
  %status = call i32 %launch(ptr %function, i32 %size.9, i32 %size.10, i32 %size.11,
    i32 %size.12, i32 %size.13, i32 %size.14, i32 %size.15, ptr %stream, ptr %given, ptr null)
  %is.given = icmp eq i32 %status, 0
  br i1 %is.given, label %done, label %failed
done:
  %open.now = load i64, ptr %state
  %is.still = icmp eq i64 %noted, %open.now
  br i1 %is.still, label %note, label %late
note:
  %count = load i64, ptr %count.at
  %count.next = add i64 %count, 1
  store i64 %count.next, ptr %count.at
  %left.next = sub i64 %left, 1
  store i64 %left.next, ptr %left.at
  ret i1 true
failed:
  %code = zext i32 %status to i64
  br label %tell
late:
  br label %tell
tell:
  %outcome = phi i64 [ %code, %failed ], [ $GIVEN, %late ]
  %outcome.at = getelementptr i64, ptr %words, i64 %behind
  store i64 %outcome, ptr %outcome.at
  br label %leave
leave:
  ret i1 false
}
""".replace(
    "$SIZES",
    "\n".join(
        f"  %size.{k}.at = getelementptr i64, ptr %block, i64 {k}\n"
        f"  %size.{k} = load i32, ptr %size.{k}.at"
        for k in range(9, 16)
    ),
).replace("$GIVEN", str(GIVEN))
