"""Opens a node that somebody closed until its next passed verification: `kubectl cordon`, and our annotation on it.

A cordon of Kubernetes has no reason, so the annotation asks for the verification and holds the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from assay.adapters.kubernetes.kubernetes_client import KubernetesApi, KubernetesObject
from assay.adapters.kubernetes.kubernetes_cordon import describe_foreign_cordon, patch_with_retries
from assay.adapters.kubernetes.kubernetes_labels import VERIFY_UNDRAIN_ANNOTATION

TIME_PRECISION = timedelta(seconds=1)
"""The API server writes down the second in which a field was set."""


def undrain_node(cluster: KubernetesApi, node: KubernetesObject, began: datetime) -> str:
    """Open a node, which was read as `node`, if both marks were set before `began`. Return their reason, or "".

    If somebody writes to the node meanwhile, it is judged again as it is then.
    """
    reasons: list[str] = []

    def build(seen: KubernetesObject) -> KubernetesObject | None:
        due = _is_due(seen, began)
        reasons.append(describe_foreign_cordon(seen) if due else "")
        return _build_undrain_patch(seen) if due else None

    patch_with_retries(cluster, node, build)
    return reasons[-1]


def _is_due(node: KubernetesObject, began: datetime) -> bool:
    """Say whether somebody else's cordon asks for a verification, and was there in this form before it `began`.

    A mark whose time the API server does not tell may be newer.
    """
    if VERIFY_UNDRAIN_ANNOTATION not in (node["metadata"].get("annotations") or {}):
        return False
    times = [list(_list_write_times(node, path)) for path in _MARK_PATHS]
    known = all(times) and bool(describe_foreign_cordon(node))
    return known and all(at + TIME_PRECISION <= began for found in times for at in found)


_MARK_PATHS = (("f:spec", "f:unschedulable"), ("f:metadata", "f:annotations", f"f:{VERIFY_UNDRAIN_ANNOTATION}"))


def _list_write_times(node: KubernetesObject, path: tuple[str, ...]) -> Iterator[datetime]:
    """Yield when each writer of a field wrote last, as the API server records it."""
    for entry in node["metadata"].get("managedFields") or []:
        fields = entry.get("fieldsV1") or {}
        for key in path:
            fields = fields.get(key) if isinstance(fields, dict) else None
        if fields is not None and entry.get("time"):
            yield datetime.fromisoformat(entry["time"])


def _build_undrain_patch(node: KubernetesObject) -> KubernetesObject:
    metadata = {
        "resourceVersion": node["metadata"]["resourceVersion"],
        "annotations": {VERIFY_UNDRAIN_ANNOTATION: None},
    }
    return {"metadata": metadata, "spec": {"unschedulable": None}}
