"""Somebody cordons a node and asks for a verification; the next one that began later and passed opens it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.scheduler import VERIFY_UNDRAIN, undrain_if_supported
from tests.support.kubernetes.kube_server import Asked, KubeFake
from tests.support.kubernetes.kube_store import Thing, wrote

ANNOTATION = "assay.dev/verify-undrain"
EVER, LATER = datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC)


def by_bob(kube: KubeFake, unschedulable: bool | None = True, reason: str | None = "fans reseated") -> None:
    """Do as `kubectl cordon` and `kubectl annotate` do."""

    def change(node: Thing) -> None:
        old = {"spec": dict(node["spec"]), "metadata": {"annotations": dict(node["metadata"].get("annotations") or {})}}
        if unschedulable is not None:
            node["spec"]["unschedulable"] = unschedulable
        if reason is not None:
            node["metadata"].setdefault("annotations", {})[ANNOTATION] = reason
        wrote(old, node, "kubectl")

    kube.edit("nodes", "", "n1", change)


def annotations(kube: KubeFake) -> Thing:
    node = kube.get("nodes", "", "n1")
    assert node is not None
    return dict(node["metadata"].get("annotations") or {})


def test_a_passed_verification_opens_the_node_and_takes_the_question_off(kube: KubeFake, adapter: KubernetesScheduler):
    by_bob(kube)
    status = adapter.read_statuses(["n1"])["n1"]
    assert status.cordon.startswith("made unschedulable by kubectl since 20")
    assert status.cordon.endswith(f", not by assay; {VERIFY_UNDRAIN}: fans reseated")
    assert status.foreign_cordon == status.cordon
    reason = undrain_if_supported(adapter, "n1", LATER)
    assert reason == status.cordon
    assert adapter.read_cordon_reason("n1") == ""
    assert ANNOTATION not in annotations(kube)


def test_a_verification_that_began_before_the_cordon_proves_nothing(kube: KubeFake, adapter: KubernetesScheduler):
    by_bob(kube)
    assert adapter.undrain_verified("n1", EVER) == ""
    assert adapter.undrain_verified("n1", datetime.now(UTC) - timedelta(seconds=1)) == ""
    assert VERIFY_UNDRAIN in adapter.read_cordon_reason("n1")


def test_the_question_is_as_new_as_its_last_mark(
    kube: KubeFake, adapter: KubernetesScheduler, monkeypatch: pytest.MonkeyPatch
):
    from tests.support.kubernetes import kube_store

    monkeypatch.setattr(kube_store, "written", lambda _=0.0: "2026-01-01T00:00:00Z")
    by_bob(kube, reason=None)
    monkeypatch.setattr(kube_store, "written", lambda _=0.0: "2026-01-02T00:00:00Z")
    by_bob(kube, unschedulable=None)
    assert adapter.undrain_verified("n1", datetime(2026, 1, 1, 12, tzinfo=UTC)) == ""
    assert adapter.undrain_verified("n1", datetime(2026, 1, 2, 0, 0, 0, 999_999, tzinfo=UTC)) == "", "the same second"
    assert VERIFY_UNDRAIN in adapter.undrain_verified("n1", datetime(2026, 1, 2, 0, 0, 1, tzinfo=UTC))


@pytest.mark.parametrize("reason", ["", "fans"])
def test_without_the_question_the_cordon_stays(kube: KubeFake, adapter: KubernetesScheduler, reason: str):
    by_bob(kube, reason=None)
    assert VERIFY_UNDRAIN not in adapter.read_cordon_reason("n1")
    assert adapter.undrain_verified("n1", LATER) == ""
    by_bob(kube, reason=reason)
    assert VERIFY_UNDRAIN in adapter.undrain_verified("n1", LATER), "an empty reason asks too"


def test_the_question_alone_closes_and_opens_nothing(kube: KubeFake, adapter: KubernetesScheduler):
    by_bob(kube, unschedulable=None)
    assert adapter.read_cordon_reason("n1") == ""
    assert adapter.undrain_verified("n1", LATER) == ""
    adapter.cordon("n1", "gpu.xid.79")
    assert adapter.undrain_verified("n1", LATER) == "", "our own cordon is not theirs to ask about"
    assert adapter.read_cordon_reason("n1") == "assay: gpu.xid.79"


def test_our_own_cordon_stays_when_theirs_goes(kube: KubeFake, adapter: KubernetesScheduler):
    by_bob(kube)
    adapter.cordon("n1", "gpu.xid.79")
    assert VERIFY_UNDRAIN in adapter.undrain_verified("n1", LATER)
    assert adapter.read_cordon_reason("n1") == "assay: gpu.xid.79"


def test_without_a_known_writer_nothing_is_opened(kube: KubeFake, adapter: KubernetesScheduler):
    by_bob(kube)
    kube.edit("nodes", "", "n1", lambda node: node["metadata"].pop("managedFields"))
    assert adapter.undrain_verified("n1", LATER) == ""


def test_who_closes_the_node_meanwhile_is_heard(kube: KubeFake, adapter: KubernetesScheduler):
    by_bob(kube)
    once = iter([True])

    def withdraw(asked: Asked) -> None:
        if asked.verb == "patch" and next(once, False):
            kube.edit("nodes", "", "n1", lambda node: node["metadata"]["annotations"].pop(ANNOTATION))

    kube.before = withdraw
    assert adapter.undrain_verified("n1", LATER) == "", "the write was refused, and judged again"
    assert adapter.read_cordon_reason("n1").startswith("made unschedulable by kubectl")
