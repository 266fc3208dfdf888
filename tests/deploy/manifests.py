"""The manifests that are shipped, read as objects."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from tests.support.places import ROOT

DEPLOY = ROOT / "deploy"
PLAIN = tuple(DEPLOY / name for name in ("kubernetes.yaml", "assay-agent.yaml", "assay-controller.yaml"))
WHOLE = DEPLOY / "kustomize" / "assay.yaml"
HELM_PYTHON = ROOT / ".venv-deploy" / "bin" / "python"
needs_helm = pytest.mark.skipif(not HELM_PYTHON.exists(), reason="no Helm here: `make manifests` installs it")

Name = tuple[str, str, str]


def read_objects(text: str) -> dict[Name, Any]:
    """Return the objects of a manifest by kind, namespace and name. One that comes twice is an error."""
    found: dict[Name, Any] = {}
    for one in filter(None, yaml.safe_load_all(text)):  # Helm leaves empty documents where a part is off
        name = (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"])
        assert name not in found, name
        found[name] = one
    return found


def list_pods(objects: Mapping[Name, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the spec of each pod that the objects describe."""
    for (kind, _, name), one in objects.items():
        if kind in ("DaemonSet", "StatefulSet"):
            yield name, one["spec"]["template"]["spec"]
        elif kind == "PodTemplate":
            yield name, one["template"]["spec"]


def list_containers(pod: Mapping[str, Any]) -> list[Any]:
    """Return all containers of a pod, those that run first too."""
    return [*pod.get("initContainers", ()), *pod["containers"]]


def run_helm(program: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a program in the environment that has Helm as a library."""
    command = [str(HELM_PYTHON), "-c", program, *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
