"""Rules of variants: construction, and what patterns ask of them. Nothing else reads one."""

from __future__ import annotations

from typing import Any

from numba.core import types

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend import matching
from sarek_numba.frontend.complexes import is_complex
from sarek_numba.frontend.extensions import CompileTime
from sarek_numba.frontend.halves import value_type
from sarek_numba.frontend.records import RecordType, is_variant_type, number_type, value_of
from sarek_numba.frontend.rules.registry import rule
from sarek_numba.frontend.typed import (
    BindMethod,
    Complex,
    Constant,
    Convert,
    CopyRecord,
    GetPart,
    IsCase,
    MakeVariant,
    Operation,
    Type,
)
from sarek_numba.frontend.variants import CaseType, Variant, VariantValue
from sarek_numba.frontend.weak import Refusal, constant_of, describe, is_number, operand
from sarek_numba.ir.records import alike, leaves
from sarek_numba.ir.types import Record
from sarek_numba.ir.variants import (
    case_names,
    is_variant,
    other_declaration,
    part_path,
    payload,
    variant_name,
)


def type_of_part(kind: Any) -> Type:
    """The type of a part of a value."""
    number = number_type(kind)
    return value_of(kind) if number is None else number


def refused_read(owner: RecordType) -> Refusal:
    """Why the fields of a variant cannot be read."""
    name = variant_name(owner.record)
    first = case_names(owner.record)[0]
    names = ", ".join(f"f{k}" for k in range(len(payload(owner.record, 0))))
    return Refusal(
        f"the parts of {describe(owner)} are read by `match` alone",
        f"write `match` with a case for each, as in `case {name}.{first}({names}):`",
        UnsupportedConstruct,
    )


def refused_call(variant: Variant) -> Refusal:
    """Why a variant is not called."""
    first = variant.cases[0]
    return Refusal(
        f"{variant!r} is a variant, and a value of it is made by one of its cases",
        f"call one, as in {first!r}({', '.join(first.__match_args__)})",
    )


def refused_declaration() -> Refusal:
    """Why a kernel declares no variant."""
    return Refusal(
        "a variant is not declared in a kernel",
        "declare it before the kernel, as in Shape = sarek.variant(...)",
        UnsupportedConstruct,
    )


# --- construction ---------------------------------------------------------------------------------


def make(case: CaseType, given: tuple[Type, ...], named: Any) -> Operation:
    """`Shape.Circle(r)`."""
    from sarek_numba.frontend.rules.records import check_part  # which reads variants

    if named:
        raise Refusal(
            f"the parts of {case!r} have no names", "give them by position, in their order"
        )
    if len(given) != len(case.parts):
        shown = ", ".join(case.__match_args__)
        raise Refusal(
            f"{case!r} has {case.takes}, and {len(given)} {'is' if len(given) == 1 else 'are'} "
            "given",
            f"write {case!r}({shown})",
        )
    made = value_of(case.variant.scalar)
    wanted: list[Type] = []
    for position, (value, kind) in enumerate(
        zip(given, payload(made.record, case.index), strict=True)
    ):
        part = type_of_part(kind)
        with operand(position):
            check_part(value, part, f"part {position} of {case!r}")
        wanted.append(value if isinstance(part, RecordType) else part)
    return Operation(MakeVariant(case.index), tuple(wanted), made)


def check_variant(value: Type, record: Record, where: str) -> None:
    """Refuse what is no value of a variant."""
    name = variant_name(record)
    if is_variant_type(value) and alike(value.record, record):
        return
    hint = f"store one, as in {name}.{_call(record)}"
    if is_variant_type(value):
        hint = other_declaration(value.record, record) or hint
    given = value.value if isinstance(value, CompileTime) else None
    if isinstance(given, CaseType) and alike(given.variant.scalar, record):
        hint = f"call the case: {given!r}({', '.join(given.__match_args__)})"
    raise Refusal(f"{describe(value)} cannot be stored in {where}, which is of {name}", hint)


def _call(record: Record) -> str:
    names = ", ".join(f"f{k}" for k in range(len(payload(record, 0))))
    return f"{case_names(record)[0]}({names})"


def type_of_constant(value: VariantValue) -> Type:
    """The type of a value from around the kernel."""
    record = type(value).variant.scalar
    if any(leaf.counts for leaf in leaves(record)):
        raise Refusal(
            f"{value!r} is from around the kernel, and its variant has arrays",
            "pass an array of it, or make it in the kernel",
            UnsupportedConstruct,
        )
    return value_of(record)


# --- patterns -------------------------------------------------------------------------------------


@rule(matching.check_case)
def check_case(subject: Type, case: Type) -> Operation:
    _require(subject, case)
    return Operation(Constant(None), (), types.none)


@rule(matching.is_case)
def is_case(subject: Type, case: Type) -> Operation:
    return Operation(IsCase(_require(subject, case).index), (subject,), types.boolean)


@rule(matching.part)
def part(subject: Type, case: Type, number: Type) -> Operation:
    named = _require(subject, case)
    position = int(constant_of(number) or 0)
    kind = payload(subject.record, named.index)[position]
    path = part_path(subject.record, named.index, position)
    return Operation(GetPart(path), (subject,), value_type(type_of_part(kind)))


@rule(matching.own)
def own(value: Type) -> Operation:
    if not isinstance(value, RecordType):
        assert is_number(value) or is_complex(value)
        kept = Complex("convert") if is_complex(value) else Convert()
        return Operation(kept, (value,), value)
    what = BindMethod() if is_variant(value.record) else CopyRecord()
    return Operation(what, (value,), value_of(value.record))


def _require(subject: Type, case: Type) -> CaseType:
    """The case of a pattern; a `Refusal` if the subject is of no such variant."""
    named = case.value
    assert isinstance(named, CaseType)
    if is_variant_type(subject) and alike(subject.record, named.variant.scalar):
        return named
    hint = "write a value, a name or `_`"
    if is_variant_type(subject):
        name = variant_name(subject.record)
        anew = other_declaration(subject.record, named.variant.scalar)
        hint = anew or f"name a case of it, as in `{name}.{_call(subject.record)}`"
    raise Refusal(
        f"`{named!r}` is a case of {named.variant!r}, and what is matched is {describe(subject)}",
        hint,
    )
