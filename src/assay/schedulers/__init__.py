"""Takes a node's settings and orders to cordon, drain or release it; speaks to Slurm, Kubernetes or no scheduler.

Gives the customers' jobs on a node, the reason of its cordon, and the results of work in its spare time.
"""
