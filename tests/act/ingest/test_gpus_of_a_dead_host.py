"""A BMC that tells an XID while its host is dead names the GPU by where its serial number was last seen."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from assay.act.ingest.fault_recording import record_faults
from assay.act.ingest.part_replacements import record_parts
from assay.act.loop.context import ControllerContext
from assay.declare.loader import load_fleet
from assay.model.clock import SystemClock
from assay.model.evidence import EvidenceDocument
from assay.model.ledger_entry import LedgerEntry
from assay.model.reading import failed, value
from assay.observe.evidence_store import EvidenceStore

NODE = "n0003"
SERIALS = {"0000:1b:00.0": "1650000000001", "0000:43:00.0": "1650000000002"}
BMC_NAMES = {"GPU_SXM_2": "1650000000001", "GPU_SXM_1": "1650000000002"}


@pytest.fixture
def desk(ann: Any) -> ControllerContext:
    home = ann.root / ".assay"
    evidence, clock = EvidenceStore(home / "evidence"), SystemClock()
    return ControllerContext(load_fleet(ann.root), ann.ledger(), evidence, clock, home, ann.root / "reports")


@pytest.mark.parametrize(("is_known", "part"), [(True, "gpu0"), (False, "GPU_SXM_2")])
def test_the_gpu_is_where_its_serial_number_was_last_seen(desk: ControllerContext, is_known: bool, part: str) -> None:
    now = desk.clock.now()
    since, content = (now - timedelta(days=1)).isoformat(), {"pool": "h100-a", "state": "production"}
    desk.ledger.append(LedgerEntry("e1", since, "node.enrolled", NODE, content))
    if is_known:
        devices = {address: {"serial": value(serial)} for address, serial in SERIALS.items()}
        record_parts(desk, {NODE: EvidenceDocument(NODE, now, {"probe": {"gpu": {"devices": devices}}})})
    record_faults(desk, {NODE: EvidenceDocument(NODE, now, {"probe": failed("no answer"), "bmc": _tell_xid(now)})})
    (fault,) = [entry for entry in desk.ledger.entries(NODE, ["fault"]) if entry.body["class"] == "gpu.xid.79"]
    assert fault.body["subject"] == f"h100-a/{NODE}/{part}"


def _tell_xid(now: Any) -> dict[str, Any]:
    said = f"'[{now:%a %b %d %H:%M:%S UTC %Y}][1][00] XID 79 gone'"
    message = f"The resource property GPU_SXM_2 Driver Event Message has detected errors of type {said}."
    entry = {"id": "1", "at": now.isoformat(), "severity": "Critical", "message": message, "log": "Systems HGX"}
    gpus = {name: {"serial": value(serial)} for name, serial in BMC_NAMES.items()}
    return {"processor": {"gpu": gpus}, "events": value([entry])}
