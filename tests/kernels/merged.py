"""Writes to two arrays of a block that compilers merge into one, to an address that they choose."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()
BLOCK = 21  # not of whole vectors


def make_merging(dtype):
    @sarek.kernel
    def merging(out, given, of_zeros, of_ones):
        """The tag of a thread, and a part that only the tag zero has."""
        tags, parts = sarek.shared.array(BLOCK, dtype), sarek.shared.array(BLOCK, dtype)
        t, i = sarek.thread_idx.x, sarek.global_idx.x
        if i < len(given):
            tag = given[i]
            part = of_zeros[i] if tag == 0 else 0
            further = of_ones[i] if tag == 1 else 0
            tags[t] = tag
            if tag == 0:
                parts[t] = part
            out[i, 0] = further
        sarek.barrier()
        if i < len(given):
            tag = tags[t]
            out[i, 1] = parts[t] if tag == 0 else 7
            out[i, 2] = tag

    return merging


def _launch(rng, dtype):
    given = rng.integers(0, 3, 2 * BLOCK - 1).astype(dtype)
    of_zeros, of_ones = rng.integers(1, 99, (2, len(given))).astype(dtype)
    columns = np.where(given == 1, of_ones, 0), np.where(given == 0, of_zeros, 7), given
    expected = np.stack(columns, axis=1).astype(dtype)
    out = poison(expected.shape, dtype)
    return Launch(2, BLOCK, (out, given, of_zeros, of_ones), (expected, None, None, None))


@corpus.add(make_merging(np.int32))
def writes_to_two_arrays_of_the_block_merged_int32(rng):
    return _launch(rng, np.int32)


@corpus.add(make_merging(np.uint8))
def writes_to_two_arrays_of_the_block_merged_uint8(rng):
    return _launch(rng, np.uint8)
