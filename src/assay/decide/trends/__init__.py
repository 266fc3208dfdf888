"""Takes measurements day by day, and who held which part. Compares each part with its peers.

Gives what gets worse, when it reaches its limit, warnings, and the record of each rule.
"""
