"""`sarek.variant`: tagged unions on the host.

A variant is a type with cases, `Shape.Circle`, each a class whose instances are values of it. So a
kernel that CPython runs constructs and matches the very objects that the host does. Values do not
change: a part that is a record is given as a copy.

The same declaration gives the same `Variant`, whoever repeats it, and `variant_of` finds it from
the dtype of an array, in another process too. Imports no Numba, as `language`.
"""

from __future__ import annotations

import keyword
import operator
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sarek_numba.errors import Diagnostic, TypingError
from sarek_numba.frontend import language
from sarek_numba.frontend.language import DType, RecordConstructor
from sarek_numba.span import Span

if TYPE_CHECKING:
    from sarek_numba.ir.layout import Layout

Places = npt.NDArray[Any]  # an array of variants or records without axes: the place of one


class CaseType(type):
    """The class of cases: each is a class, which a pattern of Python can name."""

    variant: Variant
    index: int
    parts: tuple[np.dtype[Any], ...]
    __match_args__: tuple[str, ...]

    def __repr__(cls) -> str:
        return cls.__name__

    def __instancecheck__(cls, value: Any) -> bool:
        case = type(value)
        if case is cls or not isinstance(case, CaseType) or not hasattr(cls, "variant"):
            return bool(super().__instancecheck__(value))
        return bool(case.index == cls.index and case.variant.is_like(cls.variant))

    @property
    def takes(cls) -> str:
        """How many parts it has, in words."""
        return f"{len(cls.parts)} part{'' if len(cls.parts) == 1 else 's'}"


class VariantValue(metaclass=CaseType):
    """A value of a variant; its class is the case."""

    __slots__ = ("_held",)
    __match_args__: tuple[str, ...] = ()
    _held: tuple[Any, ...]

    def __init__(self, *parts: Any) -> None:
        case = type(self)
        if len(parts) != len(case.parts):
            raise TypeError(f"{case!r} has {case.takes}, and {len(parts)} are given")
        pairs = enumerate(zip(parts, case.parts, strict=True))
        held = tuple(_held(part, kind, f"part {k} of {case!r}") for k, (part, kind) in pairs)
        object.__setattr__(self, "_held", held)

    @classmethod
    def of(cls, held: tuple[Any, ...]) -> VariantValue:
        """A value of parts that have their types already."""
        made = cls.__new__(cls)
        object.__setattr__(made, "_held", held)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a value of {type(self).variant.name} does not change")

    def part(self, number: int) -> Any:
        """A part: a NumPy scalar, a value of a variant, or a record of its own."""
        held = self._held[number]
        thread = language.active()
        if not isinstance(held, np.ndarray):
            return held if thread is None else thread.read(held)
        if thread is not None:
            return thread.record(held.copy())
        return held.copy().view(np.dtype((np.record, held.dtype)))[()]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VariantValue):
            return NotImplemented
        if not isinstance(other, type(self)):
            return False
        return all(map(_same, self._held, other._held))

    def __hash__(self) -> int:
        return hash((type(self).index, *(h for h in self._held if not isinstance(h, np.ndarray))))

    def __int__(self) -> int:
        """What NumPy asks of a value at `a[i] = value`, where it stores no array."""
        name = type(self).variant.name
        raise TypeError(
            f"a value of {name} is no number: store it as a[i, ...] = value, and make arrays by "
            f"{name}.array"
        )

    def __repr__(self) -> str:
        return f"{type(self)!r}({', '.join(map(_shown, self._held))})"

    def __reduce__(self) -> Any:
        case = type(self)
        return _restored_value, (case.variant.dtype, case.index, self._held)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Places:
        """The value as an element of an array, so that NumPy can store it into one."""
        made = np.zeros((), type(self).variant.dtype)
        encode(self, made)
        return made if dtype is None else made.astype(dtype)


