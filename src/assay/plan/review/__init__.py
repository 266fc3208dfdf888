"""Takes what a plan says of the files alone. Gives the digest to which a merge is held, and what differs between two.

Pure. The ledger, the time of day, estimates and costs have no part in it: whoever plans the same merge has one digest.
"""
