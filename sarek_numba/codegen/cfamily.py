"""Programs of a C-like language from Sarek IR: one printer for every dialect.

In: a verified, legalised kernel and a `Dialect`. Out: `Emitted`, the text and what a launch must
know of it. The text is what a person would have written: the user's names, `for` loops, no
temporaries. The compiled text carries neither the kernel's name nor a place in a file, so that
equal kernels give equal programs; `header` and `entry` are for showing it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sarek_numba.codegen import texts
from sarek_numba.codegen.aliasing import aliasing_name, aliasing_types
from sarek_numba.codegen.dialect import Dialect, Entry
from sarek_numba.codegen.loops import accumulating, left_apart
from sarek_numba.codegen.namer import Namer
from sarek_numba.codegen.prelude import Prelude
from sarek_numba.codegen.statements import Statements
from sarek_numba.ir.depth import deep_recursion
from sarek_numba.ir.nodes import (
    ArrayCreate,
    Body,
    Call,
    Const,
    ConstDecl,
    Expr,
    HelperFunction,
    Kernel,
    LocalDecl,
    ParamDecl,
    SharedDecl,
    Var,
    VarRef,
)
from sarek_numba.ir.texts import text_of, without_fallbacks
from sarek_numba.ir.types import Array, ElementType, MemSpace, Scalar, TupleType, Unit, Vec
from sarek_numba.ir.walk import assigned_by, walk_stmts
from sarek_numba.ir.warps import has_meetings

ENTRY = "sarek_kernel"
_WORD = re.compile(r"\w+")
DYNAMIC_SHARED = "dynamic_shared"
_COLUMNS = 100
_REGION_ALIGNMENT = Scalar.UINT64.bits // 8  # of what is behind static arrays in the region


@dataclass(frozen=True, slots=True)
class Emitted:
    """A program. With `dynamic_shared` it has a dynamic shared region.

    That is the kernel's last parameter, unless the dialect declares it. A launch gives the region
    `region_bytes` more than are asked for: the static arrays are its first bytes then.
    """

    text: str
    static_shared_bytes: int
    dynamic_shared: bool
    region_bytes: int = 0


def emit(kernel: Kernel, dialect: Dialect, entry: str | None = None) -> Emitted:
    """Print a kernel. Raises InvalidIR for a node or a type that the dialect cannot spell.

    With `entry` the kernel function has a name made from it, otherwise the fixed `ENTRY`.
    """
    with deep_recursion():
        return Printed(kernel, dialect).emit(entry)


def header(kernel: Kernel) -> str:
    """The comment above shown source: the kernel's name and where it was written."""
    place = f", {kernel.span.file}:{kernel.span.line}" if kernel.span else ""
    return f"// {kernel.name}{place}\n"


