"""Machine code that CPython calls for a launch like an earlier one; every backend may have it.

Read in this order: `launch_ir` (what it does), `checks_ir`, `tables` (plans as what it follows),
`driver` (LLVM and CPython).
"""
