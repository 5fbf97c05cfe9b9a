"""How deep the recursion over IR may go."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Five Python frames for each of a thousand levels, four times over. Frames of pure Python code take
# no C stack since CPython 3.11.
_DEEP_LIMIT = 20_000
_deep_lock = threading.Lock()
_deep_users = 0
_usual_limit = 0


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Allow recursion over deep expressions; the last user restores the interpreter's limit."""
    global _deep_users, _usual_limit
    with _deep_lock:
        if _deep_users == 0:
            _usual_limit = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_usual_limit, _DEEP_LIMIT))
        _deep_users += 1
    try:
        yield
    finally:
        with _deep_lock:
            _deep_users -= 1
            if _deep_users == 0:
                sys.setrecursionlimit(_usual_limit)
