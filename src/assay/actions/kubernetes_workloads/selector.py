"""Label selectors, as Kubernetes means them."""

from __future__ import annotations

from collections.abc import Mapping

from assay.actions.kubernetes_workloads.cluster import Object


def selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Say whether a selector selects these labels: an empty one selects all, none at all selects nothing."""
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    exact = all(labels.get(key) == value for key, value in wanted.items())
    return exact and all(_holds(one, labels) for one in selector.get("matchExpressions") or [])


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
