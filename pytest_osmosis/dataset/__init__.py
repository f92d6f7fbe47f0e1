"""Dataset files: a path to the selected rows, or one message that names every wrong row.

    load_dataset   checks the file and its rows in one streaming pass
    Dataset        the selected rows; sixteen bytes a row are kept, a row is decoded when asked for
    Row            one row
    DatasetError   why it cannot be used; EmptyDataset when nothing is selected

Knows files, rows and selections; does not know pytest, options, or what a row is evaluated with.
"""

from __future__ import annotations

from .errors import DatasetError, EmptyDataset
from .loading import Dataset, load_dataset
from .rows import Row

__all__ = ["Dataset", "DatasetError", "EmptyDataset", "Row", "load_dataset"]
