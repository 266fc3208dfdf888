"""Takes a fleet, nodes, phases and options. Cuts the nodes into shards, and runs these as processes or a Slurm array.

Gives one complete run file; resumes it, or judges it again.
"""
