"""A sick tray of a whole NVL72 rack is suspect by the NVLinks of its GPUs, or it is said that it cannot be told."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assay.act.tickets.collective_link_tickets import SickLinks, find_suspect_tray, read_sick_links, read_suspect_tray
from assay.fabric.readers.format_detection import read_topology
from assay.fabric.scan import run_fabric_scan
from assay.ledger.store import Ledger
from assay.model.evidence import EvidenceDocument
from assay.model.outcome import Measurement, Outcome, SuiteRun
from assay.model.reading import value
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.nvlink_domain import NvlinkDomain
from assay.observe.evidence_store import EvidenceStore
from tests.fabric.nvlink_racks import ASICS, DESIGN, NODES, dump, make_nodes, numbered_ports

DOMAIN = NvlinkDomain.model_validate(DESIGN["nvlink"])
MOST = {"nvlink_recoveries": 4.0, "nvlink_crc_errors": 100.0}
PORTS = {
    gpu: {there: port for (device, there), port in numbered_ports(0) if device == gpu}
    for gpu in {device for (device, _), _ in numbered_ports(0) if device[0] == "gpu"}
}
TRAY = [asic for asic in ASICS if asic[1] == 5]


def make_evidence(node: str, sick: Callable[[int, int], Collection[int]]) -> EvidenceDocument:
    """Return what a tray of four GPUs reads. `sick`: the links of a GPU that count errors."""
    tray = NODES.index(node)
    devices = {
        f"000{gpu}:01:00.0": {
            "nvlink": {
                "link": {
                    str(link): {"up": value(True), "recoveries": value(40 * (link in sick(tray, gpu)))}
                    for link in range(18)
                }
            }
        }
        for gpu in range(4)
    }
    return EvidenceDocument(node, datetime(2026, 11, 30, tzinfo=UTC), {"probe": {"gpu": {"devices": devices}}})


def read_nothing(_: str) -> dict[str, EvidenceDocument]:
    return {}


def read_rack(sick: Callable[[int, int], Collection[int]]) -> dict[str, SickLinks]:
    read = {node: read_sick_links(make_evidence(node, sick), MOST, read_nothing) for node in NODES}
    return {node: links for node, links in read.items() if links}


def lead_to(*asics: tuple[str, int, int], first: int) -> Callable[[int, int], list[int]]:
    """Return the links of a GPU to these ASICs, as NVML numbers them if it counts from `first` below the scan."""
    return lambda tray, gpu: [PORTS["gpu", tray, gpu + 1][asic] - first for asic in asics]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("asics", [TRAY, TRAY[:1]], ids=["both ASICs", "one ASIC"])
def test_links_of_most_nodes_that_all_lead_to_one_switch_tray_name_it(first: int, asics: list) -> None:
    sick = lead_to(*asics, first=first)
    suspect, reason = find_suspect_tray(DOMAIN, read_rack(sick), read_topology(dump()))
    assert suspect == "nvswitch-5"
    assert reason.endswith("GPUs on 18 of 18 nodes are down or count errors, and all lead there")


def test_without_a_scan_it_cannot_be_told_which_switch_tray() -> None:
    suspect, reason = find_suspect_tray(DOMAIN, read_rack(lead_to(*TRAY, first=1)), None)
    assert suspect == ""
    assert reason.startswith("which switch tray cannot be told: NVLinks of 72 GPUs on 18 of 18 nodes")
    assert reason.endswith("and no scan says where they lead")


def test_links_of_two_switch_trays_or_of_few_nodes_name_none() -> None:
    scan = read_topology(dump())
    two = lead_to(TRAY[0], ASICS[0], first=1)
    assert find_suspect_tray(DOMAIN, read_rack(two), scan)[0] == ""
    assert find_suspect_tray(DOMAIN, read_rack(two), scan)[1].endswith("and lead to no single one")
    all_of_few = lead_to(*TRAY, first=1)
    few = read_rack(lambda tray, gpu: all_of_few(tray, gpu) if tray < 3 else [])
    assert find_suspect_tray(DOMAIN, few, scan)[0] == ""


def test_links_of_one_node_alone_name_its_compute_tray_and_clean_links_nothing() -> None:
    scan = read_topology(dump())
    alone = read_rack(lambda tray, gpu: range(18) if (tray, gpu) == (6, 2) else [])
    told = ("n0007", "of 18 nodes, it alone has NVLinks that are down or count errors")
    assert find_suspect_tray(DOMAIN, alone, scan) == told
    clean = read_rack(lambda tray, gpu: [])
    told = "which switch tray cannot be told: no NVLink of the 18 nodes that were read is down or counts errors"
    assert find_suspect_tray(DOMAIN, clean, scan) == ("", told)


def test_a_node_whose_links_were_not_read_is_no_clean_one() -> None:
    unread = EvidenceDocument("n0001", datetime(2026, 11, 30, tzinfo=UTC), {"probe": {"gpu": {}}})
    assert read_sick_links(unread, MOST, read_nothing) is None
    down = make_evidence("n0002", lambda tray, gpu: [])
    down.channels["probe"]["gpu"]["devices"]["0002:01:00.0"]["nvlink"]["link"]["7"]["up"] = value(False)
    assert read_sick_links(down, MOST, read_nothing) == {0: set(), 1: set(), 2: {7}, 3: set()}


@pytest.mark.parametrize(
    ("passed_at", "boot", "counter", "is_sick"),
    [
        (40, "b1", "nvlink_recoveries", False),
        (36, "b1", "nvlink_recoveries", False),
        (35, "b1", "nvlink_recoveries", True),
        (40, "b0", "nvlink_recoveries", True),
        (40, "b1", "nvlink_crc_errors", True),
    ],
)
def test_what_a_link_counted_before_its_check_passed_is_no_sign_of_today(
    passed_at: int, boot: str, counter: str, is_sick: bool
) -> None:
    """The link has recovered 40 times since the driver was loaded; its limit is 4."""
    now, then = (make_evidence("n0001", lambda _, gpu: [7] if gpu == 2 else []) for _ in range(2))
    for document, name in ((now, "b1"), (then, boot)):
        document.channels["probe"]["host"] = {"boot_id": value(name)}
    then.channels["probe"]["gpu"]["devices"]["0002:01:00.0"]["nvlink"]["link"]["7"]["recoveries"] = value(passed_at)
    asked: list[str] = []

    def read_passed(gpu: str) -> dict[str, EvidenceDocument]:
        asked.append(gpu)
        return {counter: then}

    sick = read_sick_links(now, MOST, read_passed)
    assert sick == {gpu: {7} if gpu == 2 and is_sick else set() for gpu in range(4)}
    assert asked == ["gpu2"], "only what counts too much is compared"


def test_a_site_gives_one_command_for_its_rack_and_links_count_from_the_pass_of_their_check(tmp_path: Path) -> None:
    """The rack is read by the words of `nvlink.discover`, in a process; the rest is what every probe reads of NVML."""
    script, told = tmp_path / "nmx-topology", tmp_path / "topology.json"
    told.write_text(dump())
    script.write_text(f"#!/bin/sh\nexec cat {told}\n")
    script.chmod(0o755)
    design = FabricDesign.model_validate({**DESIGN, "nvlink": {**DESIGN["nvlink"], "discover": [str(script)]}})
    check = SimpleNamespace(id="suites/x.py::test_links", fault="gpu.nvlink.errors")
    limits = {name: SimpleNamespace(value=limit) for name, limit in MOST.items()}
    fleet: Any = SimpleNamespace(
        nodes=make_nodes(),
        spec_of=lambda _: SimpleNamespace(limits=limits),
        check_catalogs={"ours": SimpleNamespace(checks=[check])},
        is_lab=False,
    )
    store, ledger = EvidenceStore(tmp_path / "evidence"), Ledger.open(tmp_path / "ledger.sqlite")
    nodes = [make_evidence(node, lead_to(*TRAY, first=1)) for node in NODES]
    digests = {evidence.node: store.store_latest(evidence) for evidence in nodes}
    assert read_suspect_tray(fleet, ledger, store, design)[1].endswith("and no scan says where they lead")
    store.store_latest(run_fabric_scan(fleet, design))
    assert read_suspect_tray(fleet, ledger, store, design)[0] == "nvswitch-5"
    at = "2026-11-30T00:00:00+00:00"
    passes = [
        Outcome(check.id, f"{fleet.nodes[node].subject}/gpu{gpu}", node, "pass", evidence=digest, evidence_at=at,
                measurements=(Measurement("nvlink_recoveries", 0.0, "count"),))
        for node, digest in digests.items()
        for gpu in range(4)
    ]  # fmt: skip
    ledger.record(SuiteRun("run-1", at), passes)
    assert read_suspect_tray(fleet, ledger, store, design) == (
        "",
        "which switch tray cannot be told: no NVLink of the 18 nodes that were read is down or counts errors",
    )
    ledger.close()
