"""Takes a fleet, nodes and phases. Cuts the nodes into shards, and runs these as local processes or a Slurm array.

Gives one complete run file; resumes it, or judges it again.
"""
