"""HIP devices behind the contract of `sarek_numba.runtime.device`."""

from __future__ import annotations

from sarek_hip import driver
from sarek_hip.dialect import DIALECT, TARGET, contracting
from sarek_hip.record import options_for, plain_options, record_of
from sarek_numba.runtime.cudalike.device import CudalikeBackend, CudalikeDriver, Toolchain
from sarek_numba.runtime.languages import Language


class HipDriver(CudalikeDriver):
    """One HIP device."""

    def __init__(self, api: driver.Api, device: int, name: str) -> None:
        record = record_of(api, device, name)
        architecture = dict(record.identity)["architecture"]
        toolchain = Toolchain(
            target=TARGET,
            dialect=DIALECT,
            fast_dialect=contracting(DIALECT),
            options=options_for(architecture),
            fast_options=options_for(architecture, fast=True),
            plain_options=plain_options(architecture),
            compile=api.compile,
            static_shared_bytes=record.limits.shared_bytes,
            texts=frozenset({Language.HIP}),
        )
        super().__init__(api, device, record, toolchain)


backend = CudalikeBackend("hip", driver.api, HipDriver)
