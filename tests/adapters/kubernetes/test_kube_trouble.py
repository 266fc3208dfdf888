"""What goes wrong with an API server is said in words: who we are, what RBAC lacks, that nobody answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.scheduler import load_scheduler_adapter
from assay.model.errors import AssayError
from assay.model.specs.node_settings import make_node_settings
from assay.model.text.safe_text import redact
from tests.support.kubernetes.kube_make import pod
from tests.support.kubernetes.kube_rights import MANIFEST, documents_of, rights_of
from tests.support.kubernetes.kube_server import KubeFake


def reached_by(path: Path, **more: str) -> KubernetesScheduler:
    return KubernetesScheduler(make_node_settings({"kubernetes": {"kubeconfig": str(path), **more}}), patience_s=0.0)


def test_wrong_credentials(kube: KubeFake):
    with pytest.raises(AssayError, match="does not know us") as told:
        reached_by(kube.kubeconfig("stale-token")).read_cordon_reason("n1")
    assert "expired" in told.value.fix


def test_new_credentials_in_the_same_file_are_used_at_once(kube: KubeFake):
    path = kube.kubeconfig("stale-token")
    with pytest.raises(AssayError):
        reached_by(path).read_cordon_reason("n1")
    path.write_text(path.read_text().replace("stale-token", "assay-token"))
    assert reached_by(path).read_cordon_reason("n1") == ""


@pytest.mark.parametrize(
    ("right", "said"),
    [
        (("patch", "", "nodes", ""), "`patch` `nodes`"),
        (("patch", "", "nodes/status", ""), "`patch` `nodes/status`"),
        (("list", "", "pods", ""), "`list` `pods`"),
        (("create", "", "pods/eviction", ""), "`create` `pods/eviction`"),
        (("get", "", "nodes", ""), "`get` `nodes`"),
    ],
)
def test_a_right_that_is_lacking_is_named(kube: KubeFake, adapter: KubernetesScheduler, right: Any, said: str):
    kube.put("pods", "ml", pod("llama-0", "n1"))
    kube.users["assay-token"].granted.discard(right)
    with pytest.raises(AssayError) as told:
        adapter.drain("n1", "fw", now=True)
    assert f"RBAC does not let us {said}" in told.value.what
    assert "system:serviceaccount:assay:assay" in told.value.what
    assert "deploy/kubernetes.yaml" in told.value.fix


def test_budgets_that_may_not_be_read_hide_no_job_and_stop_no_eviction(kube: KubeFake, adapter: KubernetesScheduler):
    kube.put("pods", "ml", pod("llama-0", "n1"))
    kube.users["assay-token"].granted.discard(("list", "policy", "poddisruptionbudgets", ""))
    (job,) = adapter.list_jobs("n1")
    (same,) = adapter.read_statuses(["n1"])["n1"].jobs
    assert job == same
    assert job.id == "ml/llama-0"
    assert "whether a PodDisruptionBudget keeps it is unknown: RBAC does not let us `list`" in job.blocked_by
    adapter.drain("n1", "fw", now=True)
    assert adapter.list_jobs("n1") == ()


def test_the_manifest_grants_no_right_that_nothing_uses():
    granted = rights_of(MANIFEST).granted
    everything = {
        *(("get", "", "nodes", ""), ("list", "", "nodes", ""), ("patch", "", "nodes", "")),
        *(("patch", "", "nodes/status", ""), ("list", "", "pods", ""), ("create", "", "pods/eviction", "")),
        ("list", "policy", "poddisruptionbudgets", ""),
        *((verb, "events.k8s.io", "events", "kube-system") for verb in ("create", "get")),
        *((verb, "", "pods", "assay") for verb in ("create", "delete", "get", "patch")),
        *(
            ("get", "", "pods/log", "assay"),
            ("create", "", "configmaps", "assay"),
            ("get", "", "podtemplates", "assay"),
        ),
    }
    assert granted == everything


def test_an_api_server_that_is_away(kube: KubeFake, adapter: KubernetesScheduler):
    kube.stop()
    with pytest.raises(AssayError, match=r"the API server does not answer: .*refused") as told:
        adapter.list_jobs("n1")
    assert told.value.where == kube.address
    kube.start()


def test_an_api_server_that_is_lost_in_the_middle_of_a_drain(kube: KubeFake, adapter: KubernetesScheduler):
    for number in range(6):
        kube.put("pods", "ml", pod(f"llama-{number}", "n1"))

    def lose(asked: object) -> None:
        if kube.asked.count("create pods/eviction") == 3:
            kube.cut()

    kube.before = lose
    with pytest.raises(AssayError, match="the API server does not answer"):
        adapter.drain("n1", "fw", now=True)

    kube.before = lambda _: None
    kube.stop()
    kube.start()
    assert adapter.read_cordon_reason("n1") == "assay: fw", "the node was closed first"
    assert len(adapter.list_jobs("n1")) == 2, "three were answered, and one was carried out whose answer was lost"
    again = reached_by(kube.kubeconfig())
    again.drain("n1", "fw", now=True)
    assert again.list_jobs("n1") == ()


def test_a_certificate_of_another_authority_is_not_believed(kube: KubeFake):
    with pytest.raises(AssayError, match="certificate is not trusted"):
        reached_by(kube.kubeconfig(**{"certificate-authority": None})).read_cordon_reason("n1")


def test_a_kubeconfig_that_switches_the_check_of_certificates_off_is_refused(kube: KubeFake):
    loose = kube.kubeconfig(**{"certificate-authority": None, "insecure-skip-tls-verify": True})
    with pytest.raises(AssayError, match=r"turns off the verification"):
        reached_by(loose).read_cordon_reason("n1")


def test_a_kubeconfig_without_tls_is_refused(kube: KubeFake):
    with pytest.raises(AssayError, match="not reached over TLS"):
        reached_by(kube.kubeconfig(server="http://127.0.0.1:9")).read_cordon_reason("n1")


@pytest.mark.parametrize("content", ["", "clusters: 7", "{", "apiVersion: v1\nkind: Config\n"])
def test_a_file_that_is_no_kubeconfig(tmp_path: Path, content: str):
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    with pytest.raises(AssayError, match="kubeconfig cannot be used") as told:
        reached_by(path).read_cordon_reason("n1")
    assert str(path) in str(told.value)


def test_a_kubeconfig_that_is_not_there_and_a_context_that_it_does_not_have(kube: KubeFake, tmp_path: Path):
    with pytest.raises(AssayError, match="there is no kubeconfig"):
        reached_by(tmp_path / "none").read_cordon_reason("n1")
    with pytest.raises(AssayError, match="hall9"):
        reached_by(kube.kubeconfig(), context="hall9").read_cordon_reason("n1")
    assert reached_by(kube.kubeconfig(), context="hall").read_cordon_reason("n1") == ""


def test_without_a_kubeconfig_it_is_the_one_that_kubectl_uses(kube: KubeFake, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", str(kube.kubeconfig()))
    assert KubernetesScheduler(make_node_settings({})).read_cordon_reason("n1") == ""


def test_a_pod_without_a_mounted_token_is_told_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "9")
    with pytest.raises(AssayError, match="this pod has no credentials"):
        KubernetesScheduler(make_node_settings({})).read_cordon_reason("n1")


def test_a_pod_uses_its_service_account(kube: KubeFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    token = tmp_path / "token"
    token.write_text("assay-token")
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_CERT_FILENAME", str(kube.folder / "ca.pem"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", kube.address.rpartition(":")[2])
    assert (
        KubernetesScheduler(make_node_settings({"kubernetes": {"namespace": "assay"}})).read_cordon_reason("n1") == ""
    )


@pytest.mark.parametrize(("token", "said"), [("assay-token", ""), ("stale-token", "does not know us"), ("", "know us")])
def test_a_program_may_bring_the_credentials(kube: KubeFake, tmp_path: Path, token: str, said: str):
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    (tmp_path / "told").write_text(json.dumps(credential | {"status": {"token": token}} if token else {}))
    program = {"apiVersion": credential["apiVersion"], "command": "cat", "interactiveMode": "Never"}
    told = yaml.safe_load(kube.kubeconfig().read_text())
    told["users"][0]["user"] = {"exec": program | {"args": [str(tmp_path / "told")]}}
    (tmp_path / "by-program").write_text(yaml.safe_dump(told))
    if said:
        with pytest.raises(AssayError, match=said):
            reached_by(tmp_path / "by-program").read_cordon_reason("n1")
    else:
        assert reached_by(tmp_path / "by-program").read_cordon_reason("n1") == ""


def test_a_setting_that_makes_no_sense_is_named():
    with pytest.raises(ValidationError, match=r"kubernetes\.kubeconf\s+Extra inputs"):
        make_node_settings({"kubernetes": {"kubeconf": "x"}})


def test_the_token_is_hidden_from_whatever_is_written_down(kube: KubeFake, adapter: KubernetesScheduler):
    adapter.read_cordon_reason("n1")
    assert "assay-token" not in redact("Authorization: Bearer assay-token")


def test_adapters_of_one_cluster_are_equal_and_of_two_are_not(kube: KubeFake, adapter: KubernetesScheduler):
    same, other = reached_by(kube.kubeconfig()), reached_by(kube.kubeconfig("admin"))
    assert (adapter == same, hash(adapter) == hash(same), adapter == other) == (True, True, False)


def test_a_server_that_is_busy_is_asked_again(kube: KubeFake, adapter: KubernetesScheduler):
    from tests.support.kubernetes.kube_server import Refusal

    busy = iter([True])

    def refuse(asked: object) -> None:
        if next(busy, False):
            raise Refusal(429, "TooManyRequests", "too many requests, please try again later")

    kube.before = refuse
    assert adapter.read_cordon_reason("n1") == ""


def test_the_inventory_can_name_the_adapter():
    project = (MANIFEST.parents[1] / "pyproject.toml").read_text()
    assert 'kubernetes = "assay.adapters.kubernetes.adapter:KubernetesScheduler"' in project
    assert callable(load_scheduler_adapter)


def test_the_manifest_is_what_the_clients_models_accept():
    from tests.support.kubernetes.kube_models import judged

    for document in documents_of(MANIFEST):
        judged(f"V1{document['kind']}", document)
