"""Kinds of arguments, what annotations state, and how parameters are filled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sarek_numba.errors import ArgumentTypeError, LaunchError
from sarek_numba.ir.nodes import ParamDecl, Var
from sarek_numba.ir.types import (
    ArrayInfo,
    DynamicSharedLength,
    LengthOf,
    NumberOf,
    OffsetOf,
    Pair,
    PartOf,
    Scalar,
    ShapeOf,
    StrideOf,
    Threads,
    UserArgument,
    Vec,
)
from sarek_numba.runtime.arguments import (
    Kind,
    PythonNumber,
    Sizes,
    Stated,
    StatedArray,
    describe,
    fillers,
)

SCALARS = list(Scalar)


def kind(value: Any, stated: Stated = None) -> Kind:
    return describe("k", ["x"], [value], [stated]).kinds[0]


def refusal(value: Any, stated: Stated = None) -> str:
    with pytest.raises(ArgumentTypeError) as error:
        describe("k", ["x"], [value], [stated])
    assert isinstance(error.value, LaunchError)
    assert isinstance(error.value, TypeError)
    return str(error.value)


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda s: s.value)
def test_numpy_values_keep_their_type(scalar: Scalar) -> None:
    """An array and a scalar of each element type."""
    assert kind(np.zeros((2, 3), scalar.value)) == ArrayInfo(scalar, ndim=2)
    assert kind(np.ones((), scalar.value)[()]) is scalar


def test_alias_of_an_integer_type_is_that_type() -> None:
    """numpy.longlong and numpy.intp are int64 where they have its width."""
    assert kind(np.longlong(3)) is Scalar.INT64
    assert kind(np.zeros(3, np.longlong)) == ArrayInfo(Scalar.INT64)


def test_python_values() -> None:
    """Numbers are weak; a bool is a bool; None is none; numpy.float64 is no Python float."""
    assert kind(3) is PythonNumber.INT
    assert kind(3.5) is PythonNumber.FLOAT
    assert kind(True) is Scalar.BOOL
    assert kind(None) is None
    assert kind(np.float64(3)) is Scalar.FLOAT64


def test_ends_of_a_python_int() -> None:
    """It travels as int32 where it fits, and as int64 at most."""
    assert kind(2**31 - 1) is PythonNumber.INT
    assert kind(-(2**31)) is PythonNumber.INT
    assert kind(2**31) is PythonNumber.WIDE_INT
    assert kind(-(2**31) - 1) is PythonNumber.WIDE_INT
    assert kind(2**63 - 1) is PythonNumber.WIDE_INT
    assert kind(-(2**63)) is PythonNumber.WIDE_INT
    assert refusal(2**63) == (
        "kernel 'k': argument 'x' is 9223372036854775808, a Python int beyond int64\n"
        "  hint: a value from 0 to 2**64 - 1 can be passed as numpy.uint64(x)"
    )
    assert "beyond int64" in refusal(-(2**63) - 1)


def test_arrays_of_other_classes_are_arrays(tmp_path: Any) -> None:
    """memmap and matrix are ndarrays; what the launch holds is of the base class."""
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=(4,))
    assert kind(mapped) == ArrayInfo(Scalar.FLOAT32)
    matrix = np.matrix([[1.0, 2.0]])
    described = describe("k", ["x"], [matrix], [None])
    assert type(described.values[0]) is np.ndarray
    assert described.values[0].shape == (1, 2)


def test_read_only_is_part_of_the_kind() -> None:
    """The kernel is typed with it."""
    array = np.zeros(3)
    array.flags.writeable = False
    assert kind(array) == ArrayInfo(Scalar.FLOAT64, writable=False)


def test_layout_is_part_of_the_kind() -> None:
    """C, F, or any strides."""
    cube = np.zeros((2, 3, 4))
    assert kind(cube.T) == ArrayInfo(Scalar.FLOAT64, ndim=3, layout="F")
    assert kind(cube[:, ::2]) == ArrayInfo(Scalar.FLOAT64, ndim=3, layout="A")


REFUSED: dict[str, tuple[Any, str]] = {
    "big-endian": (
        np.zeros(3, ">f4"),
        "kernel 'k': argument 'x' is an array of >f4, whose bytes are in the order of another "
        "machine\n  hint: convert it before the launch: x = x.astype(x.dtype.newbyteorder('='))",
    ),
    "longdouble": (
        np.zeros(3, np.longdouble),
        f"kernel 'k': argument 'x' is an array of {np.dtype(np.longdouble)}, which this version "
        "does not take\n  hint: convert it, as in x.astype(numpy.float32)",
    ),
    "object": (
        np.array([1, None]),
        "kernel 'k': argument 'x' is an array of object: Python objects are not taken\n"
        "  hint: convert it to a number type, as in x.astype(numpy.float64)",
    ),
    "complex": (
        np.zeros(3, np.clongdouble),
        f"kernel 'k': argument 'x' is an array of {np.dtype(np.clongdouble)}: complex numbers of "
        "this width are not taken\n  hint: convert it, as in x.astype(numpy.complex128)",
    ),
    "strings": (
        np.array(["a"]),
        "kernel 'k': argument 'x' is an array of <U1: strings are not taken\n  hint: pass numbers",
    ),
    "records of texts": (
        np.zeros(3, [("a", "S4")]),
        "kernel 'k': argument 'x' is an array of records: field 'a' is |S4, no type of a kernel\n"
        "  hint: use numbers",
    ),
    "dates": (
        np.zeros(3, "M8[s]"),
        "kernel 'k': argument 'x' is an array of datetime64[s]: dates are not taken\n"
        "  hint: pass their counts, x.view(numpy.int64)",
    ),
    "masked": (
        np.ma.masked_array([1, 2], [0, 1]),
        "kernel 'k': argument 'x' is a masked array, and a kernel sees no mask\n"
        "  hint: pass x.data and x.mask as two arrays, or x.filled(value)",
    ),
    "list": (
        [1, 2],
        "kernel 'k': argument 'x' is a list; a kernel takes NumPy arrays and numbers\n"
        "  hint: pass a NumPy array, as in numpy.asarray(x)",
    ),
    "tuple": (
        (1, 2),
        "kernel 'k': argument 'x' is a tuple; a kernel takes NumPy arrays and numbers\n"
        "  hint: pass a NumPy array, as in numpy.asarray(x)",
    ),
    "str": (
        "abc",
        "kernel 'k': argument 'x' is a str; a kernel takes NumPy arrays and numbers\n"
        "  hint: pass a NumPy array or a number",
    ),
    "function": (
        len,
        "kernel 'k': argument 'x' is a builtin_function_or_method; a kernel takes NumPy arrays "
        "and numbers\n  hint: a kernel uses functions by their names, and takes none as arguments",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_values_are_named(name: str) -> None:
    """Each with the parameter, what it is, and what to pass instead."""
    value, text = REFUSED[name]
    assert refusal(value) == text


# --- stated kinds ---------------------------------------------------------------------------------

FLOATS = np.zeros((2, 3), np.float32)
COMPLEXES = np.zeros(3, np.complex64)
COMPLEX64 = Pair(Scalar.FLOAT32)

TAKEN: list[tuple[Any, Stated, Kind]] = [
    (FLOATS, StatedArray(Scalar.FLOAT32, 2), ArrayInfo(Scalar.FLOAT32, ndim=2)),
    (FLOATS.T, StatedArray(Scalar.FLOAT32, 2, "F"), ArrayInfo(Scalar.FLOAT32, ndim=2, layout="F")),
    (FLOATS, StatedArray(), ArrayInfo(Scalar.FLOAT32, ndim=2)),
    (3, Scalar.INT32, Scalar.INT32),
    (255, Scalar.UINT8, Scalar.UINT8),
    (3, Scalar.FLOAT32, Scalar.FLOAT32),
    (3.5, Scalar.FLOAT32, Scalar.FLOAT32),
    (float("inf"), Scalar.FLOAT32, Scalar.FLOAT32),
    (float("nan"), Scalar.FLOAT32, Scalar.FLOAT32),
    (3.4e38, Scalar.FLOAT32, Scalar.FLOAT32),
    (np.int32(3), Scalar.INT32, Scalar.INT32),
    (True, Scalar.BOOL, Scalar.BOOL),
    (3, PythonNumber.INT, PythonNumber.INT),
    (2**31, PythonNumber.INT, PythonNumber.WIDE_INT),
    (3, PythonNumber.FLOAT, PythonNumber.FLOAT),
    (np.uint8(3), PythonNumber.INT, Scalar.UINT8),
    (np.float32(3), PythonNumber.FLOAT, Scalar.FLOAT32),
    (COMPLEXES, StatedArray(COMPLEX64, 1), ArrayInfo(Scalar.FLOAT32, pairs=True)),
    (COMPLEXES, StatedArray(), ArrayInfo(Scalar.FLOAT32, pairs=True)),
    (1j, None, PythonNumber.COMPLEX),
    (1j, COMPLEX64, COMPLEX64),
    (3, COMPLEX64, COMPLEX64),
    (2.5, COMPLEX64, COMPLEX64),
    (np.complex64(1j), None, COMPLEX64),
    (np.complex64(1j), COMPLEX64, COMPLEX64),
    (np.complex128(1j), PythonNumber.COMPLEX, Pair(Scalar.FLOAT64)),
    (1, PythonNumber.COMPLEX, PythonNumber.COMPLEX),
]


@pytest.mark.parametrize(("value", "stated", "expected"), TAKEN)
def test_a_stated_type_takes_what_fits_it(value: Any, stated: Stated, expected: Kind) -> None:
    """A Python number becomes the stated type; NumPy values must have it."""
    assert kind(value, stated) == expected


NOT_TAKEN: list[tuple[Any, Stated, str]] = [
    (FLOATS, StatedArray(Scalar.FLOAT64, 2), "a 2-D array of float32|a 2-D array of float64"),
    (FLOATS, StatedArray(Scalar.FLOAT32, 1), "a 2-D array of float32|a 1-D array of float32"),
    (
        FLOATS.T,
        StatedArray(Scalar.FLOAT32, 2, "C"),
        "a 2-D array of float32|a 2-D array of float32, C-contiguous",
    ),
    (3, StatedArray(Scalar.FLOAT32, 1), "the Python int 3|a 1-D array of float32"),
    (FLOATS, Scalar.FLOAT32, "a 2-D array of float32|a scalar of float32"),
    (2**31, Scalar.INT32, "the Python int 2147483648|a scalar of int32"),
    (256, Scalar.UINT8, "the Python int 256|a scalar of uint8"),
    (-1, Scalar.UINT64, "the Python int -1|a scalar of uint64"),
    (1.0, Scalar.INT32, "the Python float 1.0|a scalar of int32"),
    (1e39, Scalar.FLOAT32, "the Python float 1e+39|a scalar of float32"),
    (np.int64(3), Scalar.INT32, "a scalar of int64|a scalar of int32"),
    (np.float64(3), Scalar.FLOAT32, "a scalar of float64|a scalar of float32"),
    (True, Scalar.INT32, "a scalar of bool|a scalar of int32"),
    (1, Scalar.BOOL, "the Python int 1|a scalar of bool"),
    (None, Scalar.INT32, "None|a scalar of int32"),
    (1.5, PythonNumber.INT, "the Python float 1.5|a Python int"),
    (np.float32(1), PythonNumber.INT, "a scalar of float32|a Python int"),
    (np.int8(1), PythonNumber.FLOAT, "a scalar of int8|a Python float"),
    (1j, Scalar.FLOAT32, "the Python complex 1j|a scalar of float32"),
    (1j, PythonNumber.FLOAT, "the Python complex 1j|a Python float"),
    (np.complex64(1), Scalar.FLOAT32, "a scalar of complex64|a scalar of float32"),
    (np.complex128(1), COMPLEX64, "a scalar of complex128|a scalar of complex64"),
    (np.float32(1), COMPLEX64, "a scalar of float32|a scalar of complex64"),
    (1e39j, COMPLEX64, "the Python complex 1e+39j|a scalar of complex64"),
    (COMPLEXES, StatedArray(Scalar.FLOAT32), "a 1-D array of complex64|an array of float32"),
    (FLOATS, StatedArray(COMPLEX64), "a 2-D array of float32|an array of complex64"),
    (None, COMPLEX64, "None|a scalar of complex64"),
]


@pytest.mark.parametrize(("value", "stated", "texts"), NOT_TAKEN)
def test_a_stated_type_refuses_everything_else(value: Any, stated: Stated, texts: str) -> None:
    """Naming both what came and what is stated, with a hint."""
    given, wanted = texts.split("|")
    expected = f"kernel 'k': argument 'x' is {given}, and the kernel states {wanted}"
    first, second = refusal(value, stated).splitlines()
    assert first == expected
    assert second.startswith("  hint: ")


# --- filling --------------------------------------------------------------------------------------


def _parameter(role: Any, scalar: Scalar | None) -> ParamDecl:
    if scalar is None:
        return ParamDecl(Var("p", 0, Vec(Scalar.FLOAT32)), ArrayInfo(Scalar.FLOAT32), role)
    return ParamDecl(Var("p", 0, scalar), None, role)


def test_parameters_are_filled_by_role() -> None:
    """Each with the declared width, whatever the order and however few a program keeps."""
    view = np.zeros((6, 8), np.float32)[::-2, 1:5]
    z = np.complex64(3 - 4j)
    r = np.array((5, [[1, 2], [3, 4]]), [("a", "i2"), ("b", "f4", (2, 2))])[()]
    arguments = describe("k", ["n", "x", "z", "r"], [7, view, z, r], [None] * 4)
    wanted: list[tuple[Any, Scalar | None, Any]] = [
        (UserArgument(1), None, "buffer"),
        (StrideOf(1, 0), Scalar.INT64, np.int64(-16)),
        (StrideOf(1, 1), Scalar.INT32, np.int32(1)),
        (ShapeOf(1, 0), Scalar.INT32, np.int32(3)),
        (OffsetOf(1), Scalar.INT32, np.int32(32)),
        (LengthOf(1), Scalar.INT64, np.int64(12)),
        (UserArgument(0), Scalar.INT16, np.int16(7)),
        (PartOf(2, 0), Scalar.FLOAT32, np.float32(3)),
        (PartOf(2, 1), Scalar.FLOAT64, np.float64(-4)),
        (NumberOf(3, 0), Scalar.INT16, np.int16(5)),
        (NumberOf(3, 3), Scalar.FLOAT32, np.float32(3)),
        (DynamicSharedLength(), Scalar.INT32, np.int32(96)),
        (Threads(4), Scalar.INT32, np.int32(4096)),
    ]
    made = fillers([_parameter(role, scalar) for role, scalar, _ in wanted])
    filled = [fill(arguments, ["buffer"], Sizes(96, 4096)) for fill in made]
    assert filled == [value for _, _, value in wanted]
    assert [type(f) for f in filled] == [type(value) for _, _, value in wanted]


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda s: s.value)
def test_scalars_have_exactly_the_declared_type(scalar: Scalar) -> None:
    """A NumPy scalar of the parameter's type, from a Python number or a NumPy scalar."""
    [fill] = fillers([_parameter(UserArgument(0), scalar)])
    for value in (True, np.ones((), scalar.value)[()]):
        filled = fill(describe("k", ["x"], [value], [None]), [], Sizes(0, 1))
        assert filled.dtype == np.dtype(scalar.value)
        assert filled == 1


def test_a_weak_float_beyond_float32_becomes_infinite_quietly() -> None:
    """It is rounded as a conversion is, without a warning."""
    [fill] = fillers([_parameter(UserArgument(0), Scalar.FLOAT32)])
    assert fill(describe("k", ["x"], [1e300], [None]), [], Sizes(0, 1)) == np.inf
