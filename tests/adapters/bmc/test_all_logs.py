"""Every event log of a BMC is read: of systems, managers and chassis. Each fails alone, and no entry counts twice."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.declare.loader import load_fleet
from assay.model.evidence import EvidenceDocument
from assay.observe.evidence_collector import MAX_KEPT_EVENTS, read_bmc_channel
from tests.support import places

ROOT = "/redfish/v1"
QUIRKS = BmcQuirkSet(load_fleet(places.ROOT).quirks.values())
XID_LOG = f"{ROOT}/Chassis/HGX_GPU_SXM_3/LogServices/XID/Entries"


def put(tiny: Any, path: str, **properties: Any) -> dict[str, str]:
    tiny.tree[ROOT + path] = {"@odata.id": ROOT + path, "Id": path.rpartition("/")[2], **properties}
    return {"@odata.id": ROOT + path}


def entry(ident: str, minute: int, severity: str = "Critical", **properties: Any) -> dict[str, Any]:
    at = f"2026-11-20T08:{minute:02}:00+00:00"
    return {
        "@odata.id": f"/e/{ident}",
        "Id": ident,
        "Created": at,
        "Severity": severity,
        "Message": ident,
        **properties,
    }


def add_log(tiny: Any, holder: str, name: str, *entries: dict[str, Any]) -> None:
    logs = f"{holder}/LogServices"
    path = f"{logs}/{name}"
    log = put(tiny, path, Entries=put(tiny, f"{path}/Entries", Members=list(entries)))
    services = tiny.tree.setdefault(ROOT + logs, {"@odata.id": ROOT + logs, "Members": []})
    services["Members"].append(log)
    resource = tiny.tree.setdefault(ROOT + holder, {"@odata.id": ROOT + holder, "Id": holder.rpartition("/")[2]})
    resource["LogServices"] = {"@odata.id": ROOT + logs}


@pytest.fixture
def board(tiny: Any) -> Any:
    """A BMC with a GPU baseboard: its own log, one of its manager, and one of a GPU."""
    board, manager = f"{ROOT}/Systems/HGX_Baseboard_0", f"{ROOT}/Managers/HGX_BMC_0"
    tiny.tree[board] |= {"Id": "HGX_Baseboard_0", "Links": {"ManagedBy": [{"@odata.id": manager}]}}
    add_log(tiny, "/Systems/HGX_Baseboard_0", "EventLog", entry("501", 1), entry("502", 2, "OK"))
    add_log(tiny, "/Managers/HGX_BMC_0", "EventLog", entry("77", 3))
    add_log(tiny, "/Managers/HGX_BMC_0", "Journal", entry("1", 4))
    origin = {"OriginOfCondition": {"@odata.id": f"{ROOT}/Chassis/HGX_GPU_SXM_3"}}
    add_log(tiny, "/Chassis/HGX_GPU_SXM_3", "XID", entry("501", 1), entry("480", 0, Links=origin))
    tiny.tree[f"{ROOT}/Chassis"]["Members"].append({"@odata.id": f"{ROOT}/Chassis/HGX_GPU_SXM_3"})
    return tiny


def read(tiny: Any, ca_file: Path, before: dict[str, Any] | None = None) -> dict[str, Any]:
    document = EvidenceDocument("n0042", datetime.now(UTC), {"bmc": before}) if before else None
    return read_bmc_channel(tiny.node(bmc_ca=str(ca_file)), Path(), 10.0, quirks=QUIRKS, before=document)


def test_all_logs_are_read_and_an_entry_in_two_of_them_counts_once(board: Any, ca_file: Path) -> None:
    tree = read(board, ca_file)
    found = {(event["log"], event["id"]) for event in tree["events"]["value"]}
    assert {("Systems HGX_Baseboard_0 EventLog", "501"), ("Managers HGX_BMC_0 EventLog", "77")} <= found
    assert {event["id"]: event["part"] for event in tree["events"]["value"]}["480"] == "HGX_GPU_SXM_3"
    assert [ident for _, ident in found if ident == "501"] == ["501"]
    assert not any("Journal" in log for log, _ in found)
    assert tree["event_log"]["critical"] == {"value": 3}


def test_a_second_reading_adds_only_what_is_new_in_each_log(board: Any, ca_file: Path) -> None:
    first = read(board, ca_file)
    board.tree[XID_LOG]["Members"].append(entry("503", 9))
    second = read(board, ca_file, first)
    new = [event["id"] for event in second["events"]["value"]][len(first["events"]["value"]) :]
    assert new == ["503"]
    assert second["event_log"]["critical"] == {"value": 4}


def test_a_log_that_fails_leaves_the_others_and_its_place_is_kept(board: Any, ca_file: Path) -> None:
    first = read(board, ca_file)
    board.odd[XID_LOG] = board.status(500, "busy")
    board.tree[f"{ROOT}/Managers/HGX_BMC_0/LogServices/EventLog/Entries"]["Members"].append(entry("78", 10))
    second = read(board, ca_file, first)
    assert [event["id"] for event in second["events"]["value"]][-1] == "78"
    assert "busy" in second["event_log"]["critical"]["failed"]
    assert "busy" in second["event_log"]["logs"]["Chassis HGX_GPU_SXM_3 XID"]["failed"]
    board.odd.clear()
    third = read(board, ca_file, second)
    assert third["events"] == second["events"]
    assert third["event_log"]["critical"] == {"value": 4}


def test_a_noisy_log_does_not_push_out_the_entries_of_another(board: Any, ca_file: Path) -> None:
    many = [entry(str(1000 + number), number % 60, "OK") for number in range(MAX_KEPT_EVENTS + 20)]
    board.tree[f"{ROOT}/Systems/Host/LogServices/SEL/Entries"]["Members"] = many
    events = read(board, ca_file)["events"]["value"]
    assert {"501", "77", "480"} <= {event["id"] for event in events}
    assert sum(event["log"] == "Systems Host SEL" for event in events) == MAX_KEPT_EVENTS


def test_the_chassis_that_holds_the_parts_is_measured_not_the_board_of_the_bmc(tiny: Any, ca_file: Path) -> None:
    box = tiny.tree.pop(f"{ROOT}/Chassis/Box")
    put(tiny, "/Chassis/BMC_0", ChassisType="Component")
    links = {"ComputerSystems": [{"@odata.id": f"{ROOT}/Systems/Host"}]}
    tiny.tree[f"{ROOT}/Chassis/Tray"] = {
        **box,
        "@odata.id": f"{ROOT}/Chassis/Tray",
        "ChassisType": "Shelf",
        "Links": links,
    }
    put(tiny, "/Chassis/Other", ChassisType="Shelf")
    members = [{"@odata.id": f"{ROOT}/Chassis/{name}"} for name in ("BMC_0", "Other", "Tray")]
    tiny.tree[f"{ROOT}/Chassis"]["Members"] = members
    tiny.tree[f"{ROOT}/Systems/Host"]["Links"]["Chassis"] = members[:1]
    tree = read(tiny, ca_file)
    assert len(tree["fan"]) == 2
    assert tree["sensor"]["inlet_c"] == {"value": 24}
