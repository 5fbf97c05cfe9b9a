"""The parent: stages inputs, gives the turn to one worker at a time, keeps samples and load.

Round after round every peer gives one sample, so drift and neighbours' load hit all alike, and
ratios are taken within a round. A sample whose outputs are wrong makes the peer failed for that
kernel: it gets no time at all.
"""

from __future__ import annotations

import math
import multiprocessing.connection as mpc
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.arrays import tidy
from benchmarks.report import summarise

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Settings:
    """`repeat` rounds are kept; `quiet` is the foreign load in cores that a kept round may have."""

    repeat: int
    quiet: float
    min_ms: float


@dataclass
class Peer:
    module: str
    python: str = sys.executable
    env: dict = field(default_factory=dict)
    note: str = ""


class Worker:
    """The parent's handle on one peer's process; restarted after a crash or a time-out."""

    def __init__(self, name, peer, log, timeout):
        self.name, self.peer, self.log, self.timeout = name, peer, log, timeout
        self.start()

    def start(self):
        ours, theirs = socket.socketpair()
        command = [
            self.peer.python,
            "-m",
            "benchmarks.worker",
            self.peer.module,
            self.name,
            str(theirs.fileno()),
        ]
        lib = str(Path(self.peer.python).parent.parent / "lib")  # where pip puts shared libraries
        env = {k: v.replace("{lib}", lib) for k, v in self.peer.env.items()}
        self.process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
            stdout=self.log,
            stderr=self.log,
        )
        theirs.close()
        self.conn = mpc.Connection(ours.detach())
        self.about = self.answer()

    def answer(self):
        try:
            if not self.conn.poll(self.timeout):
                self.process.kill()
                self.process.wait()
                return {
                    "ok": False,
                    "error": "time-out",
                    "text": f"time-out after {self.timeout} s",
                }
            return self.conn.recv()
        except (EOFError, ConnectionResetError):
            code = self.process.wait()
            why = signal.Signals(-code).name if code < 0 else f"exit {code}"
            return {"ok": False, "error": why, "text": f"worker died: {why}"}

    def ask(self, *message):
        if self.process.poll() is not None:
            self.start()
        try:
            self.conn.send(message)
        except (BrokenPipeError, ConnectionResetError):
            return {"ok": False, "text": "worker died"}
        return self.answer()

    def quit(self):
        if self.process.poll() is None:
            try:
                self.conn.send(("quit",))
                self.process.wait(20)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                self.process.kill()


def stage(kernel, size, folder):
    """Inputs and reference of one kernel on disk, for every worker alike."""
    inp = kernel["make_inputs"](int(size) if size.isdigit() else size)
    ref = kernel["reference"](inp)
    for name, a in inp.items():
        if isinstance(a, np.ndarray):
            np.save(f"{folder}/in_{name}.npy", a)
    for name, a in ref.items():
        np.save(f"{folder}/ref_{name}.npy", a)
    return {
        "arrays": [k for k, v in inp.items() if isinstance(v, np.ndarray)],
        "scalars": {k: v for k, v in inp.items() if not isinstance(v, np.ndarray)},
        "outputs": kernel["outputs"],
        "inplace": kernel["inplace"],
        "tolerance": kernel["tolerance"],
        "flops": float(kernel["flops"](inp, ref)),
        "bytes": float(kernel["bytes"](inp, ref)),
    }


def cpu_seconds(pids):
    """(busy time of all cores, time of these processes); None where /proc is missing."""
    try:
        tick = os.sysconf("SC_CLK_TCK")
        total = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        own = 0
        for pid in pids:
            after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            own += int(after[11]) + int(after[12])
        return (sum(total) - total[3] - total[4]) / tick, own / tick
    except OSError:
        return None


def foreign(before, after, seconds):
    """Cores kept busy by processes that are not ours: what a reader needs to trust or distrust a
    row.
    """
    if not before or not after:
        return None
    return round(max(0.0, (after[0] - before[0]) - (after[1] - before[1])) / seconds, 2)


def measure(workers, name, size, kernel, opt):
    folder = tempfile.mkdtemp(
        prefix="peers-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None
    )
    try:
        meta = stage(kernel, size, folder)
        row = {
            "kernel": name,
            "size": size,
            "flops": meta["flops"],
            "bytes": meta["bytes"],
            "peers": {},
        }
        live = {}
        for w in workers:
            if name not in w.about.get("kernels", ()):
                continue
            got = w.ask("open", name, folder, meta)
            entry = row["peers"][w.name] = {
                "library": w.name in kernel["library"],
                "samples": [],
                "first_s": got.get("first_s"),
            }
            if got["ok"]:
                got = w.ask("sample", 1)  # sets the number of calls a sample; itself not counted
            if got["ok"]:
                entry["calls"] = max(
                    1, min(1000, math.ceil(opt.min_ms / 1e3 / max(got["t"], 1e-9)))
                )
                entry["check"] = got["text"]
                live[w.name] = w
            else:
                fail(entry, got["text"])
        order = list(live)
        pids = [os.getpid(), *(w.process.pid for w in live.values())]
        load = []
        while (
            len(load) < 4 * opt.repeat
            and sum(x is None or x <= opt.quiet for x in load) < opt.repeat
        ):
            r, before, start = (
                len(load) % max(1, len(order)),
                cpu_seconds(pids),
                time.perf_counter(),
            )
            for peer in order[r:] + order[:r]:
                entry = row["peers"][peer]
                if entry.get("status") == "failed":
                    continue
                got = live[peer].ask("sample", entry["calls"])
                if got["ok"]:
                    entry["samples"].append(got["t"])
                else:
                    fail(entry, got["text"])
            load.append(foreign(before, cpu_seconds(pids), time.perf_counter() - start))
        keep = sorted(
            sorted(range(len(load)), key=lambda r: load[r] or 0)[: opt.repeat]
        )  # by load, never by time
        for entry in row["peers"].values():
            entry["samples"] = [entry["samples"][r] for r in keep if entry["samples"]]
        row.update(
            rounds=len(load), foreign_cores=round(statistics.mean(load[r] or 0 for r in keep), 2)
        )
        for w in live.values():
            if w.process.poll() is None:
                w.ask("close")
        return summarise(row)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fail(entry, why):
    entry.update(status="failed", verified=False, reason=tidy(why), samples=[])