class Variant(RecordConstructor):
    """A tagged union: its cases are attributes.

    It is an annotation (`Shape[:]`), an element type of arrays, and NumPy takes it for a dtype.
    """

    def __init__(self, name: str, dtype: np.dtype[Any]) -> None:
        from sarek_numba.ir.variants import parts_of_dtype

        super().__init__(dtype)
        self.name = name
        found = parts_of_dtype(dtype)
        self.cases = tuple(_case(self, k, *case) for k, case in enumerate(found))
        for (case_name, _), case in zip(found, self.cases, strict=True):
            setattr(self, case_name, case)

    def is_like(self, other: Variant) -> bool:
        """Whether two variants have one name and the same cases, wherever these lie in memory."""
        return self is other or structure(self.dtype) == structure(other.dtype)

    def __call__(self, *values: Any, **named: Any) -> Any:
        raise TypeError(f"{self.name} has cases, which are called: {_calls(self)}")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.name} has no case {name!r}")

    def array(self, values: Iterable[Any]) -> npt.NDArray[Any]:
        """A 1-D array of values, or of the elements of another array of this variant."""
        if isinstance(values, np.ndarray):
            values = self.values(values.reshape(-1))
        listed = list(values)
        made = np.zeros(len(listed), self.dtype)
        for k, value in enumerate(listed):
            encode(value, made[k, ...])
        return made

    def values(self, array: npt.ArrayLike) -> list[Any]:
        """The values of an array; as `tolist` does, lists of lists for several axes."""
        places = np.asarray(array)
        found = variant_of(places.dtype)
        if found is None or not found.is_like(self):
            raise TypeError(
                f"{self.name}.values() takes an array of {self.name}{_anew(found, self)}"
            )
        if places.ndim == 0:
            return [decode(places)]
        if places.ndim == 1:
            return [decode(places[k, ...]) for k in range(len(places))]
        return [self.values(inner) for inner in places]

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return variant_of, (self.dtype,)


def _case(variant: Variant, index: int, name: str, parts: tuple[np.dtype[Any], ...]) -> CaseType:
    names = tuple(f"f{k}" for k in range(len(parts)))
    body: dict[str, Any] = {"__slots__": (), "__match_args__": names}
    for k, each in enumerate(names):
        body[each] = property(partial(VariantValue.part, number=k))
    made = CaseType(f"{variant.name}.{name}", (VariantValue,), body)
    made.variant, made.index, made.parts = variant, index, parts
    return made


def _anew(given: Any, variant: Variant) -> str:
    """What to add to a refusal if what is given is of another variant of the same name."""
    from sarek_numba.ir.variants import other_declaration

    if not isinstance(given, Variant):
        return ""
    found = other_declaration(given.scalar, variant.scalar)
    return "" if found is None else f"; {found}"


def _calls(variant: Variant) -> str:
    """How the cases are called."""
    return ", ".join(f"{case!r}({', '.join(case.__match_args__)})" for case in variant.cases)


# --- values in memory -----------------------------------------------------------------------------


def encode(value: Any, place: Places) -> None:
    """Store a value: the tag and the parts of its case, no other byte."""
    variant = variant_of(place.dtype)
    assert variant is not None
    if not isinstance(value, VariantValue) or not type(value).variant.is_like(variant):
        anew = _anew(getattr(type(value), "variant", None), variant)
        raise TypeError(f"{value!r} is no value of {variant.name}: {_calls(variant)}{anew}")
    place["tag"] = type(value).index
    for part, target in zip(value._held, _part_places(place, type(value)), strict=True):
        if isinstance(part, VariantValue):
            encode(part, target)
        elif isinstance(part, np.ndarray):
            copy_record(target, part)
        else:
            target[...] = part


def decode(place: Places) -> VariantValue:
    """The value that a place holds. Raises ValueError for a tag without a case."""
    variant = variant_of(place.dtype)
    assert variant is not None
    tag = int(place["tag"])
    if not 0 <= tag < len(variant.cases):
        raise ValueError(f"the tag {tag} is of no case of {variant.name}")
    case = variant.cases[tag]
    held = (
        decode(part)
        if variant_of(part.dtype) is not None
        else part.copy()
        if part.dtype.names is not None
        else part[()]
        for part in _part_places(place, case)
    )
    made: VariantValue = case.of(tuple(held))  # type: ignore[attr-defined] # a VariantValue's class
    return made


def _part_places(place: Places, case: CaseType) -> list[Places]:
    name = (place.dtype.names or ())[1 + case.index]
    field = place[name]
    if len(case.parts) == 1:
        return [field]
    return [field[part] for part in field.dtype.names or ()]


def copy_record(target: Places, source: Places) -> None:
    """Copy the fields of a record in order; of a variant in it the tag and the case that it has.

    What lies between the fields stays as it is: NumPy 2.5 copies that too.
    """
    for ours, theirs in zip(target.dtype.names or (), source.dtype.names or (), strict=True):
        _copy_field(target[ours], source[theirs])


@lru_cache(maxsize=1024)
def has_variants(dtype: np.dtype[Any]) -> bool:
    """Whether a record or a variant has a variant in it, or is one."""
    if dtype.names is None:
        return dtype.subdtype is not None and has_variants(dtype.subdtype[0])
    return variant_of(dtype) is not None or any(has_variants(dtype[name]) for name in dtype.names)


def _copy_field(target: Places, source: Places) -> None:
    if source.dtype.names is None:
        target[...] = source
        return
    for index in np.ndindex(source.shape):
        if variant_of(source.dtype) is not None:
            encode(decode(source[(*index, ...)]), target[(*index, ...)])
        else:
            copy_record(target[(*index, ...)], source[(*index, ...)])


