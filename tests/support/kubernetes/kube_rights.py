"""RBAC, from the very manifest that a site would apply: what our service account may do, and no more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.places import ROOT

MANIFEST = ROOT / "deploy" / "kubernetes.yaml"


@dataclass
class Rights:
    """What one user may do: `(verb, group, resource, namespace)`, where "" is every namespace."""

    user: str
    granted: set[tuple[str, str, str, str]] = field(default_factory=set)
    all: bool = False

    def may(self, verb: str, group: str, resource: str, namespace: str) -> bool:
        return self.all or bool({(verb, group, resource, ""), (verb, group, resource, namespace)} & self.granted)


@cache
def documents_of(manifest: Path) -> list[dict[str, Any]]:
    """Return the objects of a manifest."""
    return list(yaml.safe_load_all(manifest.read_text()))


def rights_of(manifest: Path) -> Rights:
    """Return what a manifest grants to its ServiceAccount `assay`, by the bindings in it."""
    documents = documents_of(manifest)
    found = Rights("system:serviceaccount:assay:assay")
    for binding in documents:
        if binding["kind"] in ("ClusterRoleBinding", "RoleBinding"):
            assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "assay", "namespace": "assay"}]
            role = next(one for one in documents if _is_role(one, binding["roleRef"]))
            where = binding["metadata"].get("namespace", "") if binding["kind"] == "RoleBinding" else ""
            found.granted |= set(_granted(role["rules"], where))
    return found


def _is_role(document: dict[str, Any], ref: dict[str, str]) -> bool:
    return bool(document["kind"] == ref["kind"] and document["metadata"]["name"] == ref["name"])


def _granted(rules: list[dict[str, Any]], where: str) -> Iterable[tuple[str, str, str, str]]:
    for rule in rules:
        for verb in rule["verbs"]:
            for group in rule["apiGroups"]:
                yield from ((verb, group, resource, where) for resource in rule["resources"])
