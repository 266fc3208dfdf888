"""A cordon of ours on a Kubernetes node: a taint, an annotation and `unschedulable`; only ours is undone."""

from __future__ import annotations

import pytest

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.model.errors import AssayError
from tests.support.kubernetes.kube_make import node
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.kubernetes.kube_store import Thing, wrote

TAINT = "assay.dev/cordon"
REASON = "gpu.xid.79: off the bus"


def test_a_cordon_says_why_in_every_place_where_somebody_looks(kube: KubeFake, adapter: KubernetesScheduler):
    adapter.cordon("n1", REASON)

    there = _node(kube)
    assert adapter.read_cordon_reason("n1") == f"assay: {REASON}"
    assert there["spec"]["unschedulable"] is True
    assert {"key": TAINT, "value": "gpu.xid.79-off-the-bus", "effect": "NoSchedule"} in there["spec"]["taints"]
    assert there["metadata"]["labels"]["assay.dev/state"] == "cordoned"
    assert there["metadata"]["annotations"]["assay.dev/since"]
    told = _condition(there)
    assert (told["status"], told["reason"], told["message"]) == ("True", "Cordoned", f"assay: {REASON}")


def test_uncordon_leaves_nothing_of_ours_and_all_of_others(kube: KubeFake, adapter: KubernetesScheduler):
    before = _node(kube)
    adapter.cordon("n1", REASON)
    adapter.uncordon("n1")

    after = _node(kube)
    assert adapter.read_cordon_reason("n1") == ""
    assert after["spec"] == before["spec"], "the GPU operator's taint is still there, unschedulable is not"
    assert not [key for key in after["metadata"].get("annotations", {}) if key.startswith("assay.dev")]
    assert "assay.dev/state" not in after["metadata"]["labels"]
    assert _condition(after)["status"] == "False"
    assert [one["type"] for one in after["status"]["conditions"]] == ["Ready", "AssayCordoned"]


def test_a_cordon_twice_is_a_cordon_once(kube: KubeFake, adapter: KubernetesScheduler):
    adapter.cordon("n1", REASON)
    once = _node(kube)
    adapter.cordon("n1", REASON)
    assert _node(kube)["spec"] == once["spec"]
    assert _node(kube)["metadata"]["annotations"] == once["metadata"]["annotations"]


def test_somebody_elses_cordon_is_honoured_shown_and_stays(kube: KubeFake, adapter: KubernetesScheduler):
    _by_a_person(kube, unschedulable=True)
    assert adapter.read_cordon_reason("n1").startswith("made unschedulable by kubectl since 20")

    adapter.cordon("n1", REASON)
    assert adapter.read_cordon_reason("n1").startswith(f"assay: {REASON}; also made unschedulable by kubectl since 20")
    adapter.uncordon("n1")

    assert adapter.read_cordon_reason("n1").startswith("made unschedulable by kubectl")
    assert _node(kube)["spec"]["unschedulable"] is True
    assert not [taint for taint in _node(kube)["spec"]["taints"] if taint["key"] == TAINT]


def test_a_person_who_ends_their_cordon_does_not_open_a_node_that_we_work_on(
    kube: KubeFake, adapter: KubernetesScheduler
):
    _by_a_person(kube, unschedulable=True)
    adapter.cordon("n1", REASON)
    _by_a_person(kube, unschedulable=None)

    assert adapter.read_cordon_reason("n1") == f"assay: {REASON}", "our taint still stands"
    adapter.uncordon("n1")
    assert adapter.read_cordon_reason("n1") == ""


def test_a_cordon_that_a_person_renewed_is_theirs_now(kube: KubeFake, adapter: KubernetesScheduler):
    adapter.cordon("n1", REASON)
    _by_a_person(kube, unschedulable=None)
    _by_a_person(kube, unschedulable=True)
    adapter.uncordon("n1")
    assert "by kubectl" in adapter.read_cordon_reason("n1")


def test_others_who_write_in_between_lose_nothing(kube: KubeFake, adapter: KubernetesScheduler):
    mine = {"key": "maintenance", "effect": "NoExecute"}
    quick = iter([True])

    def taint(asked: object) -> None:
        if getattr(asked, "verb", "") == "patch" and next(quick, False):
            kube.edit("nodes", "", "n1", lambda one: one["spec"]["taints"].append(mine))

    kube.before = taint
    adapter.cordon("n1", REASON)

    assert {taint["key"] for taint in _node(kube)["spec"]["taints"]} == {"nvidia.com/gpu", "maintenance", TAINT}


def test_a_node_that_others_never_leave_alone_is_trouble(kube: KubeFake, adapter: KubernetesScheduler):
    kube.before = lambda asked: (
        kube.edit("nodes", "", "n1", lambda one: one["metadata"]["labels"].update(x=str(kube.store.version)))
        if asked.verb == "patch"
        else None
    )
    with pytest.raises(AssayError, match="others changed the node"):
        adapter.cordon("n1", REASON)


def test_many_nodes_are_cordoned_at_once_and_the_one_that_fails_is_named(kube: KubeFake, adapter: KubernetesScheduler):
    for number in range(10, 60):
        kube.put("nodes", "", node(f"n{number}"))
    wanted = {f"n{number}": f"fault {number}" for number in range(10, 60)}
    kube.asked.clear()
    with pytest.raises(
        AssayError, match=r"1 of 51 nodes could not be cordoned: n9: the cluster does not know the node n9"
    ):
        adapter.cordon_many({**wanted, "n9": "never was"})

    standing = adapter.read_statuses(wanted)
    assert {name: one.cordon for name, one in standing.items()} == {n: f"assay: {why}" for n, why in wanted.items()}
    assert kube.asked.count("get nodes") == 1, "only the one that the list did not have is asked for by name"


def test_the_reason_of_a_cordon_whose_annotation_was_removed_says_so(kube: KubeFake, adapter: KubernetesScheduler):
    adapter.cordon("n1", REASON)
    kube.edit("nodes", "", "n1", lambda one: one["metadata"]["annotations"].pop(TAINT))
    assert adapter.read_cordon_reason("n1") == "assay: the reason was taken off the node"


def test_what_is_not_ours_is_never_written_to(kube: KubeFake, adapter: KubernetesScheduler):
    kube.asked.clear()
    adapter.uncordon("n1")
    assert kube.asked == ["get nodes"]


def _node(kube: KubeFake) -> Thing:
    found = kube.get("nodes", "", "n1")
    assert found is not None
    return found


def _condition(there: Thing) -> dict[str, str]:
    return next(one for one in there["status"]["conditions"] if one["type"] == "AssayCordoned")


def _by_a_person(kube: KubeFake, unschedulable: bool | None) -> None:
    """Cordon or uncordon as `kubectl` does."""

    def edit(one: Thing) -> None:
        old = {**one, "spec": dict(one["spec"])}
        if unschedulable:
            one["spec"]["unschedulable"] = True
        else:
            one["spec"].pop("unschedulable", None)
        wrote(old, one, "kubectl")

    kube.edit("nodes", "", "n1", edit)
