"""The names that are ours in a cluster. What carries none of them is somebody else's, and stays as it is."""

from __future__ import annotations

DOMAIN = "assay.dev"
MANAGER = "assay"
"""Our field manager: who the API server says has written a field."""

CORDON = f"{DOMAIN}/cordon"
"""Of a node: the key of our taint, and the annotation that holds the reason."""

SINCE = f"{DOMAIN}/since"
"""Annotation of a node: since when our cordon stands."""

MADE = f"{DOMAIN}/unschedulable"
"""Annotation of a node: "true" where it was us who made it unschedulable."""

STATE = f"{DOMAIN}/state"
"""Label of a node: `cordoned` or `draining` while a cordon of ours stands."""

CONDITION = "AssayCordoned"
"""Type of our condition of a node."""

SPARE = f"{DOMAIN}/spare"
"""Label of a pod of ours that runs in a node's spare time, and of what belongs to it."""

FOR_NODE = f"{DOMAIN}/node"
"""Annotation of such a pod: the node that it is meant for."""

WATCHED = f"{DOMAIN}/watched"
"""Annotation of such a pod: when somebody last watched over it."""
