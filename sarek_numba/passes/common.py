"""What all passes share: the target as they see it, and the bodies of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from sarek_numba.ir.nodes import Body, Kernel


class Target(Protocol):
    """The part of `codegen.target.Target` that passes look at."""

    @property
    def address_bits(self) -> int: ...

    @property
    def calls(self) -> bool: ...

    @property
    def inline_barriers(self) -> bool: ...


Pass = Callable[[Kernel, Target], Kernel]


def map_bodies(kernel: Kernel, function: Callable[[Body], Body]) -> Kernel:
    """`function` applied to the body of the kernel and of each helper."""
    body = function(kernel.body)
    bodies = [function(helper.body) for helper in kernel.functions]
    same = all(new is helper.body for new, helper in zip(bodies, kernel.functions, strict=True))
    if same:
        return kernel if body is kernel.body else replace(kernel, body=body)
    functions = tuple(
        replace(helper, body=new) for new, helper in zip(bodies, kernel.functions, strict=True)
    )
    return replace(kernel, body=body, functions=functions)
