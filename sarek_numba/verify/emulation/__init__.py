"""CPython running a kernel thread by thread: the reference that shares nothing with the compiler.

`numbers` gives the functions a kernel calls, `arrays` the arrays it indexes, `machine` the threads.
"""
