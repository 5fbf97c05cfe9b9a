"""Pipelines of one module; what the driver's compiler made is kept for later processes."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from sarek_numba.runtime import disk
from sarek_vulkan import driver

if TYPE_CHECKING:
    from sarek_vulkan.logical import Logical
    from sarek_vulkan.runtime import VulkanDriver

_CACHE_HEAD = 32  # bytes of a pipeline cache that say whose it is


class Pipelines:
    """The pipelines of one module: for each block and number of shared bytes one.

    What the driver's compiler made is kept on disk. They go with this object, so command buffers
    keep it until they are done.
    """

    def __init__(
        self, owner: VulkanDriver, words: bytes, entry: str, layout: Any, subgroup: int | None
    ) -> None:
        self._owner = owner
        self._entry = entry
        self._subgroup = subgroup
        self.layout = layout
        self._module = owner.logical.shader_module(words)
        self._made: dict[tuple[int, ...], Any] = {}
        self._lock = threading.Lock()
        self._key = disk.key_of("vulkan", owner.record.identity, words, entry, subgroup)
        self._kept = self._from_disk()
        self._cache = self._new_cache(self._kept)
        made = owner.logical, self._module, self._cache, self._made
        weakref.finalize(self, _destroy, *made).atexit = False

    def get(self, *constants: int) -> Any:
        """The pipeline for values of the specialisation constants 0, 1, …"""
        found = self._made.get(constants)
        return found if found is not None else self.special(dict(enumerate(constants)), constants)

    def special(self, constants: dict[int, int], key: tuple[int, ...]) -> Any:
        """The pipeline for values of specialisation constants by number."""
        with self._lock:
            found = self._made.get(key)
            if found is None:
                found = self._owner.logical.pipeline(
                    self._module, self._entry, self.layout, constants, self._cache, self._subgroup
                )
                self._keep()
                self._made[key] = found
            return found

    def _from_disk(self) -> bytes:
        kept = disk.load("vulkan", self._key)
        if kept is None:
            return b""
        if kept[16:_CACHE_HEAD] != self._owner.physical.cache_uuid:
            disk.drop("vulkan", self._key)
            return b""
        return kept

    def _new_cache(self, content: bytes) -> Any:
        ffi, logical = driver.ffi, self._owner.logical
        data = ffi.new("char[]", content) if content else ffi.NULL
        info = driver.make(
            "VkPipelineCacheCreateInfo", initialDataSize=len(content), pInitialData=data
        )
        made = ffi.new("VkPipelineCache *")
        result = logical.call.vkCreatePipelineCache(logical.handle, info, ffi.NULL, made)
        logical.check(result, "making a pipeline cache")
        return made[0]

    def _keep(self) -> None:
        """Keep what is new in the cache. A driver may have nothing to keep."""
        ffi, logical = driver.ffi, self._owner.logical
        size = ffi.new("size_t *")
        get = logical.call.vkGetPipelineCacheData
        if get(logical.handle, self._cache, size, ffi.NULL) != driver.SUCCESS:
            return
        data = ffi.new("char[]", int(size[0]))
        if get(logical.handle, self._cache, size, data) != driver.SUCCESS:
            return
        content = bytes(ffi.buffer(data, size[0]))
        if len(content) > _CACHE_HEAD and content != self._kept:
            self._kept = content
            disk.save("vulkan", self._key, content)


def _destroy(logical: Logical, module: Any, cache: Any, made: dict[tuple[int, ...], Any]) -> None:
    """Nothing uses them any more."""
    if logical.lost is not None or driver.is_forked():
        return
    handle, call, null = logical.handle, logical.call, driver.ffi.NULL
    for pipeline in made.values():
        call.vkDestroyPipeline(handle, pipeline, null)
    call.vkDestroyPipelineCache(handle, cache, null)
    call.vkDestroyShaderModule(handle, module, null)
