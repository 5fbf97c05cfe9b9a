"""One peer in a process of its own, which gives a sample when the parent asks.

A sample is

    untimed warm call -> outputs poisoned -> `calls` timed calls -> every output compared

A peer is a module with `CONTENDERS = {kernel: factory}`; `factory(inp, out)` gets the inputs and
the preallocated host outputs (page-aligned NumPy arrays, scalars as Python numbers) and returns
either

    run               a callable without arguments that fills `out` and returns when it is done, or
    (run, get, put)   for device memory: get() -> {name: array}; put({name: array}) writes outputs
"""

from __future__ import annotations

import importlib
import multiprocessing.connection as mpc
import platform
import sys
import time
import traceback

import numpy as np

from benchmarks.arrays import aligned, poison, tidy, verify


def contenders_of(module, peer):
    """`{kernel: factory}`, also from `{kernel: {peer: factory}}`."""
    table = {}
    for kernel, entry in module.CONTENDERS.items():
        entry = entry.get(peer) if isinstance(entry, dict) else entry
        if entry is not None:
            table[kernel] = entry
    return table


class Session:
    """One peer's side of the conversation: opens a kernel, gives samples, closes it."""

    def __init__(self, module, peer):
        self.module = importlib.import_module(module)
        self.table = contenders_of(self.module, peer)

    def about(self):
        return {
            "kernels": sorted(self.table),
            "version": getattr(self.module, "VERSION", ""),
            "python": platform.python_version(),
        }

    def open(self, kernel, folder, meta):
        self.meta, self.inp, self.ref, self.out = meta, dict(meta["scalars"]), {}, {}
        for name in meta["arrays"]:
            src = np.load(f"{folder}/in_{name}.npy", mmap_mode="r")
            self.inp[name] = aligned(src.shape, src.dtype)
            self.inp[name][...] = src
        for name, dtype in meta["outputs"].items():
            self.ref[name] = np.load(f"{folder}/ref_{name}.npy", mmap_mode="r")
            self.out[name] = aligned(self.ref[name].shape, dtype)
        start = time.perf_counter()
        self.reset_host()
        job = self.table[kernel](self.inp, self.out)
        self.run, self.get, self.put = (
            job if isinstance(job, tuple) else (job, lambda: self.out, lambda _: None)
        )
        self.reset()
        self.run()
        first = time.perf_counter() - start
        ok, text = self.check(1)
        return {"ok": ok, "text": text, "first_s": first}

    def reset_host(self):
        for name, a in self.out.items():
            if name in self.meta["inplace"]:
                a[...] = self.inp[name]
            else:
                poison(a)

    def reset(self):
        self.reset_host()
        self.put(self.out)

    def check(self, calls):
        got = self.get()
        for name, dtype in self.meta["outputs"].items():
            if got[name].dtype != np.dtype(dtype):
                return False, f"{name}: dtype {got[name].dtype}, expected {dtype}"
        ref = self.ref
        if self.meta["inplace"]:  # the reference is the first call's; each call adds the same
            ref = {
                k: self.inp[k] + calls * (v - self.inp[k].astype(v.dtype)) for k, v in ref.items()
            }
        return verify(got, ref, self.meta["tolerance"])

    def sample(self, calls):
        run, clock = self.run, time.perf_counter
        run()
        self.reset()
        start = clock()
        for _ in range(calls):
            run()
        took = (clock() - start) / calls
        ok, text = self.check(calls)
        return {"ok": ok, "text": text, "t": took}

    def close(self):
        self.run = self.get = self.put = None
        self.inp = self.out = self.ref = None
        return {"ok": True}


def worker(module, peer, fd):
    conn = mpc.Connection(fd)
    try:
        session = Session(module, peer)
        conn.send(session.about())
    except BaseException as e:
        traceback.print_exc()
        conn.send({"error": tidy(f"{type(e).__name__}: {e}")})
        return
    while True:
        verb, *args = conn.recv()
        if verb == "quit":
            return
        try:
            conn.send(getattr(session, verb)(*args))
        except Exception as e:
            traceback.print_exc()
            conn.send({"ok": False, "text": tidy(f"{type(e).__name__}: {e}")})


if __name__ == "__main__":
    worker(sys.argv[1], sys.argv[2], int(sys.argv[3]))
