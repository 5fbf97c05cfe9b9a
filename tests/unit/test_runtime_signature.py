"""How arguments meet parameters, and what annotations mean."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sarek_numba as sarek
from sarek_numba.errors import ArgumentCountError, UnknownName, UnsupportedConstruct
from sarek_numba.frontend.language import float32, int32
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.annotations import stated_of
from sarek_numba.runtime.arguments import PythonNumber, StatedArray
from sarek_numba.runtime.signature import signature_of


def k(x: Any, y: Any, scale: Any = 2.0) -> None: ...
def only(x: Any, *, n: Any, flag: Any = True) -> None: ...
def first(x: Any, /, y: Any) -> None: ...
def words(grid: Any, n: Any) -> None: ...


def bound(function: Any, *given: Any, **named: Any) -> list[Any]:
    return list(signature_of(function).bind(given, named))


def refused(function: Any, *given: Any, **named: Any) -> str:
    with pytest.raises(ArgumentCountError) as error:
        bound(function, *given, **named)
    assert isinstance(error.value, TypeError)
    return str(error.value)


def test_positions_names_and_defaults() -> None:
    """As Python binds them."""
    assert bound(k, 1, 2) == [1, 2, 2.0]
    assert bound(k, 1, 2, 3) == [1, 2, 3]
    assert bound(k, 1, scale=3, y=2) == [1, 2, 3]
    assert bound(only, 1, n=5) == [1, 5, True]
    assert bound(first, 1, y=2) == [1, 2]
    assert bound(words, 1, 2) == [1, 2]


def test_too_many() -> None:
    """One more than there are parameters."""
    assert refused(k, 1, 2, 3, 4) == (
        "kernel 'k' takes 3 arguments, and 4 were given\n  note: its parameters are (x, y, scale)"
    )
    assert refused(only, 1, 2) == (
        "kernel 'only' takes 1 argument by position, and 2 were given\n"
        "  note: its parameters are (x, n, flag)"
    )


def test_missing() -> None:
    """Every one that is missing is named."""
    assert refused(k, 1) == (
        "kernel 'k' misses argument 'y'\n  note: its parameters are (x, y, scale)"
    )
    assert refused(k) == (
        "kernel 'k' misses arguments 'x', 'y'\n  note: its parameters are (x, y, scale)"
    )


def test_unknown_name() -> None:
    """With a near miss, if there is one."""
    assert refused(k, 1, 2, scales=3) == (
        "kernel 'k' has no parameter 'scales' to be given by name\n"
        "  note: its parameters are (x, y, scale)\n  hint: did you mean 'scale'?"
    )
    assert "hint" not in refused(k, 1, 2, q=3)
    assert "has no parameter 'x' to be given by name" in refused(first, x=1, y=2)


def test_launch_word_where_there_is_none() -> None:
    """device= belongs to k.launch."""
    assert refused(k, 1, 2, device="native") == (
        "kernel 'k' has no parameter 'device' to be given by name\n"
        "  note: its parameters are (x, y, scale)\n"
        "  hint: k.launch(..., grid=, block=) takes device="
    )


def test_twice() -> None:
    """By position and by name."""
    assert refused(k, 1, 2, x=3) == "kernel 'k': argument 'x' is given by position and by name"


def test_parameter_named_like_a_word_of_the_launch() -> None:
    """It can only be passed by position."""
    assert refused(words, n=1, grid=2) == (
        "kernel 'words': 'grid' is a word of the launch itself\n"
        "  hint: pass the parameter 'grid' by position"
    )


def test_any_number_of_arguments_is_refused() -> None:
    """When the kernel is decorated, with its place."""

    def many(x: Any, *rest: Any) -> None: ...

    with pytest.raises(UnsupportedConstruct) as error:
        signature_of(many)
    assert "parameter '*rest' of kernel 'many' takes any number of arguments" in str(error.value)
    assert error.value.span is not None
    assert error.value.span.file == __file__


# --- annotations ----------------------------------------------------------------------------------


def _annotated(annotation: Any) -> FunctionType:
    def kernel(x) -> None: ...  # type: ignore[no-untyped-def]

    kernel.__annotations__ = {"x": annotation}
    return kernel


STATED: list[tuple[Any, Any]] = [
    (float32, Scalar.FLOAT32),
    (float32[:], StatedArray(Scalar.FLOAT32, 1)),
    (float32[:, ::1], StatedArray(Scalar.FLOAT32, 2, "C")),
    (float32[::1, :], StatedArray(Scalar.FLOAT32, 2, "F")),
    (np.int16, Scalar.INT16),
    (np.dtype("uint8"), Scalar.UINT8),
    (npt.NDArray[np.int64], StatedArray(Scalar.INT64)),
    (np.ndarray, StatedArray()),
    (bool, Scalar.BOOL),
    (int, PythonNumber.INT),
    (float, PythonNumber.FLOAT),
    ("np.int16", Scalar.INT16),
    ("int32[:]", StatedArray(Scalar.INT32, 1)),
]


@pytest.mark.parametrize(("annotation", "stated"), STATED, ids=str)
def test_annotations_state_types(annotation: Any, stated: Any) -> None:
    """Objects and their text are the same."""
    assert stated_of(_annotated(annotation), ["x"]) == (stated,)


def test_parameters_without_annotation_state_nothing() -> None:
    """Nor does Any."""

    def plain(x, y: Any, n: int) -> None: ...  # type: ignore[no-untyped-def]

    assert stated_of(plain, ["x", "y", "n"]) == (None, None, PythonNumber.INT)


@pytest.mark.parametrize("annotation", [str, "list[int]", np.floating, np.longdouble, 3])
def test_other_annotations_are_refused(annotation: Any) -> None:
    """None is passed over."""
    with pytest.raises(UnsupportedConstruct, match="of parameter 'x' of kernel 'kernel' is no"):
        stated_of(_annotated(annotation), ["x"])


def test_namespaces_are_no_types() -> None:
    """Refused by their names."""
    with pytest.raises(UnsupportedConstruct, match=r"sarek\.coopmat of parameter 'x'") as error:
        stated_of(_annotated(sarek.coopmat), ["x"])
    assert "hint: write it as sarek.float32" in str(error.value)


def test_unreadable_annotation_is_an_error() -> None:
    """A name that does not exist where the kernel is defined."""
    with pytest.raises(UnknownName, match="'nowhere' is not defined"):
        stated_of(_annotated("nowhere[:]"), ["x"])


assert int32  # named in the text of an annotation above
