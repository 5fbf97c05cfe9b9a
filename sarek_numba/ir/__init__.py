"""Sarek IR: data, text, verification and analyses. See `ir.nodes` for the grammar."""
