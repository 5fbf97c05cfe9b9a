"""Cooperative matrices on Vulkan: what devices list, modules, results against exact sums.

Where no device here lists any, a recent lavapipe in a tree of its own runs these (`make test`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sarek_numba import capability, execute, passes
from sarek_numba.capability import Capability, DeviceRecord
from sarek_numba.capability.features import configuration_text
from sarek_numba.errors import CapabilityError, InvalidDimensions, InvalidIR
from sarek_numba.ir.needs import Need, needs
from sarek_numba.ir.nodes import CoopmatConfig, Kernel
from sarek_numba.ir.parse import parse
from sarek_numba.ir.spelling import SCALAR_NAMES
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.registry import Device
from sarek_vulkan import driver, features, matrices
from sarek_vulkan.abilities import Abilities
from sarek_vulkan.emit import TARGET, emit
from sarek_vulkan.record import record_of
from sarek_vulkan.spirv import disassemble
from tests.unit.coopmat_kernels import Product, exact, float_errors, operands
from tests.unit.spirv_tools import validate
from tests.unit.vulkan_kit import devices, driver_of, on_vulkan

F16, F32 = Scalar.FLOAT16, Scalar.FLOAT32
I8, U8, I32, U32 = Scalar.INT8, Scalar.UINT8, Scalar.INT32, Scalar.UINT32
BYTES = CoopmatConfig(8, 8, 8, U8, U8, U32, U32)
LAVAPIPE = (
    CoopmatConfig(8, 8, 8, F16, F16, F16, F16),
    CoopmatConfig(8, 8, 8, F16, F16, F32, F32),
    BYTES,
    CoopmatConfig(8, 8, 8, I8, I8, I32, I32),
)
OTHERS = (
    CoopmatConfig(16, 16, 32, I8, I8, I32, I32),
    CoopmatConfig(16, 8, 16, F16, F16, F32, F32),
    CoopmatConfig(16, 16, 16, U8, I8, I32, I32, saturating=True),
)
LAYOUTS = ("", "a", "b", "c", "out", "a b c out")
MEMORIES = ("global", "shared", "dynamic")


def listed(floats: bool) -> pytest.MarkDecorator:
    """Each configuration of each device here, with floats or without."""
    found = [
        pytest.param(device, config, id=f"{name}-{configuration_text(config)}")
        for name, device in devices().items()
        for config in driver_of(device).physical.matrices
        if floats or config.accumulation_is_exact
    ]
    none = pytest.mark.skip("no device here lists cooperative matrices")
    return pytest.mark.parametrize(("device", "config"), found or [pytest.param(0, 0, marks=none)])


on_listed = listed(floats=True)
on_integers = listed(floats=False)


# --- what a device lists --------------------------------------------------------------------------


class FakeListing:
    """The function of a driver that lists rows (m, n, k, a, b, c, result, saturating, scope)."""

    def __init__(self, *rows: tuple[int, ...], result: int = 0) -> None:
        self.rows, self.result = rows, result

    def __call__(self, handle: object, count, found) -> int:
        if found == driver.ffi.NULL:
            count[0] = len(self.rows)
            return self.result
        names = "MSize NSize KSize AType BType CType ResultType saturatingAccumulation scope"
        for each, row in zip(found, self.rows, strict=True):
            assert each.sType == driver.vk.VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR
            for name, value in zip(names.split(), row, strict=True):
                setattr(each, name, value)
        return self.result


@pytest.fixture
def listing(monkeypatch):
    """Has the driver list rows: gives what we make of them."""

    def give(*rows: tuple[int, ...], result: int = 0, stages: int = 0x20):
        driver.load()
        monkeypatch.setattr(driver, "instance", lambda: None)
        monkeypatch.setattr(
            driver, "instance_function", lambda made, name: FakeListing(*rows, result=result)
        )
        return matrices.configurations(None, stages)

    return give


def test_what_is_listed(listing):
    """In the driver's order, each once, saturating ones apart."""
    assert listing(
        (8, 8, 8, 0, 0, 1, 1, 0, 3),
        (16, 8, 32, 3, 3, 5, 5, 0, 3),
        (16, 8, 32, 3, 3, 5, 5, 1, 3),
        (8, 8, 8, 0, 0, 1, 1, 0, 3),
    ) == (
        CoopmatConfig(8, 8, 8, F16, F16, F32, F32),
        CoopmatConfig(16, 8, 32, I8, I8, I32, I32),
        CoopmatConfig(16, 8, 32, I8, I8, I32, I32, saturating=True),
    )


