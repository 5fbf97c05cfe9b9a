"""The oracle: an interpreter of Sarek IR on NumPy lanes, which is the meaning of the IR.

`execute` runs a kernel and reports every fault; `backend` makes it a device. Read in this order:
`launch` (chunks of blocks), `machine` (lanes, masks, frames), `code`, `statements`, `loops`,
`variables`, `expressions`, `operators`, `memory` (checked accesses), `views`, `races` (shadow
memory), `atomics`, `synchronise`, `report`, `driver`.
"""

from sarek_interp.driver import InterpreterBackend
from sarek_interp.launch import execute
from sarek_interp.report import Report
from sarek_numba.errors import Finding

__all__ = ["Finding", "Report", "backend", "execute"]

backend = InterpreterBackend()
