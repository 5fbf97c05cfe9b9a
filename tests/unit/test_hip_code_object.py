"""What is read of AMD's code objects: those of clang for each target, of a stub, and of no form."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sarek_hip import code_object
from tests import fake_hip
from tests.toolchains import amd

SOURCE = """
extern "C" __global__ void add(float *out, int outs, const float *x, long long n) { out[n] = x[0]; }
__global__ void other(char c, double d, short *s) { *s = c + d; }
"""
KERNELS = {"add": (8, 4, 8, 8), "_Z5othercdPs": (1, 8, 8)}


@pytest.mark.skipif(bool(amd.why_not()), reason=amd.why_not() or "present")
@pytest.mark.parametrize("target", amd.TARGETS)
def test_code_objects_of_clang(target: str, tmp_path: Path) -> None:
    """Names and sizes of parameters; none of those that the compiler adds."""
    log, text = amd.assembly(SOURCE, target)
    assert log == ""
    made = tmp_path / "made.o"
    head = [str(amd.compiler()), "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}"]
    command = [*head, "-x", "assembler", "-c", "-", "-o", str(made)]
    subprocess.run(command, input=text, text=True, check=True)
    assert code_object.kernels(made.read_bytes()) == KERNELS


def _image() -> bytes:
    content = fake_hip.packed({"amdhsa.kernels": [{".name": "k", ".args": []}]})
    return fake_hip.elf(content, b"code")


def test_bundles() -> None:
    """The ELF file in a bundle of clang's is found."""
    image, triple = _image(), b"hipv4-amdgcn-amd-amdhsa--gfx90a"
    first = 24 + 8 + 24 + len(triple)
    entry = struct.pack("<QQQ", first, len(image), len(triple)) + triple
    bundle = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 1) + entry + image
    assert code_object.kernels(image) == {"k": ()}
    assert code_object.kernels(bundle) == {"k": ()}


def test_what_is_no_code_object() -> None:
    """Nothing is told of it, wherever it ends."""
    image = _image()
    assert code_object.kernels(b"") == code_object.kernels(b"CCOB\1\0") == {}
    assert [code_object.kernels(image[:n]) for n in range(len(image) - len(b"code"))] == [
        {} for _ in range(len(image) - len(b"code"))
    ]
    assert code_object.kernels(b"__CLANG_OFFLOAD_BUNDLE__" + bytes(8)) == {}


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\x05", 5),
        (b"\xff", -1),
        (b"\xc0", None),
        (b"\xc3", True),
        (b"\xcd\x01\x00", 256),
        (b"\xd1\xff\x00", -256),
        (b"\xcb" + struct.pack(">d", 0.5), 0.5),
        (b"\xa3abc", "abc"),
        (b"\xd9\x03abc", "abc"),
        (b"\x92\x01\x02", [1, 2]),
        (b"\xdc\x00\x02\x01\x02", [1, 2]),
        (b"\x81\xa1a\x90", {"a": []}),
        (b"\xde\x00\x01\xa1a\x01", {"a": 1}),
    ],
)
def test_message_pack(data: bytes, value: Any) -> None:
    """Each form, by the examples of its description."""
    assert code_object.unpack(data) == value


def test_message_pack_that_llvm_does_not_write() -> None:
    """An extension type is refused by its number."""
    with pytest.raises(ValueError, match="0xd4"):
        code_object.unpack(b"\xd4\x00\x00")
