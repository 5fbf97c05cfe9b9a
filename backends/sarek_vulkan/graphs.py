"""Graphs on Vulkan devices: a command buffer that is recorded once and submitted again and again.

Nodes stand by how many others they are behind, one behind the other, with one barrier between each
two such levels: nodes of a level are independent, and the device may do them at the same time.
Arguments are recorded, as push constants or in a block that belongs to the command buffer, so one
with other arguments is recorded anew, into one that is not under way.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sarek_numba.runtime.nodes import CopyNode, FillNode, LaunchNode, Node
from sarek_vulkan import driver, layout
from sarek_vulkan.logical import Block, Logical
from sarek_vulkan.memory import Part
from sarek_vulkan.queues import Lane, Mark

if TYPE_CHECKING:
    from sarek_vulkan.runtime import VulkanDriver

_WIDTH = 4  # bytes of the words of vkCmdFillBuffer
_AGAIN = 0x4  # VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT
_ALIGNMENT = 16  # of arguments in a block


class VulkanGraphs:
    """See `sarek_numba.runtime.nodes.Graphs`."""

    widths: tuple[int, ...] | None = (_WIDTH,)

    def __init__(self, owner: VulkanDriver) -> None:
        self._owner = owner

    def build(self, nodes: Sequence[Node], behind: Sequence[frozenset[int]]) -> VulkanGraph:
        """See `sarek_numba.runtime.nodes.Graphs`."""
        return VulkanGraph(self._owner.logical, nodes, behind)


def levels_of(behind: Sequence[frozenset[int]]) -> list[list[int]]:
    """The nodes by the longest way to them: those of one level are independent of each other."""
    depths: list[int] = []
    levels: list[list[int]] = []
    for number, others in enumerate(behind):
        depth = max((depths[other] + 1 for other in others), default=0)
        depths.append(depth)
        if depth == len(levels):
            levels.append([])
        levels[depth].append(number)
    return levels


class _Recording:
    """A command buffer, recorded for a lane; `mark` is of its last submission."""

    def __init__(self, commands: Any) -> None:
        self.commands = commands
        self.lane: Lane | None = None
        self.mark: Mark | None = None
        self.arguments: Block | None = None

    @property
    def is_free(self) -> bool:
        """Whether it is under way nowhere."""
        mark = self.mark
        return mark is None or mark.lane.is_counted(mark.value)


class VulkanGraph:
    """See `sarek_numba.runtime.nodes.Graph`."""

    def __init__(
        self, logical: Logical, nodes: Sequence[Node], behind: Sequence[frozenset[int]]
    ) -> None:
        """Raises BackendError."""
        logical.refuse_lost()
        self._logical = logical
        self._levels = levels_of(behind)
        self._told = [_told(node) for node in nodes]
        self._names = [n.program.name for n in nodes if isinstance(n, LaunchNode)]  # type: ignore[attr-defined] # one of this driver
        self._nodes = list(nodes)
        self._programs = {told[0] for told in self._told}  # one under way may have earlier ones
        self._pool = self._new_pool()
        self._blocks: list[Block] = []
        self._recordings: list[_Recording] = []
        self._current: _Recording | None = None
        weakref.finalize(self, _destroy, logical, self._pool, self._blocks)

    def _new_pool(self) -> Any:
        ffi, logical = driver.ffi, self._logical
        assert logical.physical.family is not None, "as it has lanes"
        index = logical.physical.family.index
        info = driver.make("VkCommandPoolCreateInfo", flags=0x2, queueFamilyIndex=index)
        made = ffi.new("VkCommandPool *")
        result = logical.call.vkCreateCommandPool(logical.handle, info, ffi.NULL, made)
        logical.check(result, "recording a graph")
        return made[0]

    def update(self, changed: Mapping[int, Node]) -> bool:
        """See `sarek_numba.runtime.nodes.Graph`."""
        for k, node in changed.items():
            told = _told(node)
            self._nodes[k] = node
            self._programs.add(told[0])
            if told != self._told[k]:
                self._told[k], self._current = told, None
        return True

    def start(self, handle: Lane) -> Mark:
        """See `sarek_numba.runtime.nodes.Graph`."""
        with handle.lock:
            recording = self._current
            if recording is None or recording.lane is not handle:
                recording = self._recorded(handle)
            mark = handle.resubmit(recording.commands, self._names, self)
            recording.mark, self._current = mark, recording
        return mark

    # --- recording --------------------------------------------------------------------------------

    def _recorded(self, lane: Lane) -> _Recording:
        """A command buffer with the nodes as they are now.

        It is one lane's, whose word its launches set when their loops are given up.
        """
        logical, call = self._logical, self._logical.call
        recording = next((each for each in self._recordings if each.is_free), None)
        if recording is None:
            recording = _Recording(self._new_commands())
            self._recordings.append(recording)
        commands = recording.commands
        pushed = self._pushed(recording, lane)
        info = driver.make("VkCommandBufferBeginInfo", flags=_AGAIN)
        logical.check(call.vkBeginCommandBuffer(commands, info), "recording a graph")
        bound = None
        for level in self._levels:
            lane.barrier(commands)
            for k in level:
                node = self._nodes[k]
                match node:
                    case LaunchNode(program, grid):
                        pipeline = self._told[k][1]
                        program.put(call, commands, grid, pipeline, bound, pushed[k])  # type: ignore[attr-defined] # one of this driver
                        bound = pipeline
                    case CopyNode():
                        _put_copy(call, commands, node)
                    case FillNode(destination, word, count):
                        span = destination.span
                        value = int.from_bytes(word, "little")
                        size = _WIDTH * count
                        call.vkCmdFillBuffer(commands, span.buffer, span.offset, size, value)
        lane.host_barrier(commands)
        recording.lane = lane
        logical.check(call.vkEndCommandBuffer(commands), "recording a graph")
        return recording

    def _new_commands(self) -> Any:
        logical = self._logical
        info = driver.make(
            "VkCommandBufferAllocateInfo", commandPool=self._pool, level=0, commandBufferCount=1
        )
        made = driver.ffi.new("VkCommandBuffer *")
        result = logical.call.vkAllocateCommandBuffers(logical.handle, info, made)
        logical.check(result, "recording a graph")
        return made[0]

    def _pushed(self, recording: _Recording, lane: Lane) -> dict[int, bytes]:
        """The push constants of each launch; what does not fit them is put into a block."""
        pushed: dict[int, bytes] = {}
        spilled: dict[int, tuple[int, bytes]] = {}
        end = 0
        for k, node in enumerate(self._nodes):
            if not isinstance(node, LaunchNode):
                continue
            module, packed = node.program.module, self._told[k][3]  # type: ignore[attr-defined] # one of this driver
            if module.watched:
                packed = packed[: -layout.ADDRESS_BYTES] + lane.watch()
            if module.spilled:
                spilled[k] = end, packed
                end += -(-len(packed) // _ALIGNMENT) * _ALIGNMENT
            else:
                pushed[k] = packed
        if spilled:
            block = self._room(recording, end)
            for k, (at, packed) in spilled.items():
                target = driver.ffi.cast("char *", block.mapped + at)
                driver.ffi.memmove(target, packed, len(packed))
                pushed[k] = (block.address + at).to_bytes(layout.ADDRESS_BYTES, "little")
        return pushed

    def _room(self, recording: _Recording, size: int) -> Block:
        block = recording.arguments
        if block is None or block.size < size:
            block = recording.arguments = self._logical.arguments(size)
            self._blocks.append(block)
        return block


def _told(node: Node) -> tuple[Any, ...]:
    """All that is recorded of a node: equal if nothing is to be recorded anew."""
    match node:
        case LaunchNode(program, grid, block, shared_bytes, arguments):
            own: Any = program  # one of this driver
            return own, own.pipeline(block, shared_bytes), grid, own.packed(arguments)
        case CopyNode(destination, source, size):
            return CopyNode, *_place(destination), *_place(source), size
        case FillNode(destination, word, count):
            return FillNode, *_place(destination), word, count


def _place(part: Part) -> tuple[Any, int]:
    span = part.span
    return span.block, span.offset


def _put_copy(call: Any, commands: Any, node: CopyNode) -> None:
    source, target = node.source.span, node.destination.span
    region = driver.plain(
        "VkBufferCopy", srcOffset=source.offset, dstOffset=target.offset, size=node.size
    )
    call.vkCmdCopyBuffer(commands, source.buffer, target.buffer, 1, region)


def _destroy(logical: Logical, pool: Any, blocks: Sequence[Block]) -> None:
    """The work of the command buffers is done: it keeps the graph."""
    if logical.lost is not None or driver.is_forked():
        return
    logical.call.vkDestroyCommandPool(logical.handle, pool, driver.ffi.NULL)
    for block in blocks:
        logical.free(block)
