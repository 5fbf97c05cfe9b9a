"""SPIR-V and GLSL that others wrote. How arguments find their parameters: docs/execute.md."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.errors import (
    InvalidArgument,
    InvalidDimensions,
    SourceCompilationError,
    UnsupportedLanguage,
)
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.languages import Language
from sarek_vulkan import driver, foreign
from sarek_vulkan.foreign import Foreign
from sarek_vulkan.layout import SHARED_CONSTANT
from sarek_vulkan.memory import Buffer, Part, Span
from sarek_vulkan.pipelines import Pipelines
from sarek_vulkan.queues import Batch, Lane, Mark

if TYPE_CHECKING:
    from sarek_vulkan.runtime import VulkanDriver

_ENTRY_OF_GLSL = "main"
_COMPILERS = {  # of GLSL: the arguments before the names of the output and the input
    "glslangValidator": ("-V", "--target-env", "vulkan1.2", "-S", "comp", "-o"),
    "glslc": ("--target-env=vulkan1.2", "-fshader-stage=compute", "-o"),
}
_NEWEST = {driver.VERSION_1_2: (1, 5), driver.VERSION_1_3: (1, 6)}  # SPIR-V of a version of Vulkan
_STORAGE_BUFFER = 7  # VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
_LONGEST = 60  # seconds that a compiler may take


class VulkanExternals:
    """See `sarek_numba.runtime.languages.Externals`."""

    languages = frozenset({Language.SPIRV, Language.GLSL})

    def __init__(self, owner: VulkanDriver) -> None:
        self._owner = owner

    def compile(self, language: Language, source: str | bytes, name: str) -> VulkanExternal:
        """Checked, and compiled where it is GLSL, whose one kernel is `main`.

        Raises UnsupportedLanguage without a compiler of GLSL.
        """
        if language is Language.GLSL:
            text = source.decode() if isinstance(source, bytes) else source
            words = _compiled(text, name)
        else:
            words = source.encode("latin-1", "replace") if isinstance(source, str) else source
        module = foreign.read(words, name)
        self._check(module, name)
        validate(words, module.version)
        return VulkanExternal(self._owner, words, module, name)

    def _check(self, module: Foreign, name: str) -> None:
        """Refuse what the device was not told that it would be used."""
        physical = self._owner.physical
        newest = _NEWEST[max(v for v in _NEWEST if v <= physical.version)]
        if module.version > newest:
            found = ".".join(map(str, module.version))
            raise foreign.invalid(
                f"it is SPIR-V {found}, and {self._owner.record.name} takes up to "
                f"{'.'.join(map(str, newest))}"
            )
        wanted = set(module.capabilities) - foreign.ALWAYS
        missing = sorted(wanted - physical.capabilities)
        if missing:
            raise foreign.invalid(
                f"kernel '{name}' needs {', '.join(missing)}, which {self._owner.record.name} "
                "does not have"
            )
        limit = int(physical.limits["maxPushConstantsSize"])
        if module.push_bytes > limit:
            raise foreign.invalid(f"it has {module.push_bytes} bytes of push constants of {limit}")


def _tool(name: str) -> str | None:
    """An installed program, also one that a wheel brought."""
    found = shutil.which(name)
    if found is None:
        spec = importlib.util.find_spec("cmeel")
        if spec is not None and spec.origin is not None:
            beside = Path(spec.origin).parents[1] / "cmeel.prefix" / "bin" / name
            found = str(beside) if beside.is_file() else None
    return found


def _compiled(text: str, name: str) -> bytes:
    """GLSL as SPIR-V words. Raises UnsupportedLanguage, InvalidArgument, SourceCompilationError."""
    if name != _ENTRY_OF_GLSL:
        raise InvalidArgument(
            f"the source has no kernel '{name}'\n  hint: a kernel in GLSL is called main"
        )
    found = ((program, path) for program in _COMPILERS if (path := _tool(program)) is not None)
    program, path = next(found, ("", ""))
    if not path:
        raise UnsupportedLanguage(
            "GLSL needs an installed glslangValidator or glslc (shaderc), and there is none\n"
            "  hint: apt-get install glslang-tools, or give the kernel as SPIR-V"
        )
    with tempfile.TemporaryDirectory(prefix="sarek-glsl-") as folder:
        source, made = Path(folder, "kernel.comp"), Path(folder, "kernel.spv")
        source.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [path, *_COMPILERS[program], str(made), str(source)],
            capture_output=True,
            text=True,
            timeout=_LONGEST,
            check=False,
        )
        if done.returncode or not made.is_file():
            log = (done.stdout + done.stderr).replace(str(source), "kernel.comp").strip()
            raise SourceCompilationError(f"{program} rejects the program", text, log)
        return made.read_bytes()


def validate(words: bytes, version: tuple[int, int]) -> None:
    """Have spirv-val look at a module of a version of SPIR-V, where it is installed.

    Raises SourceCompilationError.
    """
    path = _tool("spirv-val")
    if path is None:
        return
    environment = "vulkan1.2" if version <= (1, 5) else "vulkan1.3"
    done = subprocess.run(
        [path, "--scalar-block-layout", "--target-env", environment, "-"],
        input=words,
        capture_output=True,
        timeout=_LONGEST,
        check=False,
    )
    if done.returncode:
        raise foreign.invalid("spirv-val rejects it", done.stderr.decode("utf-8", "replace"))


class VulkanExternal:
    """See `sarek_numba.runtime.languages.External`, `Separate`."""

    types: tuple[np.dtype[Any] | None, ...] | None = None
    shared_parameter = False

    def __init__(self, owner: VulkanDriver, words: bytes, module: Foreign, name: str) -> None:
        self._owner = owner
        self._module = module
        self._name = name
        self.memory = module.memory
        self.numbers = module.numbers
        self._sets = _set_layouts(owner, module)
        layout = owner.logical.pipeline_layout(module.push_bytes, self._sets)
        self._pipelines = Pipelines(owner, words, name, layout, None)
        self._free: list[tuple[Any, Any]] = []
        self._lock = threading.Lock()

    def check(self, block: Dimensions, shared_bytes: int) -> None:
        """See `sarek_numba.runtime.languages.Separate`."""
        module, name = self._module, self._name
        stated = tuple(b if s < 0 else s for s, b in zip(module.block, block, strict=True))
        if stated != tuple(block):
            raise InvalidDimensions(
                f"kernel '{name}': its module states blocks of {stated}, and the launch has {block}"
                f"\n  hint: block={stated}, or declare local_size_x_id = 0"
            )
        dimensions = {-1 - size for size in module.block if size < 0}
        if shared_bytes and (
            SHARED_CONSTANT in dimensions or SHARED_CONSTANT not in module.constants
        ):
            raise InvalidArgument(
                f"kernel '{name}' has no dynamic shared memory, and the launch asks for "
                f"{shared_bytes} bytes\n  hint: the specialisation constant {SHARED_CONSTANT} "
                "takes them where a module has one"
            )

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """See `sarek_numba.runtime.languages.External`."""
        lane = self._owner.lane
        lane.wait(self.enqueue(lane, grid, block, shared_bytes, arguments))

    def enqueue(
        self,
        handle: Lane,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> Mark:
        """See `sarek_numba.runtime.languages.External`."""
        self.check(block, shared_bytes)
        if 0 in grid or 0 in block:
            return handle.mark()
        pipeline = self._pipeline(block, shared_bytes)
        memory = [a for a in arguments if isinstance(a, Buffer | Part)]
        numbers = [a for a in arguments if not isinstance(a, Buffer | Part)]
        bound, referenced = (
            memory[: len(self._module.bindings)],
            memory[len(self._module.bindings) :],
        )
        self._check_ranges(bound)
        pushed = self._pushed(referenced, numbers)
        logical = handle.logical
        call = logical.call
        with handle.lock:
            copies = [_Aligned.of(self._owner, each, logical) for each in bound]
            for copy in copies:
                copy.bring(handle)
            batch = handle.begin()
            commands = batch.commands
            call.vkCmdBindPipeline(commands, 1, pipeline)
            batch.bound = pipeline
            batch.kept.append(self._pipelines)
            if self._sets:
                self._bind(batch, [copy.span for copy in copies])
            if pushed:
                data = driver.ffi.from_buffer(pushed)
                call.vkCmdPushConstants(
                    commands, self._pipelines.layout, 0x20, 0, len(pushed), data
                )
            call.vkCmdDispatch(commands, *grid)
            mark = handle.end(batch, copies, self._name)
            for copy in copies:
                mark = copy.return_to(handle) or mark
            return mark

    def _pipeline(self, block: Dimensions, shared_bytes: int) -> Any:
        constants = {
            -1 - size: block[axis] for axis, size in enumerate(self._module.block) if size < 0
        }
        if shared_bytes:
            constants[SHARED_CONSTANT] = shared_bytes
        return self._pipelines.special(constants, (*block, shared_bytes))

    def _check_ranges(self, bound: Sequence[Buffer | Part]) -> None:
        limit = int(self._owner.physical.limits["maxStorageBufferRange"])
        for k, each in enumerate(bound):
            if each.span.size > limit:
                raise InvalidArgument(
                    f"kernel '{self._name}': array {k} has {each.span.size} bytes, and a storage "
                    f"buffer of {self._owner.record.name} at most {limit} (maxStorageBufferRange)\n"
                    "  hint: a buffer reference in the push constants has no such limit"
                )

    def _pushed(self, referenced: Sequence[Buffer | Part], numbers: Sequence[Any]) -> bytes:
        content = bytearray(self._module.push_bytes)
        addresses, values = iter(referenced), iter(numbers)
        for member in self._module.members:
            raw = (
                next(addresses).address.to_bytes(8, "little")
                if member.type is None
                else next(values).tobytes()
            )
            content[member.offset : member.offset + member.size] = raw
        return bytes(content)

    # --- descriptor sets --------------------------------------------------------------------------

    def _bind(self, batch: Batch, spans: Sequence[Span]) -> None:
        """Bind descriptor sets that are this launch's until it is done."""
        ffi, logical = driver.ffi, self._owner.logical
        with self._lock:
            pool, sets = self._free.pop() if self._free else self._new_sets()
        batch.kept.append(_Return(self, pool, sets))
        infos = ffi.new("VkDescriptorBufferInfo[]", len(spans))
        writes = ffi.new("VkWriteDescriptorSet[]", len(spans))
        for k, (span, (set, binding)) in enumerate(zip(spans, self._module.bindings, strict=True)):
            infos[k].buffer, infos[k].offset = span.buffer, span.offset
            infos[k].range = max(4, span.size)
            write = driver.make(
                "VkWriteDescriptorSet",
                dstSet=sets[set],
                dstBinding=binding,
                descriptorCount=1,
                descriptorType=_STORAGE_BUFFER,
                pBufferInfo=infos + k,
            )
            writes[k] = write[0]
        logical.call.vkUpdateDescriptorSets(logical.handle, len(spans), writes, 0, ffi.NULL)
        logical.call.vkCmdBindDescriptorSets(
            batch.commands, 1, self._pipelines.layout, 0, len(self._sets), sets, 0, ffi.NULL
        )

    def _new_sets(self) -> tuple[Any, Any]:
        ffi, logical = driver.ffi, self._owner.logical
        size = driver.plain(
            "VkDescriptorPoolSize",
            type=_STORAGE_BUFFER,
            descriptorCount=max(1, len(self._module.bindings)),
        )
        info = driver.make(
            "VkDescriptorPoolCreateInfo",
            maxSets=len(self._sets),
            poolSizeCount=1,
            pPoolSizes=size,
        )
        pool = ffi.new("VkDescriptorPool *")
        result = logical.call.vkCreateDescriptorPool(logical.handle, info, ffi.NULL, pool)
        logical.check(result, "making descriptors")
        layouts = ffi.new("VkDescriptorSetLayout[]", self._sets)
        wanted = driver.make(
            "VkDescriptorSetAllocateInfo",
            descriptorPool=pool[0],
            descriptorSetCount=len(self._sets),
            pSetLayouts=layouts,
        )
        sets = ffi.new("VkDescriptorSet[]", len(self._sets))
        result = logical.call.vkAllocateDescriptorSets(logical.handle, wanted, sets)
        logical.check(result, "making descriptors")
        return pool[0], sets

    def give_back(self, pool: Any, sets: Any) -> None:
        """Descriptor sets that no launch uses any more."""
        self._free.append((pool, sets))


