"""The dossier of a returned node: who it is, what failed, and the evidence, whole."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from lab_room import Room, wish

from assay.actions import dossier
from assay.model.entry import Entry
from assay.model.evidence import Evidence
from assay.model.outcome import Outcome, Run

NODE, AT = "n0012", datetime(2026, 11, 1, 9, tzinfo=UTC)


def test_it_holds_serials_firmware_faults_failures_and_their_evidence(room: Room):
    context, intent = room.context(), wish("dossier", NODE)
    gpu = {"0000:1b:00.0": {"serial": {"value": "1650923001"}}, "0000:43:00.0": {"failed": "GPU is lost"}}
    channels = {
        "probe": {"gpu": {"devices": gpu}},
        "bmc": {"firmware": {"BMC": {"value": "1.2"}, "BIOS": {"failed": "x"}}},
    }
    digest = context.evidence.put(Evidence(NODE, AT, channels))
    fault = {"fault": "f1", "class": "gpu.xid.79"}
    context.ledger.append(Entry("f1", AT.isoformat(), "fault", NODE, fault))
    outcome = Outcome(
        "suites/x.py::test_y", f"h100-a/{NODE}", NODE, "fail", "7 of 8", evidence=digest, evidence_at=AT.isoformat()
    )
    context.ledger.record(Run("r1", AT.isoformat()), [outcome])
    assert dossier.verify(context, intent).done is False

    dossier.run(context, intent)

    proof = dossier.verify(context, intent)
    assert proof.done
    written = json.loads((room.root / proof.facts["path"]).read_text())
    assert written["node"]["serial"] == room.fleet.nodes[NODE].serial
    assert written["parts"] == {"gpu 0000:1b:00.0": "1650923001"}
    assert written["firmware"] == {"BMC": "1.2"}
    assert written["faults"] == [fault]
    assert [one["reason"] for one in written["failing"]] == ["7 of 8"]
    assert written["evidence"][digest]["channels"] == channels


def test_a_file_that_is_something_else_is_no_dossier(room: Room):
    context, intent = room.context(), wish("dossier", NODE)
    dossier.run(context, intent)
    place = dossier.path(context, intent)
    place.write_text('{"schema": "assay.dossier/1", "effect": "another"}')

    assert dossier.verify(context, intent).done is False
