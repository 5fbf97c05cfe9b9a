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
_IN_KERNELS = "call the functions of sarek.coopmat in the kernel itself"
_ONCE = "declare each fragment once, before the branch or loop"


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
            fault = _fault(inferer, inst, kernel)
            if fault is not None:
                message, hint = fault
                span = inferer.source.span_of(inst)
                found.append(Diagnostic(UnsupportedConstruct, message, span, hint))
    return found


def _fault(inferer: Inferer, inst: Any, kernel: bool) -> tuple[str, str] | None:
    """What is wrong with a statement that has a fragment in it, and what to do instead."""
    value = inst.value if isinstance(inst, ir.Assign) else None
    what = getattr(inferer.operations.get(value), "what", None)
    operator = value.op if isinstance(value, ir.Expr) else None
    if isinstance(what, t.Fragment):
        return None if kernel else ("a device function declares a fragment", _IN_KERNELS)
    if isinstance(what, t.Matrix):
        return None
    if isinstance(value, ir.Var):
        if value.is_temp and not inst.target.is_temp:
            return None  # the name that the declaration gives it
        return "a fragment has a second name", "use the name that it has"
    if operator == "phi":
        return "a name stands for one fragment here, and for another or for none there", _ONCE
    if operator == "build_tuple":
        return "a fragment is put into a tuple", _HINT
    return "a fragment is used as a value", _HINT