class _Return:
    """Gives descriptor sets back when the command buffer that uses them is done."""

    def __init__(self, owner: VulkanExternal, pool: Any, sets: Any) -> None:
        weakref.finalize(self, owner.give_back, pool, sets).atexit = False


def _set_layouts(owner: VulkanDriver, module: Foreign) -> list[Any]:
    """A layout for each descriptor set, those in between that have no bindings included."""
    ffi, logical = driver.ffi, owner.logical
    layouts = []
    for set in range(max((s for s, _ in module.bindings), default=-1) + 1):
        numbers = [binding for s, binding in module.bindings if s == set]
        bindings = ffi.new("VkDescriptorSetLayoutBinding[]", max(1, len(numbers)))
        for k, number in enumerate(numbers):
            bindings[k].binding, bindings[k].descriptorType = number, _STORAGE_BUFFER
            bindings[k].descriptorCount, bindings[k].stageFlags = 1, 0x20
        info = driver.make(
            "VkDescriptorSetLayoutCreateInfo", bindingCount=len(numbers), pBindings=bindings
        )
        made = ffi.new("VkDescriptorSetLayout *")
        result = logical.call.vkCreateDescriptorSetLayout(logical.handle, info, ffi.NULL, made)
        logical.check(result, "making a descriptor set layout")
        layouts.append(made[0])
    return layouts


class _Aligned:
    """Bytes where a descriptor may begin: themselves, or a copy for one launch."""

    def __init__(self, whole: Span, copy: Span | None) -> None:
        self._whole = whole
        self._copy = copy
        self.span = copy or whole

    @classmethod
    def of(cls, owner: VulkanDriver, memory: Buffer | Part, logical: Any) -> _Aligned:
        """A copy is needed where the bytes begin at no multiple of the device's alignment."""
        span = memory.span
        if span.offset % int(logical.physical.limits["minStorageBufferOffsetAlignment"]) == 0:
            return cls(span, None)
        room = owner.vulkan_memory.temporary(span.size)
        made = cls(span, Span(room.block, room.offset, span.size, room.address))
        weakref.finalize(made, owner.vulkan_memory.end_temporary, room).atexit = False
        return made

    def bring(self, lane: Lane) -> None:
        """Fill the copy."""
        if self._copy is not None:
            lane.record_copy(self._whole, self._copy)

    def return_to(self, lane: Lane) -> Mark | None:
        """Bring the copy back."""
        return None if self._copy is None else lane.record_copy(self._copy, self._whole, self)
