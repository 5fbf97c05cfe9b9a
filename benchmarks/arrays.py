"""Arrays that all peers work on, and the check of what they leave there."""

from __future__ import annotations

import re

import numpy as np

PAGE = 4096


def aligned(shape, dtype):
    """Page-aligned uninitialised array; NumPy asks for huge pages from 4 MiB on, so every peer
    gets them.
    """
    dtype = np.dtype(dtype)
    nbytes = max(1, int(np.prod(shape))) * dtype.itemsize
    raw = np.empty(nbytes + 2 * PAGE, np.uint8)
    start = -raw.ctypes.data % PAGE
    return raw[start : start + nbytes].view(dtype)[: int(np.prod(shape))].reshape(shape)


def poison(a):
    """A value no kernel produces: NaN, or 0x5A in every byte."""
    if a.dtype.kind == "f":
        a.fill(np.nan)
    else:
        a.reshape(-1).view(np.uint8).fill(0x5A)


def verify(out, ref, tolerance):
    """(ok, text).  `frac` is the share of elements that may lie outside rtol/atol (chaotic kernels
    only).
    """
    worst = 0.0
    for name, want in ref.items():
        got = out[name]
        if got.shape != want.shape:
            return False, f"{name}: shape {got.shape}, expected {want.shape}"
        if want.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                err = np.abs(got - want)
                bad = ~(err <= tolerance["atol"] + tolerance["rtol"] * np.abs(want))
        else:
            err = np.abs(got.astype(np.int64) - want.astype(np.int64))
            bad = err > tolerance["atol"]
        share = float(np.count_nonzero(bad)) / max(1, bad.size)
        if share > tolerance["frac"]:
            i = int(np.argmax(bad.reshape(-1)))
            return False, (
                f"{name}: {share:.2%} of {bad.size} elements outside tolerance; first at {i}: "
                f"{got.reshape(-1)[i]} instead of {want.reshape(-1)[i]}"
            )
        worst = max(worst, share)
    return True, f"share outside {worst:.1e}"


def tidy(text, limit=300):
    """One line without machine paths."""
    text = re.sub(r"(?:/[\w.+\-]+){2,}/", "…/", text.strip().replace("\n", " | "))
    return text if len(text) <= limit else text[:limit] + " …"
