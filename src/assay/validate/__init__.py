"""Takes checks and recordings. Proves that each check passes on the good one and fails on each bad one.

Gives the checks that are not proved.
"""
