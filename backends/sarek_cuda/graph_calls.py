"""The calls of the CUDA driver that make, change and launch graphs. Each raises CudaError.

Graphs, their nodes and what is instantiated of them are the API's objects; parameters of nodes are
structures of it, which a call reads before it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sarek_numba.runtime.device import Dimensions


class GraphCalls:
    """The calls, by the module that has them and the check of what they give."""

    def __init__(self, cuda: Any, check: Callable[[tuple[Any, ...]], Any]) -> None:
        self._cuda = cuda
        self._check = check

    # --- parameters of nodes ---

    def launch_of(
        self, function: Any, grid: Dimensions, block: Dimensions, size: int, addresses: int
    ) -> Any:
        """A launch with dynamic shared memory; `addresses` is where those of arguments are."""
        params = self._cuda.CUDA_KERNEL_NODE_PARAMS()
        params.func = function
        params.gridDimX, params.gridDimY, params.gridDimZ = grid
        params.blockDimX, params.blockDimY, params.blockDimZ = block
        params.sharedMemBytes = size
        params.kernelParams = addresses
        return params

    def copy_of(self, to: int, of: int, size: int) -> Any:
        """A copy within the memory of devices."""
        params = self._cuda.CUDA_MEMCPY3D()
        kind = self._cuda.CUmemorytype.CU_MEMORYTYPE_DEVICE
        params.srcMemoryType, params.srcDevice = kind, of
        params.dstMemoryType, params.dstDevice = kind, to
        params.WidthInBytes, params.Height, params.Depth = size, 1, 1
        return params

    def fill_of(self, to: int, value: int, width: int, count: int) -> Any:
        """Words of 1, 2 or 4 bytes, so many of them."""
        params = self._cuda.CUDA_MEMSET_NODE_PARAMS()
        params.dst, params.value, params.elementSize = to, value, width
        params.width, params.height, params.pitch = count, 1, 0
        return params

    # --- graphs ---

    def create(self) -> Any:
        """A graph without nodes."""
        return self._check(self._cuda.cuGraphCreate(0))

    def add_launch(self, graph: Any, behind: Sequence[Any], params: Any) -> Any:
        """A node behind others."""
        return self._check(
            self._cuda.cuGraphAddKernelNode(graph, list(behind), len(behind), params)
        )

    def add_copy(self, graph: Any, behind: Sequence[Any], params: Any, context: int) -> Any:
        """A node behind others."""
        add = self._cuda.cuGraphAddMemcpyNode
        return self._check(add(graph, list(behind), len(behind), params, context))

    def add_fill(self, graph: Any, behind: Sequence[Any], params: Any, context: int) -> Any:
        """A node behind others."""
        add = self._cuda.cuGraphAddMemsetNode
        return self._check(add(graph, list(behind), len(behind), params, context))

    def instantiate(self, graph: Any) -> Any:
        """What is launched of a graph."""
        return self._check(self._cuda.cuGraphInstantiate(graph, 0))

    # --- what is instantiated ---

    def set_launch(self, ready: Any, node: Any, params: Any, context: int) -> None:
        """For launches of the graph from now on."""
        self._check(self._cuda.cuGraphExecKernelNodeSetParams(ready, node, params))

    def set_copy(self, ready: Any, node: Any, params: Any, context: int) -> None:
        """For launches of the graph from now on."""
        self._check(self._cuda.cuGraphExecMemcpyNodeSetParams(ready, node, params, context))

    def set_fill(self, ready: Any, node: Any, params: Any, context: int) -> None:
        """For launches of the graph from now on."""
        self._check(self._cuda.cuGraphExecMemsetNodeSetParams(ready, node, params, context))

    @property
    def launch(self) -> Any:
        """The call that launches: what is instantiated, a stream; it gives a tuple with the status,
        which is false for success.
        """
        return self._cuda.cuGraphLaunch

    def destroy(self, graph: Any, ready: Any) -> None:
        """Give both up; `ready` may be None."""
        if ready is not None:
            self._check(self._cuda.cuGraphExecDestroy(ready))
        self._check(self._cuda.cuGraphDestroy(graph))
