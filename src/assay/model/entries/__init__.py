"""Takes the body of a ledger entry, of any version, as JSON. One frozen dataclass for each kind of entry.

Gives typed contents to readers, and bodies in the stored form to writers.
"""
