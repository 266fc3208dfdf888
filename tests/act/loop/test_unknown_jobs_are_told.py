"""A node whose scheduler gives no answer is not idle: nothing disturbs it, and the commands say since when, and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.loop.projections import FILE_NAME, NOT_KNOWN_THERE, read_unknown_jobs
from assay.act.loop.reconcile_pass import record_decisions, run_outstanding_effects
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.cli.verbs.explain import list_explanation_lines
from assay.cli.verbs.status import describe_unknown_jobs
from assay.model.facts import extend, to_json
from assay.model.specs.node_settings import make_node_settings
from assay.tell.views.node_explanation import ExplainAnswer
from assay.tell.views.node_status import make_node_status
from tests.act.quiet_site import FLEET, NODES, Site
from tests.support.kubernetes.kube_make import node as make_node
from tests.support.kubernetes.kube_make import pod
from tests.support.kubernetes.kube_rights import MANIFEST, rights_of
from tests.support.kubernetes.kube_server import Asked, KubeFake, Refusal

ONE, TWO, THREE = NODES[:3]
SILENT = "slurmctld does not answer"


def unknown(site: Site) -> dict[str, tuple[str, str]]:
    return {name: (jobs.since, jobs.reason) for name, jobs in read_unknown_jobs(site.desk.home).items()}


def actions(site: Site) -> list[str]:
    return [entry.body["action"] for entry in site.ledger.entries(ONE, kinds=["effect.intent"])]


@pytest.mark.parametrize("planted", ["silent", "refused"])
def test_no_reboot_begins_while_the_jobs_are_unknown(
    site: Site, memory: FleetSnapshotCache, monkeypatch: pytest.MonkeyPatch, planted: str
):
    site.fault(ONE)
    record_decisions(memory)
    assert memory.node_states()[ONE].state == "production-reboot"
    site.settle(ONE, only="cordon")
    if planted == "silent":
        site.far.silent = True
    else:
        monkeypatch.setattr(site.far, "read_statuses", {}.__getitem__)
    run_outstanding_effects(memory, NODES)
    assert actions(site) == ["cordon"], "no drain, no reboot"
    assert any(
        line.startswith(f"{ONE}: cannot tell what is in use: ") and line.endswith("; assay waits") for line in site.said
    )


def test_since_when_and_why_is_kept_until_the_scheduler_answers(site: Site, memory: FleetSnapshotCache):
    for name in (ONE, TWO, THREE):
        site.fault(name)
    site.far.silent, began = True, site.desk.now
    record_decisions(memory)
    assert unknown(site) == dict.fromkeys(sorted((ONE, TWO, THREE)), (began, SILENT))
    site.later(minutes=5)
    record_decisions(memory)
    assert unknown(site)[ONE] == (began, SILENT), "the first pass that got no answer"
    site.far.silent, site.far.strangers = False, {TWO}
    record_decisions(memory)
    assert unknown(site) == {TWO: (began, NOT_KNOWN_THERE)}
    site.far.strangers = set()
    record_decisions(memory)
    assert unknown(site) == {}


def test_a_look_at_one_node_forgets_no_other(site: Site, memory: FleetSnapshotCache):
    for name in (ONE, TWO):
        site.fault(name)
    site.far.silent = True
    record_decisions(memory)
    site.far.silent = False
    memory._read_statuses([FLEET.nodes[TWO]])
    assert list(unknown(site)) == [ONE]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"n1": 7}', '{"n1": {"why": "x"}}'])
def test_half_a_file_is_no_file(site: Site, memory: FleetSnapshotCache, content: str):
    site.desk.home.mkdir(exist_ok=True)
    (site.desk.home / FILE_NAME).write_text(content)
    assert unknown(site) == {}
    site.fault(ONE)
    site.far.silent = True
    record_decisions(memory)
    assert list(unknown(site)) == [ONE]


def test_status_and_explain_say_it(site: Site, memory: FleetSnapshotCache):
    for name in (ONE, TWO, THREE):
        site.fault(name, "gpu.thermal")
    site.far.silent = True
    record_decisions(memory)
    known = read_unknown_jobs(site.desk.home)
    (line,) = describe_unknown_jobs(known, NODES, site.clock.at)
    assert line.startswith("jobs unknown (")
    assert line.endswith(f": {SILENT}")
    assert list(describe_unknown_jobs(known, [], site.clock.at)) == []
    status = make_node_status(memory.node_states()[ONE], (), known[ONE])
    assert to_json(status)["jobs_unknown"] == {"since": known[ONE].since, "reason": SILENT}
    nothing = dict.fromkeys(("chain", "incidents", "requires", "undecided", "recorded"), ())
    nobody = dict.fromkeys(("breaker", "rollout", "trust", "sync"))
    answer = extend(ExplainAnswer, status, agent="", back="", cost="", judged_with="", **nothing, **nobody)
    lines = dict(list_explanation_lines(answer, [], site.clock.at))
    assert lines["jobs"].startswith(f"not known since {known[ONE].since[:10]}")
    assert make_node_status(memory.node_states()[ONE]).jobs_unknown is None


@pytest.mark.parametrize("planted", ["403", "500"])
def test_a_cluster_that_will_not_list_its_pods_has_no_idle_node(site: Site, tmp_path: Path, planted: str):
    """The fault would be answered by a reboot at once if the node were idle; and it is not known to be."""
    kube = KubeFake(tmp_path, {"assay-token": rights_of(MANIFEST)})
    kube.put("nodes", "", make_node(ONE))
    kube.put("pods", "ml", pod("llama-0", ONE))
    kube.start()
    adapter = KubernetesScheduler(make_node_settings({"kubernetes": {"kubeconfig": str(kube.kubeconfig())}}))
    site.desk = replace(site.desk, workloads=lambda _: adapter)
    memory = FleetSnapshotCache(site.desk)

    def refuse(asked: Asked) -> None:
        if planted == "500" and (asked.verb, asked.resource) == ("list", "pods"):
            raise Refusal(500, "InternalError", "etcdserver: request timed out")

    kube.before = refuse
    if planted == "403":
        kube.users["assay-token"].granted.discard(("list", "", "pods", ""))
    try:
        site.fault(ONE, "gpu.thermal")
        for _ in range(2):
            record_decisions(memory)
            run_outstanding_effects(memory, NODES)
            site.later(minutes=5)
    finally:
        kube.stop()
    story = memory.node_states()[ONE]
    assert story.state == "production"
    assert story.pending is not None
    assert not {"reboot", "powercycle", "drain-now"} & set(actions(site))
    reason = {"403": "RBAC does not let us `list` `pods`", "500": "the API server refused to list pods (500)"}[planted]
    assert reason in unknown(site)[ONE][1]
