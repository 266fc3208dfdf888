"""assay: run a GPU fleet by evidence."""

__version__ = "0.1.0"
