"""The names that assay writes in a cluster, and the form of its times. Anything without them is somebody else's."""

from __future__ import annotations

from datetime import UTC, datetime

DOMAIN = "assay.dev"
FIELD_MANAGER = "assay"
"""Our field manager: the API server records it as the writer of a field."""
CORDON_KEY = f"{DOMAIN}/cordon"
"""Of a node: the key of our taint, and of the annotation that holds the reason."""
SINCE_ANNOTATION = f"{DOMAIN}/since"
"""Annotation of a node: when our cordon was set."""
UNSCHEDULABLE_ANNOTATION = f"{DOMAIN}/unschedulable"
"""Annotation of a node: "true" if it was us who made it unschedulable."""
VERIFY_UNDRAIN_ANNOTATION = f"{DOMAIN}/verify-undrain"
"""Annotation that people set on a node that they cordoned: why, and that its next passed verification opens it."""
STATE_LABEL = f"{DOMAIN}/state"
"""Label of a node: `cordoned` or `draining` while it has our cordon."""
CONDITION_TYPE = "AssayCordoned"
"""Type of our condition of a node."""
IN_SERVICE_CONDITION = f"{DOMAIN}/InService"
"""Type of the condition that tells a node's customers whether it serves, and when it is expected back."""
REPORTER = f"{DOMAIN}/assay"
"""Who reports our Events."""
SPARE_LABEL = f"{DOMAIN}/spare"
"""Label of our pod in a node's spare time, and of what belongs to that pod."""
NODE_ANNOTATION = f"{DOMAIN}/node"
"""Annotation of that pod: its node."""
WATCHED_ANNOTATION = f"{DOMAIN}/watched"
"""Annotation of that pod: when a controller last watched it."""


def format_kubernetes_time(moment: datetime) -> str:
    """Return a time as RFC 3339, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_kubernetes_now() -> str:
    """Return the current time as RFC 3339."""
    return format_kubernetes_time(datetime.now(UTC))


def measure_age_s(text: str) -> float:
    """Return how many seconds ago a time was."""
    return (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()
