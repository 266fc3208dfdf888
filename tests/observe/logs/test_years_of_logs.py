"""A time without a year has that of the time that stands around it, and else that in which the log was written."""

from __future__ import annotations

import json
import os

import pytest

from assay.cli.verbs.faults import classify_log
from assay.model.facts import to_json

XID = "NVRM: Xid (PCI:0000:3d:00): 79, pid=1, name=a, GPU has fallen off the bus."
LINE = f"Mar 11 08:29:23 n1 kernel: {XID}"
RULE = "_" * 44 + "\n"
AROUND = {
    "CloudWatch": json.dumps({"events": [{"timestamp": 1741681763751, "message": LINE}]}),
    "Google Cloud": json.dumps([{"textPayload": LINE, "timestamp": "2025-03-11T08:29:24Z"}]),
    "Splunk, JSON": json.dumps({"result": {"_raw": LINE, "_time": "2025-03-11T08:29:23+00:00", "host": "n1"}}),
    "Splunk, CSV": f'"_time","host","_raw"\n"2025-03-11T08:29:23.000+00:00","n1","{LINE}"',
    "a time before it": f"2025-03-11T08:29:24Z {LINE}",
    "bug report": f"{RULE}Start of NVIDIA bug report log file.\n\nDate: Tue Mar 11 09:45:00 UTC 2025\n{RULE}{LINE}",
}


@pytest.mark.parametrize("name", AROUND)
def test_the_year_is_that_of_the_time_around_it(name, tell):
    assert [one["first"] for one in tell(AROUND[name])["faults"]] == ["2025-03-11T08:29:23"]


@pytest.mark.parametrize(
    ("inner", "around", "told"),
    [
        ("Dec 31 23:59:59", "2025-01-01T00:00:05Z", "2024-12-31T23:59:59"),
        ("Jan  1 00:59:59", "2024-12-31T23:59:59Z", "2025-01-01T00:59:59"),
        ("Feb 29 08:00:00", "2024-02-29T08:00:01Z", "2024-02-29T08:00:00"),
    ],
)
def test_it_is_the_year_in_which_the_two_times_are_nearest(inner, around, told, tell):
    record = {"message": LINE.replace("Mar 11 08:29:23", inner), "timestamp": around}
    assert [one["first"] for one in tell(json.dumps(record))["faults"]] == [told]


def test_a_record_without_a_time_does_not_have_the_year_of_another(tmp_path, catalog):
    log = tmp_path / "log"
    log.write_text("\n".join(json.dumps(one) for one in ({"log": "x", "time": "2025-03-11T08:29:24Z"}, {"log": LINE})))
    os.utime(log, (1704067200 + 90 * 86400,) * 2)  # March 2024
    assert [one["first"] for one in to_json(classify_log(str(log), catalog))["faults"]] == ["2024-03-11T08:29:23"]
