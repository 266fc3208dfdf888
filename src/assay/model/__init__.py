"""The nouns: plain data, no I/O. Imports nothing of assay."""
