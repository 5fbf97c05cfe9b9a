"""Several launches of one kernel as one launch of a program that has all their arguments.

The parameters that are memory stand once for each launch, one launch after the other. Behind them
is a structure, given by value, with what else there is of each launch: its numbers, and `PLACES`,
which say where its blocks are: the number of its first block among those of all, and the three
sizes of its grid. The grid of the whole is a row. Each block finds its launch by its number, takes
the arguments of that into variables that have the names of the kernel's own parameters, and does
what the kernel does. So all threads of a block belong to one launch, shared arrays and barriers
stay as they are, and the kernel sees the grid, and the place in it, of its own launch.
"""

from __future__ import annotations

from dataclasses import replace

from sarek_numba.codegen.cfamily import Emitted, Printed
from sarek_numba.codegen.dialect import Dialect
from sarek_numba.ir.depth import deep_recursion
from sarek_numba.ir.expressions import Index
from sarek_numba.ir.nodes import Atomic, Coordinate, Kernel, MemFence, SharedDecl, While
from sarek_numba.ir.texts import has_texts
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.walk import bodies_of_kernel, walk_body_exprs, walk_stmts

PLACES = ("first", "columns", "rows", "layers")
"""What follows the numbers of each launch, as uint32."""

_AXES = "xyz"
_BLOCKS = tuple(f"joined_block_{axis}" for axis in _AXES)
_SIZES = tuple(f"joined_{size}" for size in PLACES[1:])
_NUMBERS = "joined_numbers"
_OWN = frozenset((*_BLOCKS, _NUMBERS, *_SIZES, "joined_block", "joined_first"))
_OF_THE_GRID = frozenset(
    (Coordinate.BLOCK_IDX, Coordinate.GRID_DIM, Coordinate.GLOBAL_IDX, Coordinate.GRID_SIZE)
)


def why_not(kernel: Kernel) -> str | None:
    """Why launches of a legalised kernel cannot be joined; None if they can."""
    if any(isinstance(decl, SharedDecl) and decl.size is None for decl in kernel.locals):
        return "it has dynamic shared memory"
    if has_texts(kernel):
        return "a function of it is given as text, which may ask for the place in the grid"
    for function in kernel.functions:
        for expr in walk_body_exprs(function.body):
            if isinstance(expr, Index) and expr.coordinate in _OF_THE_GRID:
                return f"its function '{function.name}' asks for the place in the grid"
    statements = [s for body in bodies_of_kernel(kernel) for s in walk_stmts(body)]
    if any(isinstance(s, While) for s in statements) and any(
        isinstance(s, Atomic | MemFence) for s in statements
    ):
        return "blocks of it may wait for each other, and would have to run at the same time"
    return None


def emit(kernel: Kernel, dialect: Dialect, count: int) -> Emitted:
    """Print `count` launches of a kernel of which `why_not` says nothing, as one program."""
    with deep_recursion():
        number = dialect.coordinates[Coordinate.BLOCK_IDX][0]
        return _Joined(kernel, _dialect(dialect), count, number).emit(None)


def _dialect(dialect: Dialect) -> Dialect:
    """The dialect in which the place in the grid is that in the block's own launch."""
    wide, word = dialect.types[dialect.coordinate_type], dialect.types[Scalar.UINT32]
    size, thread = (dialect.coordinates[c] for c in (Coordinate.BLOCK_DIM, Coordinate.THREAD_IDX))

    def places(form: str) -> tuple[str, str, str]:
        x, y, z = (
            form.format(block=b, grid=g, size=s, thread=t, wide=wide, word=word)
            for b, g, s, t in zip(_BLOCKS, _SIZES, size, thread, strict=True)
        )
        return x, y, z

    coordinates = {
        Coordinate.BLOCK_IDX: places("(({wide}){block})"),
        Coordinate.GRID_DIM: places("(({wide}){grid})"),
        Coordinate.GLOBAL_IDX: places("({block} * {size} + {thread})"),
        Coordinate.GRID_SIZE: places("({grid} * {size})"),
    }
    narrow = {
        Coordinate.GLOBAL_IDX: places("((int)({block} * ({word}){size} + ({word}){thread}))"),
        Coordinate.GRID_SIZE: places("((int)({grid} * ({word}){size}))"),
    }
    return replace(
        dialect,
        coordinates={**dialect.coordinates, **coordinates},
        narrow_coordinates={c: narrow[c] for c in dialect.narrow_coordinates},
        reserved=dialect.reserved | _OWN,
    )


class _Joined(Printed):
    def __init__(self, kernel: Kernel, dialect: Dialect, count: int, number: str) -> None:
        super().__init__(kernel, dialect)
        self._count = count
        self._number = f"({dialect.types[Scalar.UINT32]}){number}"

    def kernel_function(self, name: str) -> str:
        """The kernel with the arguments of all launches."""
        printer, word = self.printer, self.dialect.types[Scalar.UINT32]
        names, leads = [], []
        for decl in self.kernel.params:
            declared = self.kernel_parameter(decl)
            names.append(printer.names[decl.var.id])
            leads.append(declared.removesuffix(names[-1]))
        memory = [not isinstance(decl.var.type, Scalar) for decl in self.kernel.params]
        members: list[str] = []
        params: list[str] = []
        given: list[list[str]] = []
        for k in range(self._count):
            given.append([])
            for lead, wish, is_memory in zip(leads, names, memory, strict=True):
                one = self.namer.name(f"{wish}_{k}")
                (params if is_memory else members).append(f"{lead}{one}")
                given[k].append(one if is_memory else f"{_NUMBERS}.{one}")
            members += [f"{word} joined_{place}_{k}" for place in PLACES]
        fields = "".join(f"    {member};\n" for member in members)
        self.structures.append(f"struct {_NUMBERS} {{\n{fields}}};")
        params.append(f"struct {_NUMBERS} {_NUMBERS}")
        printer.start(None)
        for lead, own in zip(leads, names, strict=True):
            printer.line(f"{self._unrestricted(lead)}{own};")
        self._choose(names, given)
        self.kernel_body()
        return self.whole_function(f"{self.head()} {name}", params)

    def _unrestricted(self, lead: str) -> str:
        """Of two pointers of one scope that are `restrict` none may be made of the other."""
        word = self.dialect.restrict
        return lead.replace(f"*{word} ", "*") if word else lead

    def _choose(self, names: list[str], given: list[list[str]]) -> None:
        """Take the arguments of the block's launch, and find the block's place in its grid."""
        line, word = self.printer.line, self.dialect.types[Scalar.UINT32]
        line(f"{word} joined_block = {self._number};")
        line(f"{word} joined_first, {', '.join(_SIZES)};")
        variables = [*names, *(f"joined_{place}" for place in PLACES)]
        for k in range(self._count):
            is_last = k + 1 == self._count
            test = "" if is_last else f"if (joined_block < {_NUMBERS}.joined_first_{k + 1}) "
            values = [*given[k], *(f"{_NUMBERS}.joined_{place}_{k}" for place in PLACES)]
            line(f"{'} else ' if k else ''}{test}{{")
            for variable, value in zip(variables, values, strict=True):
                line(f"    {variable} = {value};")
        line("}")
        columns, rows, _ = _SIZES
        line("joined_block -= joined_first;")
        line(f"{word} {_BLOCKS[0]} = joined_block % {columns};")
        line(f"{word} {_BLOCKS[1]} = joined_block / {columns} % {rows};")
        line(f"{word} {_BLOCKS[2]} = joined_block / {columns} / {rows};")
