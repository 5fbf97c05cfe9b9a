"""Lanes: work of a device in order, recorded into command buffers and submitted together.

A lane has a timeline semaphore, which counts the command buffers that are done; a mark is the count
that a piece of work belongs to. Lanes take turns on the device's queues. Within a lane each command
comes behind a barrier, so each sees what those before it wrote; a command buffer begins with one
too, which reaches back to all that its queue was given. Between lanes one waits for the count of
another, which is submitted before: no queue waits for what comes later on it.

Command buffers are used again when their count is done. Lanes of streams write the time of an
event, and those before and after each piece of work where launches are measured; the numbers are
read when somebody asks, or before the queries are used again.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sarek_numba.errors import BackendError, LaunchFailed
from sarek_numba.runtime import telemetry
from sarek_vulkan import driver
from sarek_vulkan.logical import Block, Logical, VulkanQueue
from sarek_vulkan.memory import Span

if TYPE_CHECKING:
    from sarek_vulkan.runtime import VulkanDriver

_WORD = 8
_REMEMBERED = 64  # failures
_MOST_FLYING = 16  # command buffers, before somebody looks which are done
_NAMED = 4  # kernels that an error names
_QUERIES = 256  # times of one command buffer
_POLL_NS = 100_000_000  # after which waiting looks for interrupts
_COMPUTE, _TRANSFER, _HOST, _ALL = 0x800, 0x1000, 0x4000, 0x10000  # stages of a pipeline
_DEVICE_WORK = _COMPUTE | _TRANSFER
_SHADER_READ, _SHADER_WRITE, _TRANSFER_READ, _TRANSFER_WRITE = 0x20, 0x40, 0x800, 0x1000
_WRITES = _SHADER_WRITE | _TRANSFER_WRITE
_READS = _SHADER_READ | _TRANSFER_READ
_HOST_READ = 0x2000
_ARGUMENTS = 64 << 10  # bytes of a block for arguments that are no push constants


class Times:
    """The times of one command buffer, in ticks."""

    __slots__ = ("batch", "ticks")

    def __init__(self, batch: Batch) -> None:
        self.batch: Batch | None = batch
        self.ticks: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class Mark:
    """The end of a piece of work: done when the lane has counted to `value`.

    `first` and `last` are the numbers of its times, if the lane keeps any.
    """

    lane: Lane
    value: int
    times: Times | None = None
    first: int = 0
    last: int = 0


@dataclass(slots=True, eq=False)
class Batch:
    """A command buffer, and what belongs to it until it is done."""

    commands: Any
    pool: Any = None  # of queries
    value: int = 0
    used: bool = False  # is there a command that the next one waits for?
    queries: int = 0
    bound: Any = None  # the pipeline
    names: list[str] = field(default_factory=list)  # of its kernels
    mark: Mark | None = None
    times: Times | None = None
    kept: list[Any] = field(default_factory=list)
    recorded: bool = False  # by somebody else, to be submitted again
    arguments: list[Block] = field(default_factory=list)
    argument_block: int = 0
    argument_bytes: int = 0


class Lane:
    """Work in order. Safe to use from any thread; `timed` ones keep times."""

    def __init__(self, logical: Logical, queue: VulkanQueue, *, timed: bool) -> None:
        logical.refuse_lost()
        self.logical = logical
        self.lock = threading.RLock()
        self._queue = queue
        self._timed = timed and logical.physical.family is not None
        self._call = logical.call
        self._open: Batch | None = None
        self._measured = False  # has the command that was begun last times?
        self._free: list[Batch] = []
        self._flying: deque[Batch] = deque()
        self._value = 0  # of the batch that was begun last
        self._submitted = 0
        self._done = 0
        self._behind: dict[Lane, int] = {}  # lanes that the next batch waits for
        self._objects = _Objects(logical)
        self._watched: Any = None  # see `watch`
        self._watch = b""
        self._given_up: deque[tuple[int, int, str]] = deque(maxlen=_REMEMBERED)
        self._make()
        weakref.finalize(self, self._objects.destroy)

    def _make(self) -> None:
        ffi, logical = driver.ffi, self.logical
        kind = driver.make("VkSemaphoreTypeCreateInfo", semaphoreType=1, initialValue=0)
        info = driver.make("VkSemaphoreCreateInfo", pNext=kind)
        self._semaphore = ffi.new("VkSemaphore *")
        result = self._call.vkCreateSemaphore(logical.handle, info, ffi.NULL, self._semaphore)
        logical.check(result, "making a queue")
        self._objects.semaphores.append(self._semaphore[0])
        assert logical.physical.family is not None
        pool = driver.make(
            "VkCommandPoolCreateInfo", flags=0x2, queueFamilyIndex=logical.physical.family.index
        )
        made = ffi.new("VkCommandPool *")
        result = self._call.vkCreateCommandPool(logical.handle, pool, ffi.NULL, made)
        logical.check(result, "making a queue")
        self._objects.pools.append(made[0])
        self._pool = made[0]
        self._counter = ffi.new("uint64_t *")
        self._signalled, self._commands = ffi.new("uint64_t *"), ffi.new("VkCommandBuffer *")
        self._alone = self._submission([], [])
        self._begin_info = driver.make("VkCommandBufferBeginInfo", flags=0x1)
        self._between = driver.make(
            "VkMemoryBarrier", srcAccessMask=_WRITES, dstAccessMask=_READS | _WRITES
        )
        self._for_host = driver.make(
            "VkMemoryBarrier", srcAccessMask=_WRITES, dstAccessMask=_HOST_READ
        )

    # --- recording --------------------------------------------------------------------------------

    def begin(self) -> Batch:
        """The open command buffer, ready for a command. The lock is held."""
        self._measured = self._timed and telemetry.is_measuring()
        batch = self._ready(2 * self._measured)
        if self._measured:
            self._stamp(batch)
        return batch

    def _ready(self, queries: int) -> Batch:
        """The open command buffer, behind a barrier, with room for so many times."""
        batch = self._open
        if batch is not None and batch.queries + queries > _QUERIES:
            self.submit()
            batch = None
        if batch is None:
            batch = self._begun()
        if batch.used:
            self.barrier(batch.commands)
        batch.used = True
        return batch

    def end(self, batch: Batch, kept: Any = None, name: str = "a copy") -> Mark:
        """The mark of the command that was recorded, of a kernel's name. The lock is held."""
        batch.names.append(name)
        if kept is not None:
            batch.kept.append(kept)
        if not self._measured:
            if batch.mark is None:
                batch.mark = Mark(self, batch.value)
            return batch.mark
        self._stamp(batch)
        return Mark(self, batch.value, batch.times, batch.queries - 2, batch.queries - 1)

    def _stamp(self, batch: Batch) -> None:
        self._call.vkCmdWriteTimestamp(batch.commands, 0x2000, batch.pool, batch.queries)
        batch.queries += 1

    def barrier(self, commands: Any) -> None:
        """What comes behind sees what was written before."""
        null = driver.ffi.NULL
        self._call.vkCmdPipelineBarrier(
            commands, _DEVICE_WORK, _DEVICE_WORK, 0, 1, self._between, 0, null, 0, null
        )

    def host_barrier(self, commands: Any) -> None:
        """The host sees what was written before, when it has waited."""
        null = driver.ffi.NULL
        self._call.vkCmdPipelineBarrier(
            commands, _DEVICE_WORK, _HOST, 0, 1, self._for_host, 0, null, 0, null
        )

    def _begun(self) -> Batch:
        self.logical.refuse_lost()
        if not self._free:
            self._reclaim(self._counted())
        batch = self._free.pop() if self._free else self._new_batch()
        self.logical.check(
            self._call.vkBeginCommandBuffer(batch.commands, self._begin_info), "recording"
        )
        self._value += 1
        batch.value = self._value
        batch.used, batch.queries, batch.mark, batch.bound = False, 0, None, None
        batch.names.clear()
        batch.argument_block = batch.argument_bytes = 0
        if self._timed:
            self._call.vkCmdResetQueryPool(batch.commands, batch.pool, 0, _QUERIES)
            batch.times = Times(batch)
        self.barrier(batch.commands)
        self._open = batch
        return batch

    def _new_batch(self) -> Batch:
        ffi, handle = driver.ffi, self.logical.handle
        info = driver.make(
            "VkCommandBufferAllocateInfo", commandPool=self._pool, level=0, commandBufferCount=1
        )
        made = ffi.new("VkCommandBuffer *")
        result = self._call.vkAllocateCommandBuffers(handle, info, made)
        self.logical.check(result, "making a command buffer")
        batch = Batch(made[0])
        if self._timed:
            queries = driver.make("VkQueryPoolCreateInfo", queryType=2, queryCount=_QUERIES)
            pool = ffi.new("VkQueryPool *")
            result = self._call.vkCreateQueryPool(handle, queries, ffi.NULL, pool)
            self.logical.check(result, "making queries")
            batch.pool = pool[0]
            self._objects.queries.append(pool[0])
        return batch

    def arguments(self, batch: Batch, content: bytes) -> int:
        """The device's address of bytes that a kernel of the batch reads. The lock is held."""
        size = -(-len(content) // 16) * 16
        while True:
            if batch.argument_block == len(batch.arguments):
                block = self.logical.arguments(max(size, _ARGUMENTS))
                batch.arguments.append(block)
                self._objects.blocks.append(block)
            block = batch.arguments[batch.argument_block]
            if batch.argument_bytes + size <= block.size:
                break
            batch.argument_block += 1
            batch.argument_bytes = 0
        at = batch.argument_bytes
        batch.argument_bytes += size
        ffi = driver.ffi
        ffi.memmove(ffi.cast("char *", block.mapped + at), content, len(content))
        return block.address + at

    def copy(
        self, block: Block, offset: int, span: Span, at: int, size: int, *, to_device: bool
    ) -> Mark:
        """Copy between a block that the host sees and a span, and submit it."""
        region = driver.plain("VkBufferCopy", size=size)
        here, there = (block.buffer, offset), (span.buffer, span.offset + at)
        source, target = (here, there) if to_device else (there, here)
        region.srcOffset, region.dstOffset = source[1], target[1]
        with self.lock:
            batch = self.begin()
            self._call.vkCmdCopyBuffer(batch.commands, source[0], target[0], 1, region)
            mark = self.end(batch)
            self.submit()
        return mark

    def record_copy(self, source: Span, target: Span, kept: Any = None) -> Mark:
        """Copy from one span to another of the same size."""
        region = driver.plain(
            "VkBufferCopy", srcOffset=source.offset, dstOffset=target.offset, size=source.size
        )
        with self.lock:
            batch = self.begin()
            self._call.vkCmdCopyBuffer(batch.commands, source.buffer, target.buffer, 1, region)
            return self.end(batch, kept)

    def mark(self) -> Mark:
        """A mark behind everything that the lane was given."""
        with self.lock:
            if not self._timed:
                return Mark(self, self._value)
            batch = self._ready(1)
            self._stamp(batch)
            return Mark(self, batch.value, batch.times, batch.queries - 1, batch.queries - 1)

    # --- submitting -------------------------------------------------------------------------------

    def follow(self, mark: Mark) -> None:
        """What comes from now on begins after a mark of another lane."""
        if mark.lane is self:
            return
        mark.lane.submit(mark.value)
        with self.lock:
            if mark.lane.is_counted(mark.value):
                return
            self.submit()
            self._behind[mark.lane] = max(mark.value, self._behind.get(mark.lane, 0))

    def submit(self, value: int | None = None) -> None:
        """Have the device begin with what was recorded, up to a value at least."""
        if value is not None and value <= self._submitted:
            return
        with self.lock:
            batch, self._open = self._open, None
            if batch is None:
                return
            self.host_barrier(batch.commands)
            self._hand_over(batch, self._call.vkEndCommandBuffer(batch.commands))

    def resubmit(self, commands: Any, names: list[str], kept: Any) -> Mark:
        """Submit a command buffer that was recorded before, as often as is asked.

        It begins and ends with barriers of its own. Raises BackendError.
        """
        with self.lock:
            self.logical.refuse_lost()
            self.submit()
            if len(self._flying) > _MOST_FLYING:
                self._reclaim(self._counted())
            self._value += 1
            batch = Batch(commands, value=self._value, names=names, kept=[kept], recorded=True)
            self._hand_over(batch, 0)
            return Mark(self, batch.value)

    def _hand_over(self, batch: Batch, result: int) -> None:
        """Submit a command buffer that is recorded, if that went well."""
        behind, self._behind = self._behind, {}
        batch.kept.extend(behind)  # their semaphores are waited for until it is done
        if result >= 0:
            result = self._submitted_now(batch, behind)
        if result < 0:
            self._fail(batch, result)
        self._submitted = batch.value
        self._flying.append(batch)

    def _submitted_now(self, batch: Batch, behind: dict[Lane, int]) -> int:
        info = self._submission([*behind], [*behind.values()]) if behind else self._alone
        self._signalled[0], self._commands[0] = batch.value, batch.commands
        with self._queue.lock:
            return int(self._call.vkQueueSubmit(self._queue.handle, 1, info, driver.ffi.NULL))

    def _submission(self, lanes: list[Lane], values: list[int]) -> Any:
        """What submits `_commands[0]`, behind values of other lanes, and counts `_signalled[0]`."""
        ffi = driver.ffi
        timeline = driver.make(
            "VkTimelineSemaphoreSubmitInfo",
            waitSemaphoreValueCount=len(lanes),
            pWaitSemaphoreValues=ffi.new("uint64_t[]", values),
            signalSemaphoreValueCount=1,
            pSignalSemaphoreValues=self._signalled,
        )
        return driver.make(
            "VkSubmitInfo",
            pNext=timeline,
            waitSemaphoreCount=len(lanes),
            pWaitSemaphores=ffi.new("VkSemaphore[]", [lane._semaphore[0] for lane in lanes]),
            pWaitDstStageMask=ffi.new("VkPipelineStageFlags[]", [_ALL] * len(lanes)),
            commandBufferCount=1,
            pCommandBuffers=self._commands,
            signalSemaphoreCount=1,
            pSignalSemaphores=self._semaphore,
        )

    def _fail(self, batch: Batch, result: int) -> None:
        """A batch that the driver refuses counts as done, so that nobody waits for it for ever."""
        batch.kept.clear()
        signal = driver.make(
            "VkSemaphoreSignalInfo", semaphore=self._semaphore[0], value=batch.value
        )
        self._submitted = batch.value
        if result != -4 and self._counted() == batch.value - 1:
            self._call.vkSignalSemaphore(self.logical.handle, signal)
        self.logical.check(result, _action(batch))

    # --- waiting ----------------------------------------------------------------------------------

    def _counted(self) -> int:
        """How far the device has counted."""
        result = self._call.vkGetSemaphoreCounterValue(
            self.logical.handle, self._semaphore[0], self._counter
        )
        self.logical.check(result, "a launch")
        self._done = max(self._done, int(self._counter[0]))
        return self._done

    def is_counted(self, value: int) -> bool:
        """Whether the work of a value is done."""
        if value <= self._done:
            return True
        if value > self._submitted:
            return False
        with self.lock:
            is_done = value <= self._counted()
            if is_done:
                self._look_for_given_up()
            return is_done

    def wait(self, mark: Mark) -> None:
        """Return when the work of a mark is done. Raises BackendError."""
        value = mark.value
        if value > self._done:
            self.logical.refuse_lost()
            self.submit(value)
            info = driver.make(
                "VkSemaphoreWaitInfo",
                semaphoreCount=1,
                pSemaphores=self._semaphore,
                pValues=driver.ffi.new("uint64_t *", value),
            )
            while True:
                result = self._call.vkWaitSemaphores(self.logical.handle, info, _POLL_NS)
                if result != driver.TIMEOUT:
                    break
            if result < 0:
                with self.lock:
                    batches = [each for each in self._flying if each.value >= value]
                self.logical.check(result, _action(*batches[:1]))
            self._done = max(self._done, value)
        with self.lock:
            self._reclaim(self._done)
            given_up = self.given_up(value)
        if given_up:
            raise LaunchFailed(
                f"{given_up} on {self.logical.name} has no result: its driver gives up the loops "
                "of a few threads that make more than 65535 passes together, and goes on behind "
                "them\n"
                "  hint: launch on another device, such as 'native', or have each thread do less"
            )

    # --- loops that the driver gives up (`watch`) -------------------------------------------------

    def watch(self) -> bytes:
        """The address of the word that launches set whose loops are given up. The lock is held."""
        if self._watched is None:
            block = self.logical.arguments(_WORD)
            self._objects.blocks.append(block)
            self._watched = driver.ffi.cast("uint64_t *", block.mapped)
            self._watched[0] = 0
            self._watch = block.address.to_bytes(_WORD, "little")
        return self._watch

    def given_up(self, value: int) -> str:
        """The launches that a value's work was in flight with when loops were given up, or ""."""
        for first, last, action in self._given_up:
            if first <= value <= last:
                return action
        return ""

    def _look_for_given_up(self) -> None:
        """Whatever was in flight may have set the word, and has no result."""
        if self._watched is None or not self._watched[0] or not self._flying:
            return
        self._watched[0] = 0
        action = _action(*self._flying)
        self._given_up.append((self._flying[0].value, self._submitted, action))

    def _reclaim(self, done: int) -> None:
        """Take back the command buffers that are done. The lock is held."""
        if self._flying and self._flying[0].value <= done:
            self._look_for_given_up()
        while self._flying and self._flying[0].value <= done:
            batch = self._flying.popleft()
            if batch.times is not None:
                self._read(batch)
            batch.kept.clear()
            if not batch.recorded:
                self._free.append(batch)

    def _read(self, batch: Batch) -> None:
        """Read the times of a batch that is done, if anybody may ask for them."""
        times = batch.times
        if times is None or times.batch is None:
            return
        count = batch.queries
        found = driver.ffi.new("uint64_t[]", max(1, count))
        if count:
            result = self._call.vkGetQueryPoolResults(
                self.logical.handle, batch.pool, 0, count, 8 * count, found, 8, 0x1 | 0x2
            )
            self.logical.check(result, "reading times")
        times.ticks = tuple(found[k] for k in range(count))
        times.batch = batch.times = None

    def time_ns(self, mark: Mark, which: int) -> float:
        """One of the times of a mark that is done."""
        self.wait(mark)
        if mark.times is None:
            raise BackendError(f"no times are kept of this work on {self.logical.name}")
        family, limits = self.logical.physical.family, self.logical.physical.limits
        bits = family.timestamp_bits if family is not None else 0
        if not bits:
            raise BackendError(f"the queues of {self.logical.name} keep no times")
        ticks = mark.times.ticks[which] & ((1 << bits) - 1)
        return float(ticks * limits["timestampPeriod"])


def _action(*batches: Batch) -> str:
    """What failed, in words: the kernels of a command buffer."""
    names = list(dict.fromkeys(name for batch in batches for name in batch.names))
    if not names:
        return "a launch"
    shown = ", ".join(f"'{name}'" for name in names[:_NAMED])
    return f"a launch of {shown}" + (f" and {len(names) - _NAMED} more" if names[_NAMED:] else "")


class _Objects:
    """What a lane made, which goes when nobody has the lane any more: its work is done then."""

    def __init__(self, logical: Logical) -> None:
        self._logical = logical
        self.semaphores: list[Any] = []
        self.pools: list[Any] = []
        self.queries: list[Any] = []
        self.blocks: list[Block] = []

    def destroy(self) -> None:
        if self._logical.lost is not None or driver.is_forked():
            return
        handle, call, null = self._logical.handle, self._logical.call, driver.ffi.NULL
        for kind, found in (
            (call.vkDestroyCommandPool, self.pools),
            (call.vkDestroyQueryPool, self.queries),
            (call.vkDestroySemaphore, self.semaphores),
        ):
            destroy: Callable[..., None] = kind
            for each in found:
                destroy(handle, each, null)
        for block in self.blocks:
            self._logical.free(block)


class VulkanQueues:
    """See `sarek_numba.runtime.device.Queues`: a handle is a lane."""

    def __init__(self, owner: VulkanDriver) -> None:
        self._owner = owner

    def open(self) -> Lane:
        """A lane with times."""
        logical = self._owner.logical
        return Lane(logical, logical.next_queue(), timed=True)

    def default(self) -> Lane:
        """The device's first lane."""
        return self._owner.lane

    def mark(self, handle: Lane) -> Mark:
        """As `Lane.mark`."""
        mark = handle.mark()
        handle.submit()
        return mark

    def follow(self, handle: Lane, mark: Mark) -> None:
        """As `Lane.follow`."""
        handle.follow(mark)

    def submit(self, handle: Lane) -> None:
        """As `Lane.submit`."""
        handle.submit()

    def status(self, mark: Mark) -> int:
        """Of the lane's count."""
        lane = mark.lane
        if mark.value <= lane._done:
            return -1 if lane.given_up(mark.value) else 0
        if lane.logical.lost is not None:
            return -4
        if not lane.is_counted(mark.value):
            return 1
        return -1 if lane.given_up(mark.value) else 0

    def wait(self, mark: Mark) -> None:
        """As `Lane.wait`."""
        mark.lane.wait(mark)

    def duration_ms(self, mark: Mark) -> float:
        """By the clock of the device, from before the work to behind it."""
        return (mark.lane.time_ns(mark, mark.last) - mark.lane.time_ns(mark, mark.first)) / 1e6

    def elapsed_ms(self, start: Mark, end: Mark) -> float:
        """By the clock of the device, which its queues share."""
        return (end.lane.time_ns(end, end.last) - start.lane.time_ns(start, start.last)) / 1e6