def test_what_is_left_out(listing):
    """Types that have no name here, and scopes that are another extension's."""
    bfloat16 = 1000141000
    workgroup = 2
    assert (
        listing((8, 8, 8, bfloat16, bfloat16, 1, 1, 0, 3), (8, 8, 8, 0, 0, 1, 1, 0, workgroup))
        == ()
    )


def test_a_listing_that_fails(listing):
    """A driver that answers with an error lists nothing, as one of other stages."""
    row = (8, 8, 8, 0, 0, 1, 1, 0, 3)
    assert listing(row, result=-1) == ()
    assert listing(row, stages=1) == ()
    assert listing() == ()
    assert listing(row) != ()


def test_every_component_is_told_apart():
    """The table of component types is one to one, and has no bool and no bfloat16."""
    assert len(set(matrices.COMPONENTS.values())) == len(matrices.COMPONENTS)
    assert set(Scalar) - set(matrices.COMPONENTS.values()) == {Scalar.BOOL, Scalar.BFLOAT16}


# --- the record -----------------------------------------------------------------------------------


def changed(
    device: Device,
    lacks: tuple[str, ...] = (),
    extensions: tuple[str, ...] = (matrices.EXTENSION,),
    listed: tuple[CoopmatConfig, ...] = (BYTES,),
) -> DeviceRecord:
    """The record of a device as if it had cooperative matrices, but for what it lacks."""
    physical = driver_of(device).physical
    has = {f for f in (*physical.features, *matrices.FEATURES) if f.field not in lacks}
    known = physical.extensions - {matrices.EXTENSION} | set(extensions)
    fake = replace(physical, features=frozenset(has), extensions=known, matrices=listed)
    return record_of(fake, "fake:0")


@on_vulkan
def test_the_record_says_why_there_are_none(device):
    """The extension is asked for before features, and these before the configurations."""
    wanted = Need("coopmat", configuration=BYTES)
    for record, evidence in (
        (changed(device, ("cooperativeMatrix",), ()), f"has no {matrices.EXTENSION}"),
        (changed(device, ("cooperativeMatrix",)), "FeaturesKHR.cooperativeMatrix = 0"),
        (changed(device, ("vulkanMemoryModel",)), "Vulkan12Features.vulkanMemoryModel = 0"),
        (changed(device, listed=LAVAPIPE[:1]), "the device lists float16 * float16"),
        (changed(device, listed=()), "the device lists none"),
    ):
        (refusal,) = capability.check("k", [wanted], record)
        assert evidence in str(refusal)
    assert capability.check("k", [wanted], changed(device)) == []


@on_vulkan
def test_the_feature_is_one_with_the_record(device):
    """Where there are configurations, extension, feature and SPIR-V capability are enabled."""
    owner = driver_of(device)
    has = "CooperativeMatrixKHR" in owner.physical.capabilities
    assert has == owner.physical.has(features.COOPERATIVE_MATRIX, "cooperativeMatrix")
    assert has == (device.record.coopmat is not None)
    assert has or Capability("coopmat") in device.record.facts
    assert not has or device.record.coopmat == owner.physical.matrices != ()


# --- modules --------------------------------------------------------------------------------------


def _words(product: Product) -> bytes:
    return emit(passes.optimise(product.kernel(), TARGET), Abilities(), 128).words


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("config", [*LAVAPIPE, *OTHERS], ids=configuration_text)
def test_valid(config, memory, tmp_path):
    """The validator takes modules of each configuration, layout and memory, and memory."""
    modules = [_words(Product(config, 8, columns, memory)) for columns in LAYOUTS]
    assert validate(modules, tmp_path) == [""] * len(modules)


