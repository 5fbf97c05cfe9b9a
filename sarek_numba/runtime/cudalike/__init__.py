"""What runtimes of CUDA's form share: CUDA itself and HIP, each a table and a thin driver.

A backend has an `api.Api`, the calls that are made, and an `api.Framework`, what is said of them.
All else follows: contexts and errors (`access`), memory, streams and marks (`queues`).
"""
