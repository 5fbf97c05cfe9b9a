"""Products of matrices: which kernels are one, and whether a rewrite may stand in for them.

`recognise` reads the IR of a kernel and gives a `Product`, or a `NotAProduct` that says why not and
where; `bind` puts a launch's numbers into one; `choose` decides. See `docs/matrix.md`.
"""
