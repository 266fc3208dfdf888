"""The adapter `kubernetes`: nodes on which Kubernetes places pods, through its official client.

Where Slurm places the jobs: its own programs are asked and told, and nothing of it is linked.
"""

from __future__ import annotations
