"""Which element types of a program need a spelling that may alias others.

Arguments may overlap, and so may views of the dynamic shared region, whatever their element types.
C compilers assume that objects of different types do not: an access through an `int *` may be moved
past one through a `float *`. Types of one byte alias everything, and types that differ in the sign
alone each other. In a program that accesses elements of several such families in one memory, all
families but one are spelled with the dialect's `aliasing` attribute; the one that most arrays have
keeps its plain name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sarek_numba.ir.nodes import Kernel, SharedDecl
from sarek_numba.ir.types import Array, ElementType, MemSpace, Scalar, Vec


def aliasing_name(type: str) -> str:
    """The name under which a type of the dialect may alias others."""
    return f"aliasing_{type}".replace(" ", "_")


def aliasing_types(kernel: Kernel) -> frozenset[Scalar]:
    """The element types to be spelled so that they may alias those of other families."""
    arguments: list[ElementType] = []
    for decl in kernel.params:
        match decl.var.type:
            case Vec(element=element) | Array(element=element, space=MemSpace.GLOBAL):
                arguments.append(element)
            case _:
                pass
    region = [d.element for d in kernel.locals if isinstance(d, SharedDecl) and d.size is None]
    return _all_but_one_family(arguments) | _all_but_one_family(region)


def _all_but_one_family(elements: Iterable[ElementType]) -> frozenset[Scalar]:
    wide = [e for e in elements if isinstance(e, Scalar) and e is not Scalar.BOOL and e.bits > 8]
    families = Counter((scalar.is_float, scalar.bits) for scalar in wide)
    if not families:
        return frozenset()
    [(most, _)] = families.most_common(1)  # of several, the first in the order of the parameters
    return frozenset(scalar for scalar in wide if (scalar.is_float, scalar.bits) != most)
