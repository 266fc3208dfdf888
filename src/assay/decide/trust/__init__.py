"""Takes policy, decisions and people's words. Gives what automation may do, what waits, and what it would have done.

Pure: no I/O, no clock.
"""
