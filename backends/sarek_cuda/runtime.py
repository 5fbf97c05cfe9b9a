"""CUDA devices behind the contract of `sarek_numba.runtime.device`."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

from sarek_cuda import adopting, driver, ptx
from sarek_cuda.dialect import DIALECT, STATIC_SHARED_BYTES, TARGET
from sarek_cuda.graphs import CudaGraphs
from sarek_cuda.products import Products
from sarek_cuda.record import architecture_for, capability_of, options_for, record_of
from sarek_numba.runtime.adopted import DeviceArray
from sarek_numba.runtime.cudalike.device import CudalikeBackend, CudalikeDriver, Toolchain
from sarek_numba.runtime.cudalike.queues import Stream
from sarek_numba.runtime.languages import Language
from sarek_numba.runtime.nodes import Graphs
from sarek_numba.runtime.products import OwnKernel, ProductOrder


class CudaDriver(CudalikeDriver):
    """One CUDA device."""

    def __init__(self, api: driver.Api, device: Any, name: str) -> None:
        super().__init__(api, device, record_of(api, device, name), _toolchain(api, device))
        self.cuda = api
        self.graphs: Graphs = CudaGraphs(self)
        parts = api.attribute(device, "MULTIPROCESSOR_COUNT")
        self._products = Products(self, capability_of(api, device), parts)
        self._others: dict[int, Stream] = {}  # streams of other libraries, by their numbers

    def product(self, order: ProductOrder) -> OwnKernel | str:
        """See `sarek_numba.runtime.products.MakesProducts`."""
        return self._products.product(order)

    def stream_of(self, number: int) -> Stream:
        """A stream that another library has, each of whose launches has an event here.

        Raises BackendError.
        """
        with self._lock:
            found = self._others.get(number)
            if found is None:
                with driver.check("making an event", self.access):
                    event = self.cuda.event(timed=False)
                raw, no_pool = self.cuda.stream_of(number), deque[Any]()
                found = self._others[number] = Stream(raw, event, no_pool, each=True)
            return found


def _toolchain(api: driver.Api, device: Any) -> Toolchain:
    """Raises BackendUnavailable for a device that NVRTC does not compile for."""
    architecture = architecture_for(capability_of(api, device), api.architectures())
    options = options_for(architecture)
    return Toolchain(
        target=TARGET,
        dialect=DIALECT,
        fast_dialect=DIALECT,
        options=options,
        fast_options=options_for(architecture, fast=True),
        plain_options=options[:2],
        compile=partial(api.compile, ptx=architecture.ptx),
        static_shared_bytes=STATIC_SHARED_BYTES,
        texts=frozenset({Language.CUDA}),
        images=frozenset({Language.PTX}),
        declarations=partial(api.compile, ptx=True),
        parameters=ptx.parameters,
    )


class CudaBackend(CudalikeBackend):
    """All CUDA devices of this process; an `Adopter`."""

    def __init__(self) -> None:
        super().__init__("cuda", driver.api, CudaDriver)

    def adopt(self, value: Any) -> DeviceArray | None:
        """See `sarek_numba.runtime.adopted.Adopter`."""
        return adopting.adopt(value, self._own())

    def driver_of(self, value: Any) -> CudaDriver | None:
        """See `sarek_numba.runtime.adopted.Adopter`."""
        return adopting.driver_of(value, self._own())

    def _own(self) -> Sequence[CudaDriver]:
        return [each for each in self.drivers() if isinstance(each, CudaDriver)]


backend = CudaBackend()
