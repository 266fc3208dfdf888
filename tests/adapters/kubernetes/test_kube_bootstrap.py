"""A bootstrap token that is made for one start: a real API server takes it, until its time is over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from assay.act.boot.joins import JoinRequest, make_bootstrap_token
from assay.model.errors import AssayError
from assay.model.specs.provisioning import KubernetesJoin
from assay.model.text.safe_text import redact
from tests.adapters.kubernetes.real_cluster import PROGRAMS, RealCluster, now_in_cluster

pytestmark = [
    pytest.mark.slow(minutes=1),
    pytest.mark.skipif(
        not all(path.exists() for path in PROGRAMS.values()),
        reason="no kube-apiserver here: `tools/kubernetes-server` builds one on Debian 12, in about five minutes",
    ),
]
ASKED = JoinRequest("n0001", "n0001.5f2a", "kubernetes")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    cluster = RealCluster(tmp_path_factory.mktemp("kubernetes"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def make_join(kubeconfig: Path) -> KubernetesJoin:
    return KubernetesJoin(kubeconfig=str(kubeconfig), api_server="https://api.lab1.example:6443", ca_file="ca.pem")


def allow_making(real: RealCluster) -> None:
    """Give assay the one right that docs/day-0.md asks for."""
    rbac, where = "rbac.authorization.k8s.io/v1", {"name": "assay-bootstrap", "namespace": "kube-system"}
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}]
    real.create({"apiVersion": rbac, "kind": "Role", "metadata": where, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "assay-bootstrap"}
    subjects = [{"kind": "ServiceAccount", "name": "assay", "namespace": "assay"}]
    binding = {"metadata": where, "roleRef": reference, "subjects": subjects}
    real.create({"apiVersion": rbac, "kind": "RoleBinding", **binding})


def test_without_the_right_it_is_said_which_one_is_missing(real: RealCluster) -> None:
    config = real.kubeconfig("without", token=real.issue_token(3600))
    with pytest.raises(AssayError, match="does not let us `create` `secrets` in the namespace kube-system"):
        make_bootstrap_token(make_join(config), ASKED, now_in_cluster() + timedelta(minutes=10))


def test_a_node_may_speak_with_it_as_its_group_and_no_longer_when_it_is_over(real: RealCluster) -> None:
    allow_making(real)
    join = make_join(real.kubeconfig("maker", token=real.issue_token(3600)))
    token = make_bootstrap_token(join, ASKED, now_in_cluster() + timedelta(minutes=10))
    status, said, _ = real.ask("GET", "/api/v1/nodes", token=token)
    assert status == 403, "who speaks is known; what it may do is RBAC's"
    assert f"system:bootstrap:{token.partition('.')[0]}" in said["message"]
    old = make_bootstrap_token(join, ASKED, now_in_cluster() - timedelta(minutes=1))
    assert real.ask("GET", "/api/v1/nodes", token=old)[0] == 401
    name = f"bootstrap-token-{token.partition('.')[0]}"
    status, secret, _ = real.ask("GET", f"/api/v1/namespaces/kube-system/secrets/{name}")
    assert (status, secret["type"]) == (200, "bootstrap.kubernetes.io/token")
    assert token.partition(".")[2] not in redact(f"said {token}")
