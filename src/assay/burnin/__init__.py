"""Takes burn-in specs and the lines that a node wrote under load. Gives plans, windows, verdicts and drift.

Pure: no I/O, no clock.
"""
