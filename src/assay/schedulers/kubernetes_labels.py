"""The names that are ours in a cluster. What carries none of them is somebody else's, and stays as it is.

Times as Kubernetes writes them.
"""

from __future__ import annotations

from datetime import UTC, datetime

DOMAIN = "assay.dev"
FIELD_MANAGER = "assay"
"""Our field manager: who the API server says has written a field."""

CORDON_KEY = f"{DOMAIN}/cordon"
"""Of a node: the key of our taint, and the annotation that holds the reason."""

SINCE_ANNOTATION = f"{DOMAIN}/since"
"""Annotation of a node: since when our cordon stands."""

UNSCHEDULABLE_ANNOTATION = f"{DOMAIN}/unschedulable"
"""Annotation of a node: "true" where it was us who made it unschedulable."""

STATE_LABEL = f"{DOMAIN}/state"
"""Label of a node: `cordoned` or `draining` while a cordon of ours stands."""

CONDITION_TYPE = "AssayCordoned"
"""Type of our condition of a node."""

SPARE_LABEL = f"{DOMAIN}/spare"
"""Label of a pod of ours that runs in a node's spare time, and of what belongs to it."""

NODE_ANNOTATION = f"{DOMAIN}/node"
"""Annotation of such a pod: the node that it is meant for."""

WATCHED_ANNOTATION = f"{DOMAIN}/watched"
"""Annotation of such a pod: when somebody last watched over it."""


def format_kubernetes_time(moment: datetime) -> str:
    """Return a time in RFC 3339, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_kubernetes_now() -> str:
    """Return this moment as Kubernetes would write it."""
    return format_kubernetes_time(datetime.now(UTC))


def measure_age_s(text: str) -> float:
    """Return how many seconds ago a written time was."""
    return (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()
