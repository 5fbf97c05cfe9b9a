"""Halves in the IR: the pass that makes integers of them, needs, hand-made kernels."""

from __future__ import annotations

import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute
from sarek_numba.capability import Capability, CapabilityKind, Fact, Verdict
from sarek_numba.capability.gate import check, fact_of, refuse
from sarek_numba.codegen.target import Target
from sarek_numba.ir.needs import needs, promises
from sarek_numba.ir.parse import parse
from sarek_numba.ir.text import text
from sarek_numba.ir.types import HALVES, Scalar, Vec
from sarek_numba.ir.verify import InvalidIR, verify
from sarek_numba.passes.half_functions import TEXTS, function
from sarek_numba.passes.halves import halves
from tests.executors import devices

MADE = """
kernel made index 32 {
  param y: vec<f16> = argument 0 array(f16, global, 1, C)
  param x: vec<bf16> = argument 1 array(bf16, global, 1, C, readonly)
  param a: f16 = argument 2
  function chosen(first: f16, second: f16, n: i64) -> f16 {
    return (n < 3 ? first : second)
  }
  let i: i64 = global_idx.x
  let h: f16 = f16(f32(x[i]) * f32(a))
  y[i] = @chosen:f16(h, a, i)
}
"""
PLAIN = """
kernel plain index 32 {
  param y: vec<f32> = argument 0 array(f32, global, 1, C)
  y[0] = y[0] + 1.0f32
}
"""
TARGET = Target("test")


def test_nothing_is_left_of_halves():
    """Legal IR in, legal IR out, with uint16 for every half and float32 for the argument."""
    kernel = parse(MADE)
    verify(kernel)
    made = halves(kernel, TARGET)
    verify(made)
    types = [param.var.type for param in made.params]
    assert types == [Vec(Scalar.UINT16), Vec(Scalar.UINT16), Scalar.FLOAT32]
    assert not re.search(r"\bb?f16\b", text(made))
    assert halves(made, TARGET) is made


def test_other_kernels_stay_as_they_are():
    kernel = parse(PLAIN)
    assert halves(kernel, TARGET) is kernel


def test_constants_are_rounded_at_once():
    """The nearest half to a constant is one, without a call."""
    body = "y[0] = f16(0.1)\n  y[1] = f16(f32(f16(65520.0)))"
    made = text(halves(parse(MADE.replace("y[i] = @chosen:f16(h, a, i)", body)), TARGET))
    assert "y[0] = 11878u16" in made
    assert "y[1] = 31744u16" in made


def test_names_of_the_user_stay():
    """A helper of the kernel may have the name of a conversion."""
    kernel = parse(MADE.replace("chosen", "float16_from_float32"))
    made = halves(kernel, TARGET)
    verify(made)
    names = [helper.name for helper in made.functions]
    assert len(set(names)) == len(names)
    assert "float16_from_float32" in names


@pytest.mark.parametrize("device", devices())
def test_a_kernel_made_by_hand(device):
    """Arguments, variables, helpers' parameters and results may be halves."""
    x = np.array([1.5, -2, 0.1, 7, 8], ml_dtypes.bfloat16)
    y, a = np.zeros(5, np.float16), np.float16(0.3)
    execute.run_vectors(device, parse(MADE), [y, x, a], 5, 1)
    product = (x.astype(np.float32) * np.float32(a)).astype(np.float16)
    assert y.tolist() == [*product[:3].tolist(), float(a), float(a)]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("y[i] = h + a", "has no meaning for float16"),
        ("y[i] = sqrt.f16(h)", "sqrt has no meaning for float16"),
        ("let b: bool = h < a", "has no meaning for float16"),
    ],
)
def test_halves_do_not_compute(line, says):
    with pytest.raises(InvalidIR, match=says):
        verify(parse(MADE.replace("y[i] = @chosen:f16(h, a, i)", line)))


def test_only_storage_is_needed():
    """No arithmetic on halves, and no promise about them."""
    kernel = parse(MADE)
    wanted = {(need.feature, need.scalar) for need in needs(kernel)}
    assert ("storage", Scalar.FLOAT16) in wanted
    assert ("storage", Scalar.BFLOAT16) in wanted
    assert ("store", Scalar.FLOAT16) in wanted
    assert not {(feature, s) for feature, s in wanted if feature == "arithmetic" and s in HALVES}
    assert not [need for need in promises(kernel) if need.scalar in HALVES]


@pytest.mark.parametrize("device", devices())
def test_storage_is_that_of_16_bits(device):
    """Each device has halves in memory where it has uint16 there."""
    record = sarek.device(device).record
    bits = fact_of(Capability("storage", Scalar.UINT16), record)
    for half in HALVES:
        assert fact_of(Capability("storage", half), record) == bits
        arithmetic = fact_of(Capability("arithmetic", half), record)
        assert arithmetic.verdict is not Verdict.AVAILABLE


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_a_device_without_16_bits_in_memory(half):
    """What the user wrote is named, not the integers that stand for it."""
    record = sarek.device("interpreter").record
    missing = Fact(Verdict.UNAVAILABLE, CapabilityKind.OPTIONAL, "stated by this test")
    facts = dict(record.facts)
    for feature in ("storage", "store"):
        facts.pop(Capability(feature, Scalar(half)), None)
        facts[Capability(feature, Scalar.UINT16)] = missing
    kernel = parse(MADE) if half == "bfloat16" else parse(MADE.replace("bf16", "f16"))
    refusals = check("made", needs(kernel), replace(record, facts=facts))
    with pytest.raises(sarek.CapabilityError, match=f"needs {half} in memory.*does not have"):
        refuse(refusals)
    assert not check("made", needs(kernel), record)


