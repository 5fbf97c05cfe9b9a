"""Vectors on several devices: a part for each, in memory of its own.

`realize.several` makes them and copies between them; a launch with some runs once on each device,
which `positions` makes of its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.errors import InvalidArgument
from sarek_numba.runtime import recorders
from sarek_numba.runtime.registry import Device, device
from sarek_numba.runtime.signature import DEVICE_NUMBER
from sarek_numba.runtime.soa import SoAVector
from sarek_numba.runtime.vector import Vector


class ShardedVector:
    """A part for each of several devices; made by `sarek.shard`.

    Along `axis` the parts are what one vector had, in order; of None each is all of it.
    """

    __slots__ = ("axis", "devices", "parts")

    def __init__(
        self, parts: Sequence[Vector], devices: Sequence[Device], axis: int | None
    ) -> None:
        self.parts = tuple(parts)
        self.devices = tuple(devices)
        self.axis = axis

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element."""
        return self.parts[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes of the whole."""
        shape = list(self.parts[0].shape)
        if self.axis is not None:
            shape[self.axis] = sum(part.shape[self.axis] for part in self.parts)
        return tuple(shape)

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return self.parts[0].ndim

    @property
    def size(self) -> int:
        """How many elements the whole has."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a vector without axes has no length")
        return self.shape[0]

    def fill(self, value: Any) -> None:
        """Set every element of every part."""
        for part in self.parts:
            part.fill(value)

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """All elements on the host, a copy; of what each device has wholly, the first one's."""
        if copy is False:
            raise ValueError("a vector on several devices is no array without a copy")
        recorders.refuse_host_read()
        parts = [np.asarray(part) for part in self.parts]
        whole = parts[0] if self.axis is None else np.concatenate(parts, self.axis)
        return np.array(whole, dtype)

    def __reduce__(self) -> Any:
        return _restored, (self.parts, tuple(d.name for d in self.devices), self.axis)

    def __repr__(self) -> str:
        axes = ", ".join(map(str, self.shape))
        how = "a copy each" if self.axis is None else f"along axis {self.axis}"
        where = ", ".join(d.name for d in self.devices)
        return f"<{self.dtype}[{axes}] on {where}, {how}>"


def _restored(parts: Any, names: Sequence[str], axis: int | None) -> ShardedVector:
    made = ShardedVector(parts, [device(name) for name in names], axis)
    for part, target in zip(made.parts, made.devices, strict=True):
        part.to(target)
    return made


def check_devices(subject: str, devices: Any) -> tuple[Device, ...]:
    """Several devices by names, each once. Raises TypeError, UnknownDevice, InvalidArgument."""
    if isinstance(devices, str | Device):
        raise TypeError(f"{subject} takes several devices\n  hint: [device, other]")
    targets = tuple(device(which) for which in devices)
    if not targets:
        raise InvalidArgument(f"{subject} takes devices, and none are given")
    for number, target in enumerate(targets):
        if target in targets[:number]:
            raise InvalidArgument(
                f"{subject}: device '{target.name}' is given twice\n  hint: a part for each device"
            )
    return targets


def check_alike(subject: str, given: Sequence[tuple[str, Any]]) -> tuple[Device, ...]:
    """The devices that all vectors on several, among what is given, are on, in one order.

    Raises InvalidArgument, also where there is none.
    """
    vectors = [(name, value) for name, value in given if isinstance(value, ShardedVector)]
    if not vectors:
        raise InvalidArgument(
            f"{subject}: no argument is on several devices\n  hint: sarek.shard(x, devices)"
        )
    first_name, first = vectors[0]
    for name, other in vectors[1:]:
        if len(other.parts) != len(first.parts):
            raise InvalidArgument(
                f"{subject}: '{first_name}' is on {len(first.parts)} devices and '{name}' on "
                f"{len(other.parts)}\n  hint: all of them are on the same devices"
            )
        if other.devices != first.devices:
            here, there = (", ".join(d.name for d in v.devices) for v in (first, other))
            raise InvalidArgument(
                f"{subject}: '{first_name}' is on {here} and '{name}' on {there}\n"
                "  hint: all of them are on the same devices, in the same order"
            )
    return first.devices


def positions(
    kernel: str, names: Sequence[str], values: Sequence[Any], where: Any, stream: Any
) -> list[tuple[Device, list[Any]]]:
    """Each device of a launch and its arguments: of vectors on several devices their parts.

    A parameter `_device_num` is the number of the position. Raises InvalidArgument for other
    devices, other numbers of them, and buffers on one device only; nothing is launched by then.
    """
    subject = f"kernel '{kernel}'"
    given = list(zip(names, values, strict=True))
    devices = check_alike(subject, given)
    listed = ", ".join(d.name for d in devices)
    if where is not None or stream is not None:
        what = "a stream" if where is None else f"'{device(where).name}'"
        raise InvalidArgument(
            f"{subject} is launched on {what}, and its arguments are on {listed}\n"
            "  hint: leave it out: each part is launched where it is"
        )
    for name, value in given:
        if isinstance(value, Vector | SoAVector | np.ndarray) or hasattr(value, "__dlpack__"):
            raise InvalidArgument(
                f"{subject}: '{name}' is on one device, and others are on {len(devices)}\n"
                f"  hint: sarek.shard({name}, devices, axis=None) has a copy of it on each"
            )
    found = []
    for number, target in enumerate(devices):
        own = [v.parts[number] if isinstance(v, ShardedVector) else v for _, v in given]
        if DEVICE_NUMBER in names:
            own[list(names).index(DEVICE_NUMBER)] = number
        found.append((target, own))
    return found
