"""Redfish log entries in a file: a collection, one entry a line, none at all, and what only points to entries."""

from __future__ import annotations

import json

import pytest

from assay.cli.verbs.faults import classify_log
from assay.model.errors import AssayError
from assay.model.facts import to_json

ID = "/redfish/v1/Systems/1/LogServices/SEL/Entries"
ENTRIES = [
    {
        "@odata.id": f"{ID}/{number}",
        "@odata.type": "#LogEntry.v1_15_0.LogEntry",
        "Id": str(number),
        "Created": f"2026-03-12T04:1{number}:02+00:00",
        "Severity": severity,
        "Message": message,
    }
    for number, (severity, message) in enumerate([("Critical", "Power supply 1 failure"), ("OK", "A service started")])
]
LOG = {"@odata.id": ID, "@odata.type": "#LogEntryCollection.LogEntryCollection", "Members": ENTRIES}
LINES = "".join(f"{json.dumps(entry)}\n" for entry in ENTRIES)


@pytest.mark.parametrize(
    "text", [json.dumps(LOG), json.dumps(LOG, indent=1), json.dumps(ENTRIES), LINES, LINES.replace("\n", "\r\n\r\n")]
)
def test_entries_are_read_in_every_layout(text, tmp_path, catalog):
    (tmp_path / "log").write_text(text)
    document = to_json(classify_log(str(tmp_path / "log"), catalog))
    assert [(one["fault"], one["first"]) for one in document["faults"]] == [
        ("bmc.event.power-supply", "2026-03-12T04:10:02+00:00")
    ]
    assert (document["lines"], document["unread"]) == (2, 0)


@pytest.mark.parametrize("text", [json.dumps({**LOG, "Members": []}), "SEL has no entries\n"])
def test_an_empty_log_is_no_fault(text, tmp_path, catalog):
    (tmp_path / "log").write_text(text)
    document = to_json(classify_log(str(tmp_path / "log"), catalog))
    assert (document["faults"], document["lines"], document["uncounted"]) == ([], 1, "")


@pytest.mark.parametrize(
    "document",
    [
        {**LOG, "Members": [{"@odata.id": f"{ID}/1"}]},
        {"@odata.id": "/redfish/v1/Chassis", "@odata.type": "#ChassisCollection.ChassisCollection", "Members": []},
    ],
    ids=["links alone", "no log"],
)
def test_what_holds_no_entry_is_refused(document, tmp_path, catalog):
    (tmp_path / "log").write_text(json.dumps(document))
    with pytest.raises(AssayError, match="no log that I can read"):
        to_json(classify_log(str(tmp_path / "log"), catalog))
