"""Dataset files: from a path to the selected rows, or one message that names every wrong row.

Knows files, rows and selections; does not know pytest, options, or what a row is evaluated with.
"""