def test_the_validator_minds(tmp_path):
    """A multiply-add of operands that do not fit is no valid module."""
    kernel = parse(
        Product(BYTES, 8).text().replace('"a", "b", "acc", config', '"b", "b", "acc", config')
    )
    module = emit(passes.optimise(kernel, TARGET), Abilities(), 128)
    (said,) = validate([module.words], tmp_path)
    assert "MulAdd" in said


def test_the_memory_model_is_needed():
    """SPIR-V has no cooperative matrices with another model, and the record says so before."""
    kernel = passes.optimise(Product(BYTES, 8).kernel(), TARGET)
    with pytest.raises(InvalidIR, match="with the Vulkan memory model only"):
        emit(kernel, Abilities(memory_model=False), 128)


def test_signs_and_saturation():
    """Signed operands and saturation are said by the instruction, not by types."""
    assert "NoneKHR" in disassemble(_words(Product(BYTES, 8)))
    shown = disassemble(_words(Product(OTHERS[2], 8)))
    assert (
        "MatrixBSignedComponentsKHR|MatrixCSignedComponentsKHR|MatrixResultSignedComponentsKHR"
        "|SaturatingAccumulationKHR" in shown
    )
    assert "MatrixASigned" not in shown


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("c[row *.w 32 +.w column], 32,", "c[row *.w 32 +.w column], 30,", "the stride 30"),
        ("c[row *.w 32 +.w column], 32,", "c[2], 32,", "the index 2"),
    ],
)
def test_rows_begin_where_vulkan_says(old, new, said):
    """A stride or index that is known to be off is refused."""
    kernel = parse(Product(BYTES, 8).text().replace(old, new))
    with pytest.raises(InvalidIR, match=f"{said}, and its rows begin at multiples of 16 bytes"):
        emit(passes.optimise(kernel, TARGET), Abilities(), 128)


# --- results --------------------------------------------------------------------------------------


def launch(device: Device, kernel: Kernel, grid, block, shared_bytes, *arrays) -> None:
    """Below what checks arguments, as float16 arrays are none yet; the last array is written."""
    owner = driver_of(device)
    assert capability.check(kernel.name, needs(kernel), device.record) == []
    program = owner.prepare(kernel)
    bound = [owner.bind(a.view(np.uint8), read=True, written=a is arrays[-1]) for a in arrays]
    program.launch(grid, block, shared_bytes, bound)
    for buffer in bound:
        owner.unbind(buffer)


def run(device: Device, product: Product, a, b, c) -> np.ndarray:
    """out of the kernel on a device."""
    out = np.zeros(c.size, product.config.result.value)
    given = [product.stored(name, matrix) for name, matrix in zip("abc", (a, b, c), strict=True)]
    grid, block = (*product.grid, 1), (product.block, 1, 1)
    launch(device, product.kernel(), grid, block, product.shared_bytes, *given, out)
    return product.matrix("out", out)


@on_integers
def test_a_launch(device, config):
    """Arrays as arguments of `execute.run_vectors`."""
    product = _product(device, config)
    a, b, c = operands(product, "random", 6)
    out = np.zeros(c.size, config.result.value)
    given = [product.stored(name, matrix) for name, matrix in zip("abc", (a, b, c), strict=True)]
    execute.run_vectors(device, product.kernel(), [*given, out], product.block, product.grid)
    np.testing.assert_array_equal(product.matrix("out", out), exact(product, a, b, c))


def _product(device: Device, config: CoopmatConfig, columns: str = "", memory: str = "global"):
    return Product(config, device.record.limits.warp_width, columns, memory)


@on_listed
@pytest.mark.parametrize(
    ("columns", "memory"),
    [(columns, "global") for columns in LAYOUTS]
    + [(columns, memory) for memory in MEMORIES[1:] for columns in (LAYOUTS[0], LAYOUTS[-1])],
)
def test_results(device, config, columns, memory):
    """Integers exactly, floats within the bound, for every layout and memory."""
    product = _product(device, config, columns, memory)
    for kind in ("random", "edges"):
        a, b, c = operands(product, kind, 1)
        found = run(device, product, a, b, c)
        if config.accumulation_is_exact:
            np.testing.assert_array_equal(found, exact(product, a, b, c))
        else:
            assert float_errors(product, a, b, c, found).max() <= 1