class Printed:
    """A program on its way to text."""

    def __init__(self, kernel: Kernel, dialect: Dialect) -> None:
        self.kernel = kernel
        self.dialect = dialect
        reserved = (*dialect.reserved, *texts.words(kernel))
        self.namer = Namer(reserved, dialect.reserved_leads)
        self.prelude = Prelude(dialect)
        self.printer = Statements(dialect, self.prelude, self.namer)
        self.written = _written_parameters(kernel)
        self.kernel = kernel = without_fallbacks(kernel)
        self.printer.aliasing = aliasing_types(kernel) if dialect.aliasing else frozenset()
        if dialect.keep_apart:
            self.printer.carried = left_apart(kernel)
        if dialect.accumulating_loop:
            self.printer.accumulating = accumulating(kernel)
        self.structures: list[str] = []
        self.static_shared_bytes = 0
        self.shared = [decl for decl in kernel.locals if isinstance(decl, SharedDecl)] + list(
            self.printer.hoisted_shared(kernel.body)
        )
        self.region_bytes = self._region_bytes()

    def emit(self, entry: str | None) -> Emitted:
        name = ENTRY
        if entry is not None:
            name = self.namer.name(entry, self.dialect.reserved_functions)
        constants = [
            self._constant_array(decl) for decl in self.kernel.locals if isinstance(decl, ConstDecl)
        ]
        helpers = [self._helper(function) for function in self.kernel.functions]
        body = self.kernel_function(name)
        parts = [
            *self._aliasing_definitions(),
            *self.structures,
            *(["\n".join(constants)] if constants else []),
            *self.prelude.definitions,
            *helpers,
            body,
        ]
        text = "\n\n".join(parts) + "\n"
        return Emitted(
            self._prologue(text) + text,
            self.static_shared_bytes,
            self._has_dynamic(),
            self.region_bytes,
        )

    def _prologue(self, text: str) -> str:
        """The first lines: they depend on what types and functions the program has come to name."""
        lines = list(self.dialect.prologue)
        words = set(_WORD.findall(text))
        for scalar, needed in self.dialect.type_prologue.items():
            if self.dialect.types[scalar] in words:
                lines += needed
        for word, needed in self.dialect.word_prologue.items():
            if word in words:
                lines += [line for line in needed if line not in lines]
        return "\n".join(lines) + "\n\n" if lines else ""

    def _aliasing_definitions(self) -> list[str]:
        names = sorted(self.dialect.types[scalar] for scalar in self.printer.aliasing)
        lines = [self.dialect.aliasing.format(type=n, name=aliasing_name(n)) for n in names]
        return ["\n".join(lines)] if lines else []

    # --- declarations ---

    def _constant_array(self, decl: ConstDecl) -> str:
        values = [self.printer.value(Const(decl.element, bits)) for bits in decl.bits]
        head = f"{self.dialect.constant_array} {self._element(decl.element)} {self._name(decl.var)}"
        return "\n".join(_wrapped(f"{head}[{len(values)}] = {{", values or ["0"], "};"))

    def _has_dynamic(self) -> bool:
        return self.region_bytes > 0 or any(decl.size is None for decl in self.shared)

    def _region_bytes(self) -> int:
        """What the static arrays take of the dynamic region; 0 where they are none of its parts.

        A multiple of the largest element, so that what follows is aligned for every type.
        """
        most = self.dialect.most_static_shared
        end = sum(_size(decl)[1] for decl in self.shared if decl.size is not None)
        if most is None or end <= most:
            return 0
        assert self.dialect.dynamic_shared, "the region is declared by the program"
        end = 0
        for decl in self.shared:
            if decl.size is not None:
                item, size = _size(decl)
                end = _rounded(end, item) + size
        return _rounded(end, _REGION_ALIGNMENT)

    def _shared(self, decl: SharedDecl) -> None:
        if decl.size is None:
            self._region_part(decl, self.region_bytes + decl.offset)
            return
        item, size = _size(decl)
        if self.region_bytes:
            first = _rounded(self.static_shared_bytes, item)
            self._region_part(decl, first)
            self.static_shared_bytes = first + size
            return
        self.static_shared_bytes += size
        self.printer.declare_shared(decl.var, self._element(decl.element), size // item)

    def _region_part(self, decl: SharedDecl, offset: int) -> None:
        """A pointer to what begins at a byte of the dynamic region."""
        name = self._name(decl.var)
        pointer = f"{self.dialect.pointer_space[MemSpace.SHARED]} ".lstrip()
        element = self.printer.pointed_type(decl.element)
        byte = self.dialect.types[Scalar.UINT8]
        base = f"({pointer}{byte} *){DYNAMIC_SHARED}"
        start = f"({base} + {offset})" if offset else DYNAMIC_SHARED
        self.printer.line(f"{pointer}{element} *{name} = ({pointer}{element} *){start};")

    def _local(self, decl: LocalDecl) -> None:
        self.printer.declare(decl.var, decl.value)

    # --- functions ---

    def kernel_function(self, name: str) -> str:
        """The kernel as a function."""
        entry = self.dialect.entry
        self.printer.start(None)
        params = self._parameters() if entry is None else self._placed_parameters(entry)
        if self._has_dynamic() and not self.dialect.dynamic_shared:
            space = f"{self.dialect.pointer_space[MemSpace.SHARED]} ".lstrip()
            # 64-bit elements, so that the region is aligned for every type
            region = f"{space}{self.dialect.types[Scalar.UINT64]} *{DYNAMIC_SHARED}"
            params.append(region if entry is None else entry.region.format(region))
        if self._has_dynamic() and self.dialect.dynamic_shared:
            type = self.dialect.types[Scalar.UINT64]
            line = self.dialect.dynamic_shared.format(type=type, name=DYNAMIC_SHARED)
            self.printer.line(line)
        self.kernel_body()
        for word in self._builtins_used():
            type, attribute = self._builtins()[word]
            params.append(f"{type} {word} [[{attribute}]]")
        return self.whole_function(f"{self.head()} {name}", params)

    def kernel_body(self) -> None:
        """Print what the kernel declares and does."""
        for shared in self.shared:
            self._shared(shared)
        for decl in self.kernel.locals:
            if isinstance(decl, LocalDecl):
                self._local(decl)
        self.printer.body(self.kernel.body)

    def _parameters(self) -> list[str]:
        return [self.kernel_parameter(decl) for decl in self.kernel.params]

    def _placed_parameters(self, entry: Entry) -> list[str]:
        """Buffers at their places, and one structure; its numbers become variables."""
        buffers = [decl for decl in self.kernel.params if not isinstance(decl.var.type, Scalar)]
        numbers = [decl for decl in self.kernel.params if isinstance(decl.var.type, Scalar)]
        params = [
            entry.buffer.format(self.kernel_parameter(decl), place)
            for place, decl in enumerate(buffers)
        ]
        if numbers:
            fields = [self.kernel_parameter(decl) for decl in numbers]
            inside = "".join(f"    {field};\n" for field in fields)
            self.structures.append(f"struct {entry.structure} {{\n{inside}}};")
            params.append(
                entry.numbers.format(type=entry.structure, name=entry.name, place=len(buffers))
            )
            for decl, field in zip(numbers, fields, strict=True):
                self.printer.line(f"{field} = {entry.name}.{self.printer.names[decl.var.id]};")
        return params

    def _builtins(self) -> Mapping[str, tuple[str, str]]:
        return {} if self.dialect.entry is None else self.dialect.entry.builtins

    def _builtins_used(self) -> tuple[str, ...]:
        """The built-in values that the function just printed uses."""
        words = {word for line in self.printer.lines for word in _WORD.findall(line)}
        return tuple(word for word in self._builtins() if word in words)

    def head(self) -> str:
        """What stands before the name of the kernel function."""
        width, warp = self.kernel.warp_width, self.dialect.warp
        if width is None or warp is None or not has_meetings(self.kernel):
            return self.dialect.kernel_head
        return warp.kernel_head.format(width) + self.dialect.kernel_head

    def _helper(self, function: HelperFunction) -> str:
        name = self.namer.name(function.name, self.dialect.reserved_functions)
        self.printer.functions[function.name] = name
        result = self._result(function.result, name)
        self.printer.results[function.name] = result
        with self._scope():
            written = self.written[function.name]
            params = [self._parameter(v, i in written) for i, v in enumerate(function.params)]
            self.printer.start(result if isinstance(function.result, TupleType) else None)
            given = text_of(function)
            if given is not None:
                self._text(given, function)
            else:
                for decl in function.locals:
                    self._local(decl)
                self.printer.body(function.body)
            used = self.printer.given[function.name] = self._builtins_used()
            params += [f"{self._builtins()[word][0]} {word}" for word in used]
            head = f"{self.dialect.function_head} {result} {name}".lstrip()
            return self.whole_function(head, params)

    def _text(self, text: str, function: HelperFunction) -> None:
        names = [self.printer.names[param.id] for param in function.params]
        for line in texts.lines(text, function, names, self._spelled):
            self.printer.line(line)

    def _spelled(self, type: ElementType) -> str:
        return "void" if isinstance(type, Unit) else self.printer.pointed_type(type)

    def _result(self, result: ElementType, name: str) -> str:
        """The C type of a helper's result; that of a tuple is a structure defined on the way."""
        match result:
            case Unit():
                return "void"
            case TupleType(items=items):
                structure = self.namer.name(f"{name}_result")
                fields = "".join(
                    f"    {self._value_type(item)} item{i};\n" for i, item in enumerate(items)
                )
                self.structures.append(f"struct {structure} {{\n{fields}}};")
                return f"struct {structure}"
            case _:
                return self._value_type(result)

    def whole_function(self, head: str, params: Sequence[str]) -> str:
        """A function of the lines that were printed."""
        opening = _wrapped(f"{head}(", params or ["void"], ") {")
        return "\n".join((*opening, *self.printer.lines, "}"))

    @contextmanager
    def _scope(self) -> Iterator[None]:
        self.namer.enter()
        yield
        self.namer.leave()

    def kernel_parameter(self, decl: ParamDecl) -> str:
        """The declaration of a parameter of the kernel; it ends with the parameter's name."""
        index = self.kernel.params.index(decl)
        if isinstance(decl.var.type, Scalar):  # a kernel takes a bool as it stands in memory
            return f"{self._element(decl.var.type)} {self._name(decl.var)}"
        alone = decl.array is not None and decl.array.restrict
        return self._parameter(decl.var, index in self.written[None], alone)

    def _parameter(self, var: Var, written: bool, alone: bool = False) -> str:
        match var.type:
            case Vec(element=element):
                space = MemSpace.GLOBAL
            case Array(element=element, space=space):
                pass
            case _:
                return f"{self._value_type(var.type)} {self._name(var)}"
        words = [self.dialect.pointer_space[space], "" if written else "const"]
        star = f"*{self.dialect.restrict} " if alone and self.dialect.restrict else "*"
        words += [self.printer.pointed_type(element), f"{star}{self._name(var)}"]
        return " ".join(filter(None, words))

    def _name(self, var: Var) -> str:
        return self.printer.declare_name(var)

    def _element(self, element: ElementType) -> str:
        return self.printer.memory_type(element)

    def _value_type(self, type: ElementType) -> str:
        return self.printer.type(type)


def _size(decl: SharedDecl) -> tuple[int, int]:
    """Bytes of an element, and of all."""
    assert isinstance(decl.element, Scalar)
    assert decl.size is not None
    item = decl.element.bits // 8
    return item, item * _constant_size(decl.size)


def _rounded(size: int, to: int) -> int:
    return -(-size // to) * to


def _constant_size(size: Expr) -> int:
    match size:
        case Const():
            return int(size.value)
        case ArrayCreate(size=inner):
            return _constant_size(inner)
        case _:
            raise AssertionError("legalised arrays have constant sizes")


def _wrapped(head: str, items: Sequence[str], tail: str) -> list[str]:
    """`head` items `tail` on one line if it fits, else as many items to a line as fit."""
    whole = head + ", ".join(items) + tail
    if len(whole) <= _COLUMNS:
        return [whole]
    lines, row = [head], "   "
    for number, item in enumerate(items, 1):
        piece = f" {item}" + ("," if number < len(items) else "")
        if len(row) + len(piece) > _COLUMNS and row.strip():
            lines.append(row)
            row = "   "
        row += piece
    return [*lines, row, tail.lstrip()]


def _written_parameters(kernel: Kernel) -> dict[str | None, set[int]]:
    """For each helper by name, and the kernel as None: the parameters it writes through."""
    written: dict[str | None, set[int]] = {}
    for function in kernel.functions:  # a helper stands before those who call it
        ids = _written_arrays(function.body, written)
        written[function.name] = {i for i, var in enumerate(function.params) if var.id in ids}
    ids = _written_arrays(kernel.body, written)
    written[None] = {i for i, decl in enumerate(kernel.params) if decl.var.id in ids}
    return written


def _written_arrays(body: Body, written: dict[str | None, set[int]]) -> set[int]:
    ids: set[int] = set()
    for stmt in walk_stmts(body):
        target = assigned_by(stmt)
        if target is not None:
            ids.add(target.id)
        match stmt:
            case Call(function=callee, args=args):
                for i in written[callee]:
                    arg = args[i]
                    assert isinstance(arg, VarRef)
                    ids.add(arg.var.id)
            case _:
                pass
    return ids
