"""`sarek demo`: real kernels on every device present, each checked against the oracle."""
