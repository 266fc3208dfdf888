"""Takes ledger entries, evidence and runs. Does what several verbs print. Gives text lines, tables, progress bars and JSON-ready data."""