def _held(value: Any, kind: np.dtype[Any], where: str) -> Any:
    """A value as a part of a type."""
    variant = variant_of(kind)
    if variant is not None:
        if not isinstance(value, VariantValue) or not type(value).variant.is_like(variant):
            anew = _anew(getattr(type(value), "variant", None), variant)
            raise TypeError(f"{where} is a {variant.name}, and {value!r} is none{anew}")
        return value
    if kind.names is not None:
        source = np.asarray(getattr(value, "array", value))
        if source.dtype.names != kind.names:
            raise TypeError(f"{where} is a record of {', '.join(kind.names)}")
        made = np.zeros((), kind)
        copy_record(made, source)
        return made
    thread = language.active()
    if thread is not None:
        return thread.number(value, kind)
    return _number(value, kind, where)


def _number(value: Any, kind: np.dtype[Any], where: str) -> Any:
    """A number of the host; where a kernel's store would change it, it is refused."""
    try:
        if kind.kind in "iu":
            return kind.type(operator.index(value))
        if kind.kind == "b" and not isinstance(value, (bool, np.bool_)):
            raise TypeError
        if kind.name in ("float16", "bfloat16"):
            from sarek_numba.ir.semantics import half_of
            from sarek_numba.ir.types import Scalar

            return half_of(value, Scalar(kind.name))
        return kind.type(float(value) if kind.kind == "f" else value)
    except (TypeError, ValueError):
        raise TypeError(f"{where} is {kind.name}, not {value!r}") from None
    except OverflowError:
        raise OverflowError(f"{where} is {kind.name}, not {value!r}") from None


def _same(left: Any, right: Any) -> bool:
    """Equality of parts; of records field by field, of variants by their values."""
    if not isinstance(left, np.ndarray):
        return bool(left == right)
    if left.dtype.names is None:
        return bool(np.array_equal(left, right))
    for index in np.ndindex(left.shape):
        ours, theirs = left[(*index, ...)], right[(*index, ...)]
        if variant_of(left.dtype) is not None:
            if decode(ours) != decode(theirs):
                return False
        elif not all(_same(ours[name], theirs[name]) for name in left.dtype.names):
            return False
    return True


def _shown(part: Any) -> str:
    if isinstance(part, VariantValue):
        return repr(part)
    if not isinstance(part, np.ndarray) or part.dtype.names is None:
        return str(part)
    if part.shape:
        return f"[{', '.join(_shown(part[(*index, ...)]) for index in np.ndindex(part.shape))}]"
    if variant_of(part.dtype) is not None:
        return repr(decode(part))
    return f"({', '.join(f'{name}={_shown(part[name])}' for name in part.dtype.names)})"


# --- declarations ---------------------------------------------------------------------------------

_declared: dict[np.dtype[Any], Variant] = {}
_by_structure: dict[Any, Variant] = {}


def variant(name: str, cases: Any = (), /, **named: Any) -> Variant:
    """A tagged union: `variant("Shape", Circle=float32, Rect=(float32, float32), Point=None)`.

    A case has no part (None), one, or a tuple of them: number types, structured dtypes, variants.
    Cases whose names are no keywords of a call are given as a mapping, or as pairs, before the
    others. The tag of a case is its position. Raises TypingError, at the place of the call.
    """
    pairs = [*(cases.items() if isinstance(cases, Mapping) else cases), *named.items()]
    refuse = _Refusing(name)
    if not isinstance(name, str) or not name.isidentifier():
        raise refuse(f"{name!r} is no name of a variant", "write an identifier, as in 'Shape'")
    if not pairs:
        raise refuse(f"the variant {name!r} has no cases", "give it some, as in Circle=float32")
    checked: dict[str, tuple[np.dtype[Any], ...]] = {}
    for case, payload in pairs:
        _check_name(case, checked, refuse)
        checked[case] = tuple(_parts(name, case, payload, refuse))
    return _intern(name, _dtype(name, checked))


