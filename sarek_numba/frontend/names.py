"""The names of variables in Numba's IR.

Numba gives a name a version wherever it redefines it, while it reads bytecode (`r.1`) and again in
SSA form (`r.1.2`). Its own `unversioned_name` takes off the last version alone.
"""

from __future__ import annotations


def user_name(name: str) -> str:
    """The user's name of a version; temporaries start with `$`."""
    return name.split(".")[0]


def is_temporary(name: str) -> bool:
    return name.startswith("$")