@on_integers
def test_every_pair_of_bytes(device, config):
    """All 65,536 pairs of 8-bit operands, at changing places of the inner dimension."""
    if config.a.bits != 8 or config.b.bits != 8:
        pytest.skip("for operands of 8 bits")
    product = _product(device, config)
    rows, columns, inner = product.shape
    shapes = operands(product, "random", 2)
    for high in range(0, 256, rows):
        for low in range(0, 256, columns):
            a, b, c = (np.zeros_like(shapes[0]), np.zeros_like(shapes[1]), shapes[2])
            place = (high + low // columns) % inner
            a[:, place] = np.arange(high, high + rows).astype(np.uint8).view(a.dtype)
            b[place] = np.arange(low, low + columns).astype(np.uint8).view(b.dtype)
            np.testing.assert_array_equal(run(device, product, a, b, c), exact(product, a, b, c))


@on_listed
def test_the_comparison_minds(device, config):
    """A result whose c was dropped, or whose operand changed in one place, is seen."""
    product = _product(device, config)
    a, b, c = operands(product, "random", 3)
    found = run(device, product, a, b, np.zeros_like(c))
    other = a.copy()
    other[0, 0] = other[0, 0] + other.dtype.type(1)
    for wrong in ((a, b, c), (other, b, np.zeros_like(c))):
        if config.accumulation_is_exact:
            assert (found != exact(product, *wrong)).any()
        else:
            assert float_errors(product, *wrong, found).max() > 1


@on_listed
def test_fills(device, config):
    """A fragment is filled with a number; one that is only declared is zero."""
    if config.result is F16:
        pytest.skip("conversions to float16 have no facts yet")
    width, tile = device.record.limits.warp_width, config.m * config.n
    type = SCALAR_NAMES[config.result]
    fragment = f'"f", fragment("result", {type}, {config.m}, {config.n}, "subgroup")'
    kernel = parse(
        f"kernel fills index 32 warp {width} {{\n"
        f"  param out: vec<{type}> = argument 0 array({type}, global, 1, C)\n"
        f"  coopmat declare({fragment})\n"
        f"  coopmat store({fragment}, out[0], {config.n}, row_major)\n"
        f"  coopmat fill({fragment}, {type}(7))\n"
        f"  coopmat store({fragment}, out[{tile}], {config.n}, row_major)\n}}\n"
    )
    out = np.ones(2 * tile, config.result.value)
    launch(device, kernel, (1, 1, 1), (width, 1, 1), 0, out)
    np.testing.assert_array_equal(out, np.repeat([0, 7], tile).astype(out.dtype))


# --- refusals -------------------------------------------------------------------------------------


@on_integers
def test_other_configurations_are_refused(device, config):
    """What is not listed is refused by name, and nothing is written."""
    product = _product(device, replace(config, k=4 * config.k))
    a, b, c = operands(product, "random", 4)
    rows, columns, _ = product.shape
    out = np.ones(rows * columns, config.result.value)
    given = [product.stored(name, m) for name, m in zip("abc", (a, b, c), strict=True)]
    with pytest.raises(CapabilityError, match="measured: the device lists"):
        execute.run_vectors(device, product.kernel(), [*given, out], product.block, product.grid)
    assert (out == 1).all()


@on_integers
def test_a_part_of_a_warp_is_refused(device, config):
    """A subgroup works on a fragment together."""
    product = _product(device, config)
    rows, columns, _ = product.shape
    given = [np.zeros(m.size, m.dtype) for m in operands(product, "random", 5)]
    out = np.zeros(rows * columns, config.result.value)
    with pytest.raises(InvalidDimensions, match="no whole number of warps"):
        execute.run_vectors(device, product.kernel(), [*given, out], product.block - 1, 1)