class _Refusing:
    """Makes the refusals of one declaration, which stands where `variant` is called."""

    def __init__(self, name: Any) -> None:
        frame = sys._getframe(2)
        code = frame.f_code
        positions = list(code.co_positions())[frame.f_lasti // 2]
        line, end_line, column, end_column = positions
        self.span = Span(code.co_filename, line or frame.f_lineno, column, end_line, end_column)

    def __call__(self, message: str, hint: str) -> TypingError:
        return TypingError(Diagnostic(TypingError, message, self.span, hint))


def _check_name(case: Any, known: Mapping[str, Any], refuse: _Refusing) -> None:
    if not isinstance(case, str) or not case.isidentifier() or keyword.iskeyword(case):
        raise refuse(f"{case!r} is no name of a case", "write an identifier, as in Circle")
    if case in known:
        raise refuse(f"the case {case!r} is declared twice", "give each case a name of its own")
    if case == "tag":
        raise refuse("a case cannot be named 'tag', as the field of the tag is", "rename it")
    if case.startswith("_") or case in _TAKEN:
        raise refuse(
            f"a case cannot be named {case!r}: that is an attribute of every variant",
            f"rename it, as in {case.strip('_').capitalize() or 'Circle'!s}",
        )


_TAKEN = frozenset(
    {*(each for each in dir(Variant) if not each.startswith("_")), "name", "dtype", "cases"}
)


def _parts(
    variant_name: str, case: str, payload: Any, refuse: _Refusing
) -> Iterator[np.dtype[Any]]:
    from sarek_numba.ir.records import InvalidRecord, kind_of

    given = () if payload is None else payload if isinstance(payload, tuple) else (payload,)
    for part in given:
        if isinstance(part, str) and part.strip() == variant_name:
            raise refuse(
                f"the variant {variant_name!r} contains itself, in the case {case!r}",
                "keep its values in an array, and the index of one in the case, as in sarek.int32",
            )
        try:
            kind = part.dtype if isinstance(part, DType) else np.dtype(part)
            if part is None or kind.subdtype is not None:
                raise TypeError
            kind_of(kind)
        except InvalidRecord as error:
            message = f"a part of the case {case!r} is refused: {error.message}"
            raise refuse(message, error.hint) from None
        except TypeError:
            raise refuse(
                f"{part!r} is no type of a part of the case {case!r}",
                "write number types, structured dtypes, variants, a tuple of them, or None",
            ) from None
        yield kind


def _dtype(name: str, cases: Mapping[str, tuple[np.dtype[Any], ...]]) -> np.dtype[Any]:
    """The dtype of a variant: the fields of the parts keep the user's own dtypes."""
    from sarek_numba.ir.layout import layout_of
    from sarek_numba.ir.records import kind_of
    from sarek_numba.ir.variants import is_bundle, made, titles

    kinds = {case: tuple(kind_of(part) for part in parts) for case, parts in cases.items()}
    record = made(name, tuple(kinds.items()))
    formats = [np.dtype(np.int32)]
    for (_, field), parts in zip(record.fields[1:], cases.values(), strict=True):
        if not is_bundle(field):
            formats.append(parts[0])
            continue
        formats.append(_placed(_names(parts), parts, layout_of(field)))
    names = [each for each, _ in record.fields]
    return _placed(names, formats, layout_of(record), titles(record))


def _placed(
    names: Sequence[str], formats: Sequence[Any], layout: Layout, titles: Any = None
) -> np.dtype[Any]:
    described: Any = {
        "names": list(names),
        "formats": list(formats),
        "offsets": list(layout.offsets),
        "itemsize": layout.size,
        "titles": titles or [None] * len(names),
    }
    made: np.dtype[Any] = np.dtype(described, align=True)
    return made


def _names(parts: Sequence[Any]) -> list[str]:
    return [f"f{k}" for k in range(len(parts))]


def _intern(name: str, dtype: np.dtype[Any]) -> Variant:
    known = _declared.get(dtype)
    if known is None:
        known = _declared.setdefault(dtype, Variant(name, dtype))
        _by_structure.setdefault(structure(dtype), known)
        variant_of.cache_clear()
    return known


@lru_cache(maxsize=1024)
def variant_of(dtype: np.dtype[Any]) -> Variant | None:
    """The variant that a dtype is of, declared in this process or not; None for any other."""
    from sarek_numba.ir.variants import name_of_dtype, parts_of_dtype

    name = name_of_dtype(dtype)
    if name is None:
        return None
    known = _declared.get(dtype) or _by_structure.get(structure(dtype))
    return known or _intern(name, _dtype(name, dict(parts_of_dtype(dtype))))


@lru_cache(maxsize=1024)
def structure(dtype: np.dtype[Any]) -> Any:
    """What a dtype is made of, without a word on where it lies."""
    from sarek_numba.ir.variants import name_of_dtype, parts_of_dtype

    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return structure(base), shape
    variant = name_of_dtype(dtype)
    if variant is not None:
        cases = ((case, *map(structure, parts)) for case, parts in parts_of_dtype(dtype))
        return variant, *cases
    if dtype.names is None:
        return dtype.str
    return tuple((name, structure(dtype[name])) for name in dtype.names)


def _restored_value(dtype: np.dtype[Any], index: int, held: tuple[Any, ...]) -> VariantValue:
    found = variant_of(dtype)
    assert found is not None
    made: VariantValue = found.cases[index].of(held)  # type: ignore[attr-defined] # as in decode
    return made
