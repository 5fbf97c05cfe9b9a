"""From kernels to programs: `compile_linear`.

A program is made once for each content of a kernel, device, and function that makes programs. What
tells kernels apart for readers alone (names, lines, tags) is no content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.text import nameless_text
from sarek_numba.ir.verify import verify
from sarek_numba.realize.data import Call, CustomCall, KernelCall, Linear, ProgramCall
from sarek_numba.realize.programs import Program
from sarek_numba.runtime import launch as launching
from sarek_numba.runtime.cache import Memo
from sarek_numba.runtime.handmade import arguments_of, name_of
from sarek_numba.runtime.registry import Device

ToProgram = Callable[[Device, Kernel], Program]
"""Compiles a kernel for a device."""

_programs: Memo[Program] = Memo()


def program_for(device: Device, kernel: Kernel) -> Program:
    """A program of a kernel in Sarek IR.

    Raises InvalidIR, CapabilityError, SourceCompilationError.
    """
    verify(kernel)
    return compiled(device, launching.analyse(kernel, [name_of(p) for p in arguments_of(kernel)]))


def compiled(device: Device, analysed: launching.Analysed) -> Program:
    """A program of an analysed kernel. Raises CapabilityError, SourceCompilationError."""
    launching.check_capabilities(device, analysed)
    launching.compile_on(device, analysed)
    return Program(device, analysed)


def cached_program(device: Device, kernel: Kernel, to_program: ToProgram | None = None) -> Program:
    """The program of a kernel, made if no kernel of this content has one."""
    make = to_program or program_for
    content = sha256(nameless_text(kernel).encode()).hexdigest()
    return _programs.get((content, device, make), lambda: make(device, kernel))


def on_device(program: Program, device: Device) -> Program:
    """A program of the same kernel for another device."""
    if program.device is device:
        return program
    key = (program.analysed.identity, device)
    return _programs.get(key, lambda: compiled(device, program.analysed))


def compile_linear(device: Device, linear: Linear, to_program: ToProgram | None = None) -> Linear:
    """A schedule with a program in place of each kernel, within graphs too.

    Other calls are the same objects as before; where nothing changes it is the schedule itself.
    `to_program` makes the programs, as `program_for` does. Raises what that raises.
    """
    calls = tuple(_compiled(device, call, to_program) for call in linear)
    same = all(new is old for new, old in zip(calls, linear, strict=True))
    return linear if same else Linear(calls)


def _compiled(device: Device, call: Call, to_program: ToProgram | None) -> Call:
    match call:
        case KernelCall(kernel, arguments, info):
            return ProgramCall(cached_program(device, kernel, to_program), arguments, info)
        case CustomCall(linear=Linear() as linear):
            made = compile_linear(device, linear, to_program)
            return call if made is linear else replace(call, linear=made)
        case _:
            return call
