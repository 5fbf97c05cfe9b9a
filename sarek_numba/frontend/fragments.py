"""What a kernel may do with a fragment of a cooperative matrix.

A fragment is declared once, under one name, and only the functions of `sarek.coopmat` take it: it
is no value that could be copied, chosen, passed or returned.
"""

from __future__ import annotations

from typing import Any

from numba.core import ir

from sarek_numba.errors import Diagnostic, UnsupportedConstruct
from sarek_numba.frontend import typed as t
from sarek_numba.frontend.extensions import FragmentType
from sarek_numba.frontend.inferer import Inferer

_HINT = "sarek.coopmat.load, store, muladd and fill are all that takes a fragment"


def check_fragments(inferer: Inferer, kernel: bool) -> list[Diagnostic]:
    """Everything that is done with a fragment besides its declaration and its operations."""
    fragments = {
        name for name, known in inferer.typevars.items() if isinstance(known.type, FragmentType)
    }
    if not fragments:
        return []
    found = []
    for block in inferer.blocks.values():
        for inst in block.body:
            names = [variable.name for variable in inst.list_vars()]
            if fragments.isdisjoint(names):
                continue
            message = _fault(inferer, inst, kernel)
            if message is not None:
                span = inferer.source.span_of(inst)
                found.append(Diagnostic(UnsupportedConstruct, message, span, _HINT))
    return found


def _fault(inferer: Inferer, inst: Any, kernel: bool) -> str | None:
    """What is wrong with a statement that has a fragment in it."""
    value = inst.value if isinstance(inst, ir.Assign) else None
    operation = inferer.operations.get(value)
    if operation is not None and isinstance(operation.what, t.Fragment):
        return None if kernel else "a device function declares a fragment, which only kernels have"
    if operation is not None and isinstance(operation.what, t.Matrix):
        return None
    if isinstance(value, ir.Var) and value.is_temp and not inst.target.is_temp:
        return None  # the name that the declaration gives it
    if isinstance(value, ir.Expr) and value.op == "phi":
        return "a name stands for one fragment here and for another, or for none, there"
    if isinstance(value, ir.Var):
        return "a fragment has a second name"
    if operation is not None and isinstance(operation.what, t.Call):
        return f"a fragment is passed to {operation.what.callee.name}()"
    if isinstance(inst, ir.Return) or (isinstance(value, ir.Expr) and value.op == "cast"):
        return "a fragment is returned"
    if isinstance(value, ir.Expr) and value.op == "build_tuple":
        return "a fragment is put into a tuple"
    return "a fragment is used as a value"
