"""The program that fetches a node's secrets: what it writes for each join, and what it says of a wrong clock."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assay.node.agent import node_join
from assay.node.agent.node_join import list_files, write_secret

KUBERNETES = {
    "api_server": "https://api.example:6443",
    "ca": "PEM",
    "labels": {"pool": "h100-a", "tier": "gpu"},
    "taints": [{"key": "assay/unproven", "effect": "NoSchedule"}],
}


def test_a_kubelet_gets_its_bootstrap_kubeconfig_its_labels_and_its_taint() -> None:
    files = dict(list_files("kubernetes", KUBERNETES, "abcdef.0123456789abcdef"))
    config = json.loads(files["etc/kubernetes/bootstrap-kubelet.conf"])
    (cluster,) = config["clusters"]
    assert cluster["cluster"]["server"] == "https://api.example:6443"
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == b"PEM"
    assert config["users"][0]["user"] == {"token": "abcdef.0123456789abcdef"}
    words = "--node-labels=pool=h100-a,tier=gpu --register-with-taints=assay/unproven=:NoSchedule"
    assert files["etc/default/kubelet"] == f'KUBELET_EXTRA_ARGS="{words}"\n'


def test_without_labels_and_taints_there_are_no_words() -> None:
    files = dict(list_files("kubernetes", {**KUBERNETES, "labels": {}, "taints": []}, "t"))
    assert files["etc/default/kubelet"] == 'KUBELET_EXTRA_ARGS=""\n'


def test_a_secret_replaces_the_one_before_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "etc" / "token"
    path.parent.mkdir()
    path.write_text("an older one")
    path.chmod(0o644)
    write_secret(path, "new\n")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new\n", 0o600)
    assert [one.name for one in path.parent.iterdir()] == ["token"]


@pytest.mark.parametrize(("year", "says"), [(1970, "this node's clock says 1970"), (2027, "")])
def test_a_clock_of_1970_is_named_where_a_certificate_is_not_trusted(monkeypatch, year: int, says: str) -> None:
    monkeypatch.setattr(node_join.time, "gmtime", lambda: time.struct_time((year, 1, 1, 0, 0, 0, 0, 1, 0)))
    assert says in node_join.explain_clock("its certificate is not trusted: certificate is not yet valid")
    assert node_join.explain_clock("no answer within 15 s") == ""


@pytest.mark.parametrize("plan", ["", "[]", "{}", '{"secure_url": "ftp://x"}', '{"secure_url": "http://10.0.0.1"}'])
def test_a_plan_that_is_none_is_said_so(tmp_path: Path, plan: str) -> None:
    (tmp_path / "etc/assay").mkdir(parents=True)
    (tmp_path / "etc/assay/joins.json").write_text(plan)
    command = [sys.executable, "-m", "assay.node.agent.node_join", "--root", str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert done.stderr.startswith("assay join: cannot ask: ")


def test_the_packed_program_runs_alone(tmp_path: Path) -> None:
    packed = tmp_path / "assay-join.pyz"
    subprocess.run(
        [sys.executable, "-m", "assay.node.agent.pack", "--join", str(packed)], check=True, capture_output=True
    )
    done = subprocess.run(
        [sys.executable, "-I", str(packed), "--root", str(tmp_path)], check=False, capture_output=True, text=True
    )
    assert (done.returncode, "joins.json" in done.stderr) == (2, True), done.stderr