def test_every_conversion_has_a_function():
    """From and to each half, each float and each integer that float32 does not hold."""
    floats = {f"{half.value}_from_{f}" for half in HALVES for f in ("float32", "float64")}
    odd = {f"odd_{kind}int{bits}" for kind in ("", "u") for bits in (32, 64)}
    assert set(TEXTS) == {"from_float16", "from_bfloat16", *floats, *odd}
    for name in TEXTS:
        assert function(name).name == name


RECORD = np.dtype([("h", np.float16), ("b", ml_dtypes.bfloat16), ("n", np.int32)])


@sarek.kernel
def columns(p):
    i = sarek.global_idx.x
    if i < len(p):
        p[i].b = p[i].h * p[i].n


@pytest.mark.parametrize("device", devices())
def test_records_in_columns(device):
    given = np.zeros(10, RECORD)
    given["h"], given["n"] = 0.1, np.arange(10)
    p = sarek.soa(given)
    columns.launch(p, grid=1, block=16, device=device)
    products = given["h"].astype(np.float64) * given["n"]
    assert np.array(p)["b"].tolist() == [float(sarek.bfloat16(v)) for v in products]


@sarek.kernel(debug=True)
def checked(x):
    i = sarek.global_idx.x
    assert x[i] < 5
    x[i + 1] = x[i] * 2


@pytest.mark.parametrize("device", devices())
def test_debug(device):
    """Indices and assertions are checked, with halves too."""
    x = np.ones(2, np.float16)
    checked.launch(x, grid=1, block=1, device=device)
    assert x.tolist() == [1, 2]
    with pytest.raises(sarek.OutOfBounds, match="index 1 is out of range"):
        checked.launch(x[1:], grid=1, block=2, device=device)


@sarek.kernel
def shown(x, b):
    print(x[0], b[0], np.float16(0.1))


@pytest.mark.parametrize("device", devices())
def test_printing(device, capfd):
    """What is printed is the float32 that the half is read as."""
    x, b = np.array([0.1], np.float16), np.array([3.14159], ml_dtypes.bfloat16)
    shown.launch(x, b, grid=1, block=1, device=device)
    assert capfd.readouterr().out == "0.099975586 3.140625 0.099975586\n"


def test_on_the_host():
    """The constructors and the functions of bits, called outside of a kernel."""
    assert sarek.half_bits(1.5) == 0x3E00
    assert sarek.half_bits(1.5, sarek.bfloat16) == 0x3FC0
    assert sarek.half_from_bits(0x3E00) == np.float32(1.5)
    assert sarek.half_from_bits(0x3FC0, ml_dtypes.bfloat16) == np.float32(1.5)
    assert type(sarek.float16(0.1)) is np.float16
    assert type(sarek.bfloat16(0.1)) is ml_dtypes.bfloat16
    assert sarek.bfloat16((1 << 80) + (1 << 72) + 1) == 2.0**80 * (1 + 2.0**-7)
    assert sarek.float16(10**400) == np.inf
    assert sarek.zeros(3, sarek.bfloat16).dtype == ml_dtypes.bfloat16
    assert sarek.half_bits(np.array([1.5, 2])).tolist() == [0x3E00, 0x4000]
    assert sarek.half_from_bits(np.array([[0x3E00]])).tolist() == [[1.5]]
    assert sarek.bfloat16(np.array([0.1, 3])).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: sarek.half_bits(1.0, np.float32), TypeError, "float32 is no half"),
        (lambda: sarek.bfloat16("1"), TypeError, r"bfloat16\(\) takes real numbers, not str"),
        (lambda: sarek.float16(1j), TypeError, r"float16\(\) takes real numbers, not complex"),
        (lambda: sarek.half_bits(None), TypeError, "takes real numbers, not NoneType"),
        (lambda: sarek.half_from_bits(1.5), TypeError, "takes integers, not float"),
        (lambda: sarek.half_from_bits(-1), OverflowError, "takes 0 to 65535, not -1"),
        (lambda: sarek.half_from_bits(1 << 16), OverflowError, "not 65536"),
    ],
)
def test_refusals_on_the_host(call, error, says):
    with pytest.raises(error, match=says):
        call()


@sarek.kernel
def stated(y: sarek.bfloat16[:], a: sarek.bfloat16):
    y[0] = a


@pytest.mark.parametrize(
    ("y", "a", "says"),
    [
        (np.ones(1, np.float32), 1, r"y = y.astype\(ml_dtypes.bfloat16\)"),
        (sarek.zeros(1, "bfloat16"), np.float32(1), r"as in ml_dtypes.bfloat16\(a\)"),
        (sarek.zeros(1, "bfloat16"), None, r"as in ml_dtypes.bfloat16\(1\)"),
        (np.ones(1, ml_dtypes.float8_e4m3fn), 1, "float8_e4m3fn, which this version does not"),
    ],
)
def test_refused_arguments(y, a, says):
    """What is asked for is spelled as the host spells it."""
    with pytest.raises(sarek.ArgumentTypeError, match=says):
        stated[1, 1](y, a)
