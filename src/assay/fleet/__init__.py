"""Takes a fleet repository: a folder or a git revision. Reads and checks `inventory/`, `specs/` and `suites/`.

Gives a Fleet, or problems with their file and line.
"""
