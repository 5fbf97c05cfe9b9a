"""CUDA devices behind the contract of `sarek_numba.runtime.device`."""

from __future__ import annotations

from functools import partial
from typing import Any

from sarek_cuda import driver
from sarek_cuda.dialect import DIALECT, STATIC_SHARED_BYTES, TARGET
from sarek_cuda.plans import CudaPlans
from sarek_cuda.record import architecture_for, capability_of, options_for, record_of
from sarek_numba.runtime.cudalike.device import CudalikeBackend, CudalikeDriver, Toolchain
from sarek_numba.runtime.languages import Language


class CudaDriver(CudalikeDriver):
    """One CUDA device."""

    def __init__(self, api: driver.Api, device: Any, name: str) -> None:
        super().__init__(api, device, record_of(api, device, name), _toolchain(api, device))
        self.plans = CudaPlans(self)


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
    )


backend = CudalikeBackend("cuda", driver.api, CudaDriver)
