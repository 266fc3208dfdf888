"""Takes the history of measurements with their limits, and the ledger's failures; judges limits by both.

Gives what each limit showed, what another one would have shown, and limits that are worth changing.
"""
