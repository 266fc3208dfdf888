"""Takes burn-in specs, lines that a node wrote under load, and digests that GPUs computed. Pure: no I/O, no clock.

Gives plans, windows, verdicts and drift; the GPUs that compute wrongly, and what cannot be told.
"""
