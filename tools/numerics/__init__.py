"""How far the functions that no device rounds exactly are from the mathematical value.

`functions` lists them as users write them, with their reference in MPFR; `sample` has the
arguments, `reference` the exact results, `measure` runs kernels, `record` keeps
`docs/numerics.json` and the tables of `docs/numerics.md`.
"""
