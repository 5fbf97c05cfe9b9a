"""Side-by-side measurement of this package and its peers; run it as `python -m benchmarks`."""
