"""Takes nodes and orders; speaks to Slurm by its commands.

Gives cordons, the jobs on a node, the results of work in its spare time, and what customers are shown.
"""
