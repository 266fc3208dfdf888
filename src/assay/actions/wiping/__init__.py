"""Takes the local drives of a node and its spec's `wipe`. Marks them, lets them erase themselves, and reads them again.

Gives what is proven of each drive: that it was erased, or why not.
"""
