"""Takes nodes and orders; speaks to an API server of Kubernetes.

Gives cordons, the pods on a node, the results of work in its spare time, and what customers are shown.
"""
