"""Whatever stands in a document of evidence, nobody who reads it breaks: what lacks its shape says nothing."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.act.ingest.collection import _list_unanswered
from assay.act.remedies.dossier_content import read_firmware_versions
from assay.cli.verbs.observe import print_readings
from assay.decide.faults.detection import detect_faults
from assay.decide.state.node_state import NodeState
from assay.declare.loader import load_fleet
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.faults.sightings import map_parts_by_pci
from assay.observe.evidence_collector import _read_before
from assay.observe.evidence_contents import find_node_serials, find_part_serials
from assay.observe.evidence_store import EvidenceStore
from assay.observe.json_command import parse_json_output
from tests.support.places import ROOT

FLEET = load_fleet(ROOT)
NODE = FLEET.nodes["n0003"]
SPEC = FLEET.spec_of(NODE.name)
SINCE = "2026-01-01T00:00:00+00:00"
STORY = NodeState(NODE.name, NODE.pool, "production", SINCE, "s1", "", SINCE)
POLICY = next(iter(FLEET.policies.values()))
XID = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, GPU has fallen off the bus."
AT = "2026-11-21T11:00:00+00:00"
LINE = {"seq": 1, "t_s": 9000.0, "text": XID, "source": "nvml", "at": AT}
EVENT = {"id": "1", "at": AT, "severity": "Critical", "message": "Power supply failure", "message_id": "Power.Failed"}
DOCUMENT = {
    "schema": "assay.evidence/1",
    "node": NODE.name,
    "at": "2026-11-21T12:00:00+00:00",
    "channels": {
        "probe": {
            "host": {"boot_id": {"value": "b1"}, "uptime_s": {"value": 9999.5}, "serial": {"value": "S12345"}},
            "kernel_log": {"lines": {"value": [{"seq": 1, "t_s": 5.0, "text": XID}, LINE]}},
            "gpu": {"devices": {"0000:1b:00.0": {"serial": {"value": "1234567"}, "name": {"value": "H100"}}}},
            "hca": {"mlx5_0": {"guid": {"value": "0x0c42a1"}, "pci": {"value": "0000:18:00.0"}}},
        },
        "bmc": {
            "events": {"value": [EVENT, {**EVENT, "id": "2"}]},
            "event_log": {"cursor": {"value": "2@x#1,1"}, "critical": {"value": 1}},
            "firmware": {"BMC": {"value": "1.2"}, "HGX": {"failed": "lost"}},
            "psu": {"1": {"serial": {"value": "PSU123"}}},
        },
        "alerts": {
            "firing": {"value": [{"fault": "gpu.hot", "part": "g", "at": AT, "detail": "", "fingerprint": "f"}]}
        },
    },
}
TIMES = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0000-00-00T00:00:00Z", "2026-11-22T00:00:00", "²"]
ODD = [
    None, True, 0, -1, 10**400, 1e308, "", "\x00", "[bold", *TIMES, [], [None], ["x"], [{}], {}, {"x": {}},
    {"absent": "gone"}, {"failed": 3}, {"value": None}, {"value": {"value": 1}},
]  # fmt: skip


def _places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [place for step, below in pairs for place in [(*path, step), *_places(below, (*path, step))]]


READERS: dict[str, Callable[[EvidenceDocument], object]] = {
    "faults": lambda seen: detect_faults(FLEET.fault_catalog, POLICY, NODE, SPEC, STORY, seen),
    "parts": lambda seen: (find_part_serials(seen, map_parts_by_pci(SPEC)), find_node_serials(seen)),
    "what is said": lambda seen: (print_readings(seen),),
    "silences": lambda seen: list(_list_unanswered(seen)),
    "the log read on": lambda seen: [*_read_before(seen)[1]],
    "firmware": read_firmware_versions,
    "digest": EvidenceDocument.digest,
}


def _spoilt(damage: list[tuple[tuple[Any, ...], Any]]) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    for (*above, last), stands in damage:
        tree: Any = document
        try:
            for step in above:
                tree = tree[step]
            tree[last] = copy.deepcopy(stands)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier damage lies above this one
    return document


@example([(("channels", "bmc", "events", "value", 0, "at"), "0000-00-00T00:00:00Z")])
@example([(("channels", "bmc", "events", "value", 0, "message"), {"x": {}})])
@example([(("channels", "bmc", "events"), {"value": 7})])
@example([(("channels", "alerts", "firing"), {"value": [7]})])
@example([(("channels", "probe", "kernel_log", "lines", "value", 1, "at"), "0001-01-01T00:00:00+14:00")])
@example([(("at",), "0001-01-01T00:00:00+00:00")])
@example([(("at",), "2026-11-22T00:00:00")])
@given(st.lists(st.tuples(st.sampled_from(_places(DOCUMENT)), st.sampled_from(ODD)), min_size=1, max_size=3))
def test_whatever_a_document_holds_nobody_breaks_who_reads_it(damage: list[tuple[tuple[Any, ...], Any]]) -> None:
    try:
        seen = EvidenceDocument.from_json(json.loads(json.dumps(_spoilt(damage))))
    except (ValueError, TypeError):
        return  # the store tells people of it
    for reader in READERS.values():
        reader(EvidenceDocument(NODE.name, seen.at, seen.channels))


def test_the_document_itself_says_something_to_everybody() -> None:
    seen = EvidenceDocument.from_json(DOCUMENT)
    found = detect_faults(FLEET.fault_catalog, POLICY, NODE, SPEC, STORY, seen)
    assert {fault.fault_class for fault in found} == {"gpu.xid.79", "gpu.hot", "bmc.event.power-supply"}
    assert {part.kind for part in find_part_serials(seen, map_parts_by_pci(SPEC))} == {"gpu", "hca", "psu"}


@pytest.mark.parametrize("text", ["NaN", "1e999", "-1e999", '"\\ud83d"', "[" * 100_000])
def test_what_cannot_be_kept_is_no_answer_of_a_probe(text: str) -> None:
    assert "failed" in parse_json_output(f'{{"probe": {text}}}'.encode(), b"", 0)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"7", b"{}", b'{"schema": "assay.evidence/1"}'])
def test_a_file_that_is_no_document_is_told_to_people(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    (tmp_path / "latest" / "n1.json").write_bytes(content)
    with pytest.raises(AssayError, match="not an evidence document"):
        EvidenceStore(tmp_path).latest("n1")


@pytest.mark.parametrize("channels", [{"x": float("inf")}, {"x": "\ud83d"}])
def test_what_json_cannot_say_is_not_kept(channels: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"JSON compliant|surrogates"):
        EvidenceStore(tmp_path).store_latest(EvidenceDocument("n1", datetime(2026, 1, 1, tzinfo=UTC), channels))
    assert list(tmp_path.iterdir()) == []
