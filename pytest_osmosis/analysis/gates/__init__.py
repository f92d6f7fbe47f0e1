"""From the text of a gate to its result; pure.

A further metric for gates is one entry in the table `METRICS` of `..metrics`: grammar, results and
early stopping read it.
"""
