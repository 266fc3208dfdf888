"""How a merged setting reaches the nodes: in service, by a rollout, or by people; rollouts and plan say the same."""

from __future__ import annotations

import pytest

from assay.act.loop.plan_inputs import load_plan_revisions
from assay.decide.plan.output_formats import format_plan_text
from assay.decide.plan.rollout_nodes import find_service_exits
from tests.decide.plan.conftest import PARSE_CACHE, Repository

MANAGED = tuple(f"n{number:04}" for number in range(1, 17))
SERVING = MANAGED[2:]
GOVERNOR = ("governor: performance", "governor: schedutil")


def ways(made, nodes: tuple[str, ...] = MANAGED) -> dict[str, str]:
    """Return the way of each changed setting on the nodes that assay acts on."""
    return {one.setting.field: one.setting.way for one in made.configuration if one.nodes == nodes}


def exits(repository: Repository) -> set[str]:
    return set(find_service_exits(*load_plan_revisions(repository.root, "HEAD", cache=PARSE_CACHE)))


def scheduled(made) -> set[str]:
    return {name for wave in made.work.schedule.waves for name in wave.nodes}


@pytest.mark.parametrize(
    ("old", "new", "field", "way", "rule"),
    [
        (*GOVERNOR, "host.governor", "at_once", "settings-in-production"),
        ('vm.zone_reclaim_mode: "0"', 'vm.zone_reclaim_mode: "1"', "host.sysctls", "at_once", "settings-in-production"),
        ('vm.nr_hugepages: "0"', 'vm.nr_hugepages: "8"', "host.sysctls", "idle", "settings-in-production"),
        ("mtu: 9000", "mtu: 1500", "nics.mtu", "ticket", ""),
        ("ib_umad]", "ib_umad, tun]", "host.modules", "ticket", "settings-in-production"),
        ("compute_mode: default", "compute_mode: exclusive_process", "gpu_settings.compute_mode", "ticket", ""),
        ("ecc: true", "ecc: false", "gpu_settings.ecc", "rollout", "rollouts"),
        ("iommu=pt", "iommu=off", "kernel_cmdline", "rollout", "rollouts"),
        ("fabric_manager: 570.172.08", "fabric_manager: 570.172.09", "fabric_manager", "rollout", "rollouts"),
    ],
)  # fmt: skip
def test_each_setting_by_its_own_path(repository, old: str, new: str, field: str, way: str, rule: str) -> None:
    made = repository.spec(old, new).plan()
    assert ways(made) == {field: way}
    (change,) = (one for one in made.configuration if one.nodes == MANAGED)
    assert change.setting.rule.startswith("specs/lifecycle/default.yaml:")
    assert change.setting.rule.endswith(rule)
    assert change.pools == ("h100-a",)
    assert scheduled(made) == (set(SERVING) if way == "rollout" else set())
    assert exits(repository) == (set(MANAGED) if way == "rollout" else set())


def test_a_setting_brought_in_service_is_said_so_with_its_rule(repository) -> None:
    made = repository.spec(*GOVERNOR).plan()
    text = format_plan_text(made)
    assert "host.governor performance → schedutil: brought at once in service [specs/lifecycle/default.yaml:" in text
    assert "brought at once, in service; no node moves" in text
    told = {(one.state, one.what, len(one.nodes)) for one in made.follows}
    assert ("production", "at_once", len(SERVING)) in told
    assert ("production", "tracked", 4) in told
    assert "rolls" not in {what for _, what, _ in told}


def test_a_policy_that_allows_a_setting_between_jobs_is_followed(repository) -> None:
    repository.policy("  idle: []", "  idle: [nics.mtu]").commit()
    made = repository.spec("mtu: 9000", "mtu: 1500").plan()
    assert ways(made) == {"nics.mtu": "idle"}
    assert "idle" in {one.what for one in made.follows}


@pytest.mark.parametrize("left_out", ["corrections", "rule", "profile"])
def test_what_nobody_may_bring_becomes_a_ticket(repository, left_out: str) -> None:
    match left_out:
        case "corrections":
            repository.policy(", host.governor]", "]")
        case "rule":
            repository.policy(
                "    timing: immediate\n    remedy: configure\n", "    timing: record\n    remedy: ticket\n"
            )
        case "profile":
            repository.edit("specs/profiles/managed.yaml", ", configure", "")
    repository.commit()
    made = repository.spec(*GOVERNOR).plan()
    assert ways(made) == {"host.governor": "ticket"}
    assert "at_once" not in {one.what for one in made.follows}
    assert scheduled(made) == exits(repository) == set()


def test_what_a_rollout_brings_is_not_called_a_correction(repository) -> None:
    made = repository.spec(*GOVERNOR).spec("iommu=pt", "iommu=off").plan()
    assert ways(made) == {"host.governor": "rollout", "kernel_cmdline": "rollout"}
    assert {one.what for one in made.follows if one.state == "production"} == {"rolls", "tracked"}
    assert "in service" not in format_plan_text(made).replace("out of service", "")


@pytest.mark.parametrize(("more", "leaves"), [("", False), ("\ndriver: 580.65.06", True)])
def test_another_spec_needs_no_rollout_if_all_that_differs_is_brought_in_service(
    repository, more: str, leaves: bool
) -> None:
    spec = f"kind: NodeSpec\nname: tuned\nextends: hgx-h100\nhost: {{governor: schedutil}}{more}\n"
    (repository.root / "specs/nodes/tuned.yaml").write_text(spec)
    host = repository.host("n0004")
    made = repository.edit("inventory/h100-a.yml", host, f"{host}      node_spec: tuned\n").plan()
    assert ways(made, ("n0004",))["host.governor"] == ("rollout" if leaves else "at_once")
    assert scheduled(made) == exits(repository) == ({"n0004"} if leaves else set())


def test_a_setting_that_is_declared_no_longer_brings_nothing(repository) -> None:
    made = repository.spec("  governor: performance\n", "").plan()
    (change,) = made.configuration
    assert (change.setting.field, change.setting.new, change.setting.how) == ("host.governor", "none", "judged")
    assert made.work.schedule.waves == ()


@pytest.mark.parametrize(("old", "new"), [('version: "2026.10"', 'version: "2026.11"'), ("quiet]", "debug]")])
def test_another_image_is_a_rollout_through_a_restart_with_a_canary(repository, old: str, new: str) -> None:
    made = repository.edit("specs/images/gpu-node.yaml", old, new).plan()
    assert ways(made) == {"image": "rollout"}
    assert scheduled(made) == set(SERVING)
    assert exits(repository) == set(MANAGED)
    assert made.work.schedule.waves[0].canary
    (stale,) = {check.rpartition("::")[2] for rerun in made.reruns for check in rerun.because}
    assert stale == "test_image"
    text = format_plan_text(made)
    assert "image gpu-node-2026.10:2026.10:" in text
    assert "production-reboot" in text


def test_another_way_to_wipe_takes_no_node_out_and_counts_from_the_next_wipe(repository) -> None:
    made = repository.edit("specs/nodes/hgx-h100.yaml", "unwiped: remove", "unwiped: return").plan()
    assert {one.setting.way for one in made.configuration} == {"next_wipe"}
    assert (scheduled(made), exits(repository)) == (set(), set())
    text = format_plan_text(made)
    assert "wipe unwiped=remove → unwiped=return: counts from the next wipe on; proven by the wipe itself" in text
    assert "nobody will see" not in text
    assert "What follows" not in text
