"""Takes the JSON body of a ledger entry, of any version; names its fields, one frozen dataclass an entry kind.

Gives typed contents to readers, and bodies in the stored form to writers.
"""
