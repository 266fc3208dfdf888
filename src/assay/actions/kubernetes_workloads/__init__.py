"""The adapter `kubernetes`: nodes on which Kubernetes places pods, through its official client."""
