"""What kubectl asks first: which groups and resources there are."""

from __future__ import annotations

from typing import Any

from tests.support.kubernetes.kube_models import KINDS, judged, kind_of

VERSION = "v1.32.0-fake"
"""What the fake says it is. Before 1.22 it speaks `policy/v1beta1` only."""
CLUSTER_WIDE = {"nodes", "priorityclasses"}
VERBS = ["create", "delete", "get", "list", "patch"]
MORE: dict[str, list[dict[str, Any]]] = {
    "": [
        {"name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1", "verbs": ["create"]},
        {"name": "pods/log", "kind": "Pod", "verbs": ["get"]},
        {"name": "nodes/status", "kind": "Node", "verbs": ["patch"]},
    ]
}
SHORT = {"nodes": ["no"], "pods": ["po"], "configmaps": ["cm"], "poddisruptionbudgets": ["pdb"]}


def policy_version() -> str:
    """Return the version of the group `policy` that a server of VERSION serves."""
    return "v1" if int(VERSION.split(".")[1]) >= 22 else "v1beta1"


def discovered(path: str, groups: dict[str, str]) -> dict[str, Any] | None:
    """Return the answer to a question of discovery, None for any other."""
    parts = path.strip("/").split("/")
    if parts == ["version"]:
        major, minor = VERSION.lstrip("v").split(".")[:2]
        return {"major": major, "minor": minor, "gitVersion": VERSION}
    if parts == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if parts == ["apis"]:
        return judged("V1APIGroupList", {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups(groups)})
    if parts == ["api", "v1"]:
        return _resources("", groups)
    return _resources(parts[1], groups) if parts[0] == "apis" and len(parts) == 3 else None


def _groups(groups: dict[str, str]) -> list[dict[str, Any]]:
    versions = {name: {"groupVersion": f"{name}/v1", "version": "v1"} for name in sorted(set(groups.values()))}
    return [{"name": name, "versions": [one], "preferredVersion": one} for name, one in versions.items()]


def _resources(group: str, groups: dict[str, str]) -> dict[str, Any]:
    found = [
        {
            "name": name,
            "singularName": kind_of(name).lower(),
            "namespaced": name not in CLUSTER_WIDE,
            "kind": kind_of(name),
            "verbs": VERBS,
            **({"shortNames": SHORT[name]} if name in SHORT else {}),
        }
        for name in KINDS
        if groups.get(name, "") == group
    ]
    found += [{"singularName": "", "namespaced": True, **one} for one in MORE.get(group, [])]
    version = f"{group}/v1" if group else "v1"
    told = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": found}
    return judged("V1APIResourceList", told)
