"""A document in JSON is read whole, also where it is one long line; one that is too long is refused with the bound."""

from __future__ import annotations

import json

import pytest

from assay.cli.verbs.faults import classify_log
from assay.model.errors import AssayError
from assay.model.facts import to_json
from assay.observe.logs import kernel_log_search, record_forms
from assay.observe.logs.log_form import MAX_DOCUMENT_BYTES

XID = "NVRM: Xid (PCI:0000:3d:00): 79, pid=1, name=a, GPU has fallen off the bus."
EVENTS = [
    *({"timestamp": 1741681763000 + i, "message": f"usb 1-{i}: reset {'x' * 500}"} for i in range(2000)),
    {"timestamp": 1741690000000, "message": XID},
]
ONE_LINE = {
    "CloudWatch": {"events": EVENTS},
    "Google Cloud": [{"timestamp": "2025-03-11T08:29:23Z", "textPayload": one["message"]} for one in EVENTS],
    "Docker, long": {"pad": "z" * 1_500_000, "log": XID, "time": "2025-03-11T09:38:53Z"},
}


@pytest.mark.parametrize("name", ONE_LINE)
def test_a_document_of_one_long_line_is_read_to_its_end(name, tell):
    text = json.dumps(ONE_LINE[name])
    assert kernel_log_search.MAX_LINE_BYTES < len(text) < MAX_DOCUMENT_BYTES
    assert ("gpu.xid.79", "0000:3d:00") in tell(text)["by"]


@pytest.mark.parametrize("indent", [None, 1])
def test_one_that_is_too_long_is_refused_with_the_bound(indent, tmp_path, catalog, monkeypatch):
    for module in (record_forms, kernel_log_search):
        monkeypatch.setattr(module, "MAX_DOCUMENT_BYTES", 400_000)
    (tmp_path / "log").write_text(json.dumps({"events": EVENTS}, indent=indent))
    with pytest.raises(AssayError, match=r"holds a document in JSON of more than 64 MiB.*\n.*one record a line"):
        to_json(classify_log(str(tmp_path / "log"), catalog))
