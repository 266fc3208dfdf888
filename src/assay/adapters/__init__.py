"""Takes what customers are told of a node; shows it where they look in Kubernetes and in Slurm.

Gives whether it is there, by reading the scheduler again.
"""
