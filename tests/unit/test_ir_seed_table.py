"""`docs/ir.md` maps every constructor of the seed to something that exists, and its IR is right."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from sarek_numba.ir.convergence import check_convergence
from sarek_numba.ir.parse import parse
from sarek_numba.ir.text import text
from sarek_numba.ir.verify import verify

DOCUMENT = (Path(__file__).parents[2] / "docs" / "ir.md").read_text()
ROW = re.compile(r"^\| `([\w.]+)` \| `([\w.]+)` \|(.*)\|$", re.MULTILINE)
ROWS = ROW.findall(DOCUMENT)
MAPPED = {seed: here for seed, here, _ in ROWS}
ADDED = sorted({name for *_, note in ROWS for name in re.findall(r"`(\w+\.[\w.]+)`", note)})

SEED = {
    "memspace": "Global Shared Local",
    "elttype": """TInt32 TInt64 TFloat16 TFloat32 TFloat64 TUint8 TBool TUnit TRecord TVariant
        TArray TVec""",
    "const": "CInt32 CInt64 CFloat32 CFloat64 CBool CUnit",
    "binop": "Add Sub Mul Div Mod Eq Ne Lt Le Gt Ge And Or Shl Shr BitAnd BitOr BitXor",
    "unop": "Neg Not BitNot",
    "for_dir": "Upto Downto",
    "pattern": "PConstr PWild",
    "expr": """EConst EVar EBinop EUnop EArrayRead EArrayReadExpr ERecordField EIntrinsic ECast
        ETuple EApp ERecord EVariant EArrayLen EArrayCreate EIf EMatch""",
    "lvalue": "LVar LArrayElem LArrayElemExpr LRecordField",
    "stmt": """SAssign SSeq SIf SWhile SFor SMatch SReturn SBarrier SWarpBarrier SExpr SEmpty SLet
        SLetMut SPragma SMemFence SBlock SNative SCoopmat""",
    "coopmat_op": "CM_decl CM_load CM_store CM_muladd",
    "decl": "DParam DLocal DShared",
    "native_arg": "NA_Int32 NA_Int64 NA_Float32 NA_Float64 NA_Vec",
    "native_vec": "NV",
    "native_fn_t": "NativeFn",
}
PLAIN = """Type_id var array_info helper_func native_vec_ops ocaml_closure vec_get_custom
    vec_set_custom vec_length vec_as_vector kernel default_kernel make_kernel"""
WANTED = {f"{type}.{name}" for type, names in SEED.items() for name in names.split()}


def test_every_constructor_has_a_row() -> None:
    assert WANTED | set(PLAIN.split()) <= set(MAPPED)


@pytest.mark.parametrize("name", [*sorted(set(MAPPED.values())), *ADDED])
def test_what_is_named_exists(name: str) -> None:
    module, *rest = name.split(".")
    found: object = importlib.import_module(f"sarek_numba.ir.{module}")
    for part in rest:
        found = getattr(found, part)


def test_no_row_is_overlooked() -> None:
    """Each line of the table is read as a row."""
    table = DOCUMENT.split("## The seed")[1]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    assert len(ROWS) == len(lines) == len(MAPPED)


@pytest.mark.parametrize("source", re.findall(r"```sarek-ir\n(.*?)```", DOCUMENT, re.DOTALL))
def test_examples(source: str) -> None:
    """The examples are canonical text of valid kernels without divergent barriers."""
    kernel = parse(source)
    assert text(kernel) == source
    verify(kernel)
    assert check_convergence(kernel) == []
