"""The promise of `@sarek.kernel(restrict=True)`, checked before anything runs.

No array that the kernel writes may share a byte with another argument. What counts is the range
from an array's first to its last byte: the even and the odd elements of one array overlap.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import combinations

from sarek_numba.errors import InvalidArgument
from sarek_numba.runtime.arguments import Arguments
from sarek_numba.runtime.memory import address, extent


def check_apart(kernel: str, names: Sequence[str], arguments: Arguments, writes: Set[int]) -> None:
    """Compare each array that is written with all others. Raises InvalidArgument."""
    ranges = {
        position: extent(arguments.values[position], address(arguments.values[position]))
        for position in arguments.arrays
    }
    for first, second in combinations(ranges, 2):
        left, right = arguments.owner(first), arguments.owner(second)
        if left not in writes and right not in writes:
            continue
        written, other = (left, right) if left in writes else (right, left)
        start = max(ranges[first][0], ranges[second][0])
        end = min(ranges[first][1], ranges[second][1])
        if start < end:
            shared = f"{end - start} byte{'' if end - start == 1 else 's'}"
            raise InvalidArgument(
                f"kernel '{kernel}' has restrict=True, and argument '{names[written]}', which it "
                f"writes, overlaps '{names[other]}' in {shared}\n"
                "  hint: pass a copy of one of them, or leave out restrict"
            )
