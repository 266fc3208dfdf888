"""`kubectl exec` as far as it can be seen without a cluster: a stand-in takes kubectl's words and runs them here.

What is real: the words that kubectl gets, its JSON, and the probe that comes through. What is not: the API server.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.model.node import Node
from assay.model.specs.node_settings import make_node_settings
from assay.observe.transports.transport_choice import TransportRegistry, run_remote_probe

STAND_IN = f"""#!{sys.executable}
import json, os, sys
words = sys.argv[1:]
folder = os.path.dirname(sys.argv[0])
with open(folder + "/asked", "a") as file:
    file.write(json.dumps(words) + "\\n")
if "get" in words:
    print(open(folder + "/pods.json").read())
else:
    command = words[words.index("--") + 1:]
    os.execvp(command[0], command)
"""


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kubectl").write_text(STAND_IN)
    (tmp_path / "kubectl").chmod(0o755)
    items = [{"metadata": {"name": f"agent-{name}"}, "spec": {"nodeName": name}} for name in ("n0001", "gpu-b")]
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "items": items}))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def asked(kubectl: Path) -> list[list[str]]:
    return [json.loads(line) for line in (kubectl / "asked").read_text().splitlines()]


ANSWER = '{"probe": {"host": {"value": "here"}}}'
QUICK = {"probe_command": ["sh", "-c", f"echo '{ANSWER}'", "-"]}


def node(name: str = "n0001", *, quick: bool = True, **told: Any) -> Node:
    variables = {"transport": "kubernetes", "kubernetes_exec": told, **(QUICK if quick else {})}
    return Node(name, "p", "s", "r01", 1, "x", "spec", "managed", settings=make_node_settings(variables))


def test_the_probe_goes_through_the_pod_on_the_node(kubectl: Path) -> None:
    host = run_remote_probe(node(quick=False), [], 60)["probe"]["host"]
    assert host["boot_id"] == {"value": Path("/proc/sys/kernel/random/boot_id").read_text().strip()}
    listed, executed = asked(kubectl)
    assert listed[:4] == ["--namespace=assay", "get", "pods", "--selector=app.kubernetes.io/name=assay-agent"]
    assert executed[:5] == ["--namespace=assay", "exec", "--stdin", "agent-n0001", "--"]
    assert executed[5:9] == ["python3", "-I", "-S", "-"]


def test_what_the_inventory_tells_is_used(kubectl: Path) -> None:
    told = {"context": "site-b", "namespace": "gpu", "pods": "app=x", "container": "probe", "node": "gpu-b"}
    assert run_remote_probe(node(**told), [], 60)["probe"]["host"] == {"value": "here"}
    listed, executed = asked(kubectl)
    assert listed[:5] == ["--context=site-b", "--namespace=gpu", "get", "pods", "--selector=app=x"]
    assert executed[:6] == [
        "--context=site-b",
        "--namespace=gpu",
        "exec",
        "--stdin",
        "agent-gpu-b",
        "--container=probe",
    ]


def test_a_pass_asks_once_for_all_its_pods(kubectl: Path) -> None:
    transports = TransportRegistry()
    for _ in range(3):
        assert "host" in run_remote_probe(node(), [], 60, transports)["probe"]
    assert ["get" in words for words in asked(kubectl)] == [True, False, False, False]


def test_a_node_without_a_pod_is_said_plainly(kubectl: Path) -> None:
    reason = "no pod app.kubernetes.io/name=assay-agent runs on n0777 in the namespace assay"
    assert run_remote_probe(node("n0777"), [], 10) == {"probe": {"failed": reason}}


@pytest.mark.parametrize(
    ("said", "shown"),
    [("echo 'E1121 noise\nthe server is gone' >&2; exit 1", "the server is gone"), ("echo '[]'", "no list of pods")],
)
def test_a_cluster_that_does_not_list_its_pods_is_said_in_kubectl_s_words(kubectl: Path, said: str, shown: str) -> None:
    (kubectl / "kubectl").write_text(f"#!/bin/sh\n{said}\n")
    answer = run_remote_probe(node(), [], 10)["probe"]
    assert answer == {"failed": f"kubectl does not list the pods app.kubernetes.io/name=assay-agent: {shown}"}
