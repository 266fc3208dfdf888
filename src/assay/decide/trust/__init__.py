"""Takes the trust section of the policy and people's words. Pure.

Gives what automation may do, what waits, and what it would have done.
"""
