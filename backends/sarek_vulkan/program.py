"""A whole module: its arguments, arrays, functions and what it declares of itself.

A helper becomes a function for each way in which it is called: pointers to shared and constant
arrays and views of the dynamic region cannot be handed on in SPIR-V's logical memory, so a function
names such an array itself, and one of a thread's arrays has the length in its type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sarek_numba.ir.nodes import (
    ArrayCreate,
    Atomic,
    Barrier,
    Const,
    ConstDecl,
    Coopmat,
    Expr,
    HelperFunction,
    Kernel,
    Let,
    LocalDecl,
    MemFence,
    SharedDecl,
    Var,
    WarpBarrier,
)
from sarek_numba.ir.texts import text_of
from sarek_numba.ir.types import Array, ElementType, MemSpace, Scalar, TupleType, Unit, Vec
from sarek_numba.ir.walk import bodies_of_kernel, walk_stmts
from sarek_numba.passes import library
from sarek_vulkan import arguments, assembly, warps, watch
from sarek_vulkan.abilities import Abilities
from sarek_vulkan.arrays import (
    ArrayPlace,
    Buffer,
    Memory,
    Variable,
    View,
    memory_scalar,
    stored_scalar,
)
from sarek_vulkan.code import Code, Value
from sarek_vulkan.coordinates import Coordinates
from sarek_vulkan.hidden import hider
from sarek_vulkan.layout import ENTRY, SHARED_CONSTANT, Module
from sarek_vulkan.spirv import Assembler, Section
from sarek_vulkan.statements import Statements
from sarek_vulkan.synchronisation import Model
from sarek_vulkan.types import UNSIGNED, Types

# A kernel's meaning wants these of the float controls; their opposites exclude them.
FLOAT_MODES = frozenset({"DenormPreserve", "RoundingModeRTE", "SignedZeroInfNanPreserve"})

Given = Value | ArrayPlace
Helpers = Callable[[str], HelperFunction]


class Program:
    """One module in the making."""

    def __init__(self, kernel: Kernel, abilities: Abilities, push_limit: int) -> None:
        self.kernel = kernel
        self.abilities = abilities
        self.push_limit = push_limit
        self.assembler = Assembler()
        self.types = Types(self.assembler)
        self.model = Model(abilities.memory_model and _communicates(kernel))
        wide = kernel.index_bits == 64
        self.memory = Memory(self.types, self.model.vulkan, wide)
        self.coordinates = Coordinates(self.types, wide)
        self.helpers: Helpers = {helper.name: helper for helper in kernel.functions}.__getitem__
        self.arrays: dict[int, ArrayPlace] = {}  # those that every function can name
        self.interface: list[int] = []
        self.static_shared_bytes = 0
        self.local_bytes = 0
        self.watch: int | None = None  # the variable that holds the address of `watch`
        self._functions: dict[tuple[object, ...], int] = {}

    def emit(self) -> Module:
        """The module. Raises InvalidIR for what SPIR-V cannot say."""
        self._declare_model()
        for decl in self.kernel.locals:
            if isinstance(decl, ConstDecl):
                self._constant_array(decl)
            elif isinstance(decl, SharedDecl) and decl.size is not None:
                self._shared_array(decl.var, decl.element, decl.size)
        for stmt in walk_stmts(self.kernel.body):
            match stmt:
                case Let(var=var, value=ArrayCreate(element, size, MemSpace.SHARED)):
                    self._shared_array(var, element, size)
                case _:
                    pass
        views = [d for d in self.kernel.locals if isinstance(d, SharedDecl) and d.size is None]
        if views:
            self._region(views)
        watched = self.abilities.gives_up_loops
        if watched:
            type = self.types.scalar(Scalar.UINT64)
            self.watch = self._variable("Private", type, "watch", self.types.zero(type))
        block = arguments.Block(self.types, self.kernel.params, self.push_limit, watched=watched)
        entry = self._entry(block)
        self._declare_entry(entry)
        return Module(
            words=self.assembler.words(),
            arguments=block.arguments,
            argument_bytes=block.size,
            spilled=block.spilled,
            static_shared_bytes=self.static_shared_bytes,
            dynamic_shared=bool(views),
            capabilities=self.assembler.declared(Section.CAPABILITIES),
            extensions=self.assembler.declared(Section.EXTENSIONS),
            watched=watched,
            local_bytes=self.local_bytes,
        )

    # --- declarations ---

    def _declare_model(self) -> None:
        for name in ("Shader", "PhysicalStorageBufferAddresses"):
            self.assembler.capability(name)
        if self.model.vulkan:
            self.assembler.capability("VulkanMemoryModel")
        name = "Vulkan" if self.model.vulkan else "GLSL450"
        self.assembler.add(Section.MODEL, "OpMemoryModel", "PhysicalStorageBuffer64", name)

    def _declare_entry(self, entry: int) -> None:
        interface = (*self.coordinates.variables.values(), *self.interface)
        add = self.assembler.add
        add(Section.ENTRY, "OpEntryPoint", "GLCompute", entry, ENTRY, *interface)
        # the constant decorated WorkgroupSize is what counts
        add(Section.MODES, "OpExecutionMode", entry, "LocalSize", 1, 1, 1)
        for mode, width in sorted(self.abilities.float_controls):
            if mode in FLOAT_MODES and width in self.types.float_widths:
                self.assembler.capability(mode)
                add(Section.MODES, "OpExecutionMode", entry, mode, width)

    def _variable(self, storage: str, type: int, name: str, *initial: int) -> int:
        pointer = self.types.pointer(storage, type)
        variable = self.assembler.unique("OpVariable", pointer, storage, *initial)
        self.assembler.add(Section.NAMES, "OpName", variable, f"{name}_{variable}")
        self.interface.append(variable)
        return variable

    def _constant_array(self, decl: ConstDecl) -> None:
        stored = memory_scalar(decl.element)
        bits = decl.bits or (0,)
        items = [self.types.const(Const(stored, pattern)) for pattern in bits]
        type = self.types.array(self.types.scalar(stored), len(bits))
        values = self.assembler.constant("OpConstantComposite", type, *items)
        variable = self._variable("Private", type, decl.var.name, values)
        self.arrays[decl.var.id] = Variable(variable, decl.element, "Private", stored, type)

    def _shared_array(self, var: Var, element: ElementType, size: Expr) -> None:
        assert isinstance(element, Scalar)
        length = _constant_size(size)
        self.static_shared_bytes += length * element.bits // 8
        stored = stored_scalar(element)
        type = self.types.array(self.types.scalar(stored), max(1, length))
        variable = self._variable("Workgroup", type, var.name)
        self.arrays[var.id] = Variable(variable, element, "Workgroup", stored, type)

    def _region(self, views: Sequence[SharedDecl]) -> None:
        """The dynamic shared region, an array of the narrowest elements that it is viewed as."""
        widths = [decl.element.bits for decl in views if isinstance(decl.element, Scalar)]
        offsets = [8 * decl.offset for decl in views]
        width: int = min(widths)
        while any(offset % width for offset in offsets):
            width //= 2
        word, number = UNSIGNED[width], self.types.integer(32)
        size = self.assembler.unique("OpSpecConstant", number, 8)
        self.assembler.add(Section.DECORATIONS, "OpDecorate", size, "SpecId", SHARED_CONSTANT)
        bytes = self.types.number(Scalar.UINT32, width // 8)
        count = self.assembler.unique("OpSpecConstantOp", number, "UDiv", size, bytes)
        type = self.assembler.type("OpTypeArray", self.types.scalar(word), count)
        region = self._variable("Workgroup", type, "dynamic_shared")
        for decl in views:
            assert isinstance(decl.element, Scalar)
            first = 8 * decl.offset // width
            self.arrays[decl.var.id] = View(region, decl.element, word, first)

    # --- functions ---

    def _entry(self, block: arguments.Block) -> int:
        result, type = self.types.void, self.types.function(self.types.void, ())
        entry, emitter = self._begin(ENTRY, self.helpers)
        given = block.load(emitter.code)
        self.interface += block.variables
        if self.abilities.lanes_run_along:
            warps.leave_if_no_thread(emitter)
        if self.watch is not None:
            *given, address = given
            assert isinstance(address, Value)
            watch.keep(emitter, address)
        for decl, place in zip(self.kernel.params, given, strict=True):
            self._receive(emitter, decl.var, place)
        for local in self.kernel.locals:
            if isinstance(local, LocalDecl):
                emitter.declare(local.var, local.value)
        emitter.body(self.kernel.body)
        if emitter.code.open:
            emitter.code.end("OpReturn")
        self._finish(emitter.code, entry, result, type, ())
        return entry

    def library_call(self, code: Code, name: str, given: Sequence[Value]) -> Value:
        """Call a function of `library`."""
        helper = library.function(name)
        assert isinstance(helper.result, Scalar)
        return Value(self.call(code, helper, given, library.function), helper.result)

    def call(
        self, code: Code, helper: HelperFunction, given: Sequence[Given], helpers: Helpers
    ) -> int:
        """Call a helper, which itself may call `helpers`; the id of its result."""
        key = (id(helper), *map(_way, given))  # a user's and the library's may have one name
        if key not in self._functions:
            self._functions[key] = self._function(helper, given, helpers)
        passed = [p for place in given if (p := _passed(place)) is not None]
        result = self._result(helper.result)
        return code.do("OpFunctionCall", result, self._functions[key], *passed)

    def _result(self, result: ElementType) -> int:
        match result:
            case Unit():
                return self.types.void
            case TupleType(items=items):
                parts = [self._result(item) for item in items]
                return self.assembler.type("OpTypeStruct", *parts, key="tuple")
            case Scalar():
                return self.types.scalar(result)
            case _:
                raise AssertionError(f"a helper returns no {result}")

    def _function(self, helper: HelperFunction, given: Sequence[Given], helpers: Helpers) -> int:
        """The function of a helper for arguments like those given."""
        function, emitter = self._begin(helper.name, helpers)
        result = emitter.result = self._result(helper.result)
        params: list[tuple[int, int]] = []
        seen = [self._parameter(place, params) for place in given]
        for var, place in zip(helper.params, seen, strict=True):
            self._receive(emitter, var, place)
        for local in helper.locals:
            emitter.declare(local.var, local.value)
        text = text_of(helper)
        if text is None:
            emitter.body(helper.body)
        else:
            assembly.write(emitter.code, helper, text, seen, result)
        if emitter.code.open:
            if result == self.types.void:
                emitter.code.end("OpReturn")
            else:
                emitter.code.end("OpReturnValue", self.types.zero(result))
        type = self.types.function(result, tuple(type for type, _ in params))
        self._finish(emitter.code, function, result, type, params)
        return function

    def _parameter(self, place: Given, params: list[tuple[int, int]]) -> Given:
        """What a function sees of an argument; a parameter is added if it needs one."""
        if not _passes(place):
            return place
        id = self.assembler.id()
        match place:
            case Value(type=type):
                params.append((self.types.scalar(type), id))
                return Value(id, type)
            case Buffer(element=element):
                structure = self.types.buffer(element)
                params.append((self.types.pointer("PhysicalStorageBuffer", structure), id))
                self.assembler.add(Section.DECORATIONS, "OpDecorate", id, "Aliased")
                return Buffer(id, element)
            case Variable(element=element, storage=storage, stored=stored, type=type):
                params.append((self.types.pointer(storage, type), id))
                return Variable(id, element, storage, stored, type)
            case _:
                raise AssertionError("a view is not passed")

    def _receive(self, emitter: Statements, var: Var, given: Given) -> None:
        """Make an argument known under its parameter's variable."""
        if isinstance(given, Value):
            emitter.code.name(given.id, var.name)
            emitter.bind(var, given)
        else:
            assert isinstance(var.type, Vec | Array)
            if isinstance(given, Buffer):
                emitter.code.name(given.base, var.name)
            emitter.arrays[var.id] = given

    def _begin(self, name: str, helpers: Helpers) -> tuple[int, Statements]:
        function = self.assembler.id()
        code = Code(self.types, self.kernel.fastmath)
        if self.abilities.narrows_wrongly:
            code.hide = hider(code, self.coordinates)
        if not self.kernel.fastmath:
            code.flushed = self.abilities.flushes
        code.start(code.label())
        code.name(function, name)
        return function, Statements(self, code, helpers)

    def _finish(
        self, code: Code, function: int, result: int, type: int, params: Sequence[tuple[int, int]]
    ) -> None:
        label, *rest = code.instructions
        head = ("OpFunction", (result, function, "None", type))
        taken = [("OpFunctionParameter", param) for param in params]
        self.assembler.extend([head, *taken, label, *code.variables, *rest, ("OpFunctionEnd", ())])


def _passes(place: Given) -> bool:
    """Whether a function gets an argument as a parameter, and does not name it itself."""
    match place:
        case Value() | Buffer() | Variable(storage="Function"):
            return True
        case _:
            return False


def _passed(place: Given) -> int | None:
    match place:
        case Value(id=id):
            return id
        case Buffer(base=base) | Variable(storage="Function", base=base):
            return base
        case _:
            return None


def _way(place: Given) -> object:
    """What of an argument a function depends on."""
    match place:
        case Value():
            return None
        case Buffer():
            return "buffer"
        case Variable(storage="Function", type=type, element=element):
            return type, element
        case _:
            return place


def _communicates(kernel: Kernel) -> bool:
    """Whether threads of a kernel may learn of what others of the launch have written.

    Those that load a matrix together do.
    """
    return any(
        isinstance(stmt, Barrier | WarpBarrier | MemFence | Atomic | Coopmat)
        for body in bodies_of_kernel(kernel)
        for stmt in walk_stmts(body)
    )


def _constant_size(size: Expr) -> int:
    match size:
        case Const():
            return int(size.value)
        case ArrayCreate(size=inner):
            return _constant_size(inner)
        case _:
            raise AssertionError("legalised arrays have constant sizes")
