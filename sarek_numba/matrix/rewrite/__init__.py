"""Products of matrices as kernels on cooperative matrices: IR in terms of `ir.nodes`, no device.

`form` says what a kernel is made for, `numbers` what it is told at launch, `scheme` how numbers are
put together from what matrix units multiply. `tiles` brings a block's part of the operands to
shared memory, `multiply` adds up, `epilogue` stores; `build` puts them together.
"""
