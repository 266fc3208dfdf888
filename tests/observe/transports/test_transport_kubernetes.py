"""`kubectl exec` without a cluster: a fake API server lists the pods, and a stand-in for kubectl runs its words here.

What is real: the request for the pods, the words that kubectl gets, and the probe that comes through.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.model.evidence import EvidenceDocument
from assay.model.node import Node
from assay.model.specs.node_settings import make_node_settings
from assay.observe.transports.transport import TransportRegistry, run_remote_probe
from tests.support.kubernetes.kube_make import pod
from tests.support.kubernetes.kube_rights import Rights
from tests.support.kubernetes.kube_server import KubeFake

STAND_IN = f"""#!{sys.executable}
import json, os, sys
words = sys.argv[1:]
with open(os.path.dirname(sys.argv[0]) + "/executed", "a") as file:
    file.write(json.dumps(words) + "\\n")
command = words[words.index("--") + 1:]
os.execvp(command[0], command)
"""
LABELS = {"app.kubernetes.io/name": "assay-agent"}


@pytest.fixture
def kube(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubeFake]:
    (tmp_path / "kubectl").write_text(STAND_IN)
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for name in ("HTTPS_PROXY", "https_proxy", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    fake = KubeFake(tmp_path, {"admin": Rights("admin", all=True)})
    for namespace, labels in (("assay", LABELS), ("gpu", {"app": "x"})):
        for name in ("n0001", "gpu-b"):
            fake.put("pods", namespace, labelled(pod(f"agent-{name}", on=name, kind="DaemonSet"), labels))
    fake.put("pods", "assay", labelled(pod("other-n0777", on="n0777"), {"app": "other"}))
    waiting = labelled(pod("agent-n0777", on="n0777"), LABELS)
    waiting["status"] = {"phase": "Succeeded"}
    fake.put("pods", "assay", waiting)
    fake.start()
    monkeypatch.setenv("KUBECONFIG", str(fake.kubeconfig("admin")))
    yield fake
    fake.stop()


def labelled(thing: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    return {**thing, "metadata": {**thing["metadata"], "labels": labels}}


def executed(kube: KubeFake) -> list[list[str]]:
    return [json.loads(line) for line in (kube.folder / "executed").read_text().splitlines()]


ANSWER = '{"probe": {"host": {"value": "here"}}}'
QUICK = {"probe_command": ["sh", "-c", f"echo '{ANSWER}'", "-"]}


def node(name: str = "n0001", *, quick: bool = True, **told: Any) -> Node:
    variables = {"transport": "kubernetes", "kubernetes_exec": told, **(QUICK if quick else {})}
    return Node(name, "p", "s", "r01", 1, "x", "spec", "managed", settings=make_node_settings(variables))


def test_the_document_tells_which_machine_it_is_of(kube: KubeFake, tmp_path: Path) -> None:
    (tmp_path / "sys/class/dmi/id").mkdir(parents=True)
    (tmp_path / "sys/class/dmi/id/product_serial").write_text("A520112X4400002\n")
    probe = ["env", f"PYTHONPATH={os.pathsep.join(sys.path)}", sys.executable]
    installed = make_node_settings(
        {"transport": "kubernetes", "probe_command": [*probe, *("-m", "assay.node.probe", "--root", str(tmp_path))]}
    )
    tree = run_remote_probe(replace(node(), settings=installed), [], 60)
    evidence = EvidenceDocument("n0001", datetime.now(UTC), tree)
    assert evidence.find_stranger("A520112X4400002") == ""
    assert "A520112X4400002" in evidence.find_stranger("A520112X4400001")


def test_the_probe_goes_through_the_pod_on_the_node(kube: KubeFake) -> None:
    host = run_remote_probe(node(quick=False), [], 60)["probe"]["host"]
    assert host["boot_id"] == {"value": Path("/proc/sys/kernel/random/boot_id").read_text().strip()}
    (words,) = executed(kube)
    assert words[:5] == ["--namespace=assay", "exec", "--stdin", "agent-n0001", "--"]
    assert words[5:9] == ["python3", "-I", "-S", "-"]


def test_what_the_inventory_tells_is_used(kube: KubeFake, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    settings["contexts"][0]["name"], settings["current-context"] = "site-b", ""
    elsewhere = kube.folder / "elsewhere"
    elsewhere.write_text(yaml.safe_dump(settings))
    monkeypatch.setenv("KUBECONFIG", str(elsewhere))
    told = {"context": "site-b", "namespace": "gpu", "pods": "app=x", "container": "probe", "node": "gpu-b"}
    assert run_remote_probe(node(**told), [], 60)["probe"]["host"] == {"value": "here"}
    (words,) = executed(kube)
    assert words[:6] == [
        "--context=site-b",
        "--namespace=gpu",
        "exec",
        "--stdin",
        "agent-gpu-b",
        "--container=probe",
    ]


def test_a_pass_asks_once_for_all_its_pods(kube: KubeFake) -> None:
    transports = TransportRegistry()
    for _ in range(3):
        assert "host" in run_remote_probe(node(), [], 60, transports)["probe"]
    assert [one for one in kube.asked if "pods" in one] == ["list pods"]
    assert len(executed(kube)) == 3


def test_a_node_without_a_pod_is_said_plainly(kube: KubeFake) -> None:
    reason = "no pod app.kubernetes.io/name=assay-agent runs on n0777 in the namespace assay"
    assert run_remote_probe(node("n0777"), [], 10) == {"probe": {"failed": reason}}


def test_a_cluster_that_does_not_list_its_pods_is_the_reason(kube: KubeFake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kube.kubeconfig("stranger")))
    answer = run_remote_probe(node(), [], 10)["probe"]
    assert answer == {"failed": "the API server does not know us (401)"}
    assert not (kube.folder / "executed").exists()


@pytest.mark.parametrize("told", [{}, {"namespace": "gpu", "pods": "app=x", "container": "probe", "node": "gpu-b"}])
def test_the_real_kubectl_takes_the_words(told: dict[str, str], kube: KubeFake, tmp_path: Path) -> None:
    """It comes to the cluster, which does not answer it: exec needs a kubelet."""
    real = shutil.which("kubectl", path="/usr/local/bin:/usr/bin:/bin")
    if not real:
        pytest.skip("kubectl is not installed")
    assert run_remote_probe(node(**told), [], 60)["probe"]["host"] == {"value": "here"}
    (words,) = executed(kube)
    context = {"name": "gone", "context": {"cluster": "gone", "user": "gone"}}
    settings = {"apiVersion": "v1", "kind": "Config", "contexts": [context], "users": [{"name": "gone", "user": {}}]}
    settings["clusters"] = [{"name": "gone", "cluster": {"server": "http://127.0.0.1:1"}}]
    (tmp_path / "gone").write_text(yaml.safe_dump(settings))
    command = [real, f"--kubeconfig={tmp_path / 'gone'}", "--context=gone"]
    assert "refused" in subprocess.run([*command, *words], capture_output=True, text=True, check=False).stderr
    wrong = subprocess.run([*command, "--no-such", *words], capture_output=True, text=True, check=False)
    assert "unknown flag: --no-such" in wrong.stderr
