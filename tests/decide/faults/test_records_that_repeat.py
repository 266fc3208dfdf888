"""A record that says one message in two of its fields says it once; lines that are alike in one field are several."""

from __future__ import annotations

import json
from typing import Any

import pytest

X79 = "NVRM: Xid (PCI:0000:3d:00): 79, pid=1, name=a, GPU has fallen off the bus."
LINE = f"[  100.000000] {X79}"


def ansible(**hosts: dict[str, Any]) -> dict[str, Any]:
    return {"plays": [{"tasks": [{"task": {"name": "dmesg"}, "hosts": hosts}]}], "stats": {}}


def output(*lines: str) -> dict[str, Any]:
    return {"rc": 0, "stdout": "\n".join(lines), "stdout_lines": list(lines)}


@pytest.mark.parametrize(
    ("record", "lines"),
    [
        (ansible(n1=output(LINE)), 1),
        (ansible(n1=output(LINE, LINE)), 2),
        ({"results": [{"item": "n1", **output(LINE)}]}, 1),
        ({"results": [{"item": "n1", **output(X79, X79)}]}, 2),
        ({"message": X79, "event": {"original": f"Mar 11 08:00:00 n1 kernel: {X79}"}, "host": {"name": "n1"}}, 1),
        ({"log": f"{LINE}\n{LINE}\n", "stream": "stdout"}, 2),
        ({"events": [{"timestamp": 1741681763000, "message": X79}] * 2}, 2),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_lines_are_counted_as_often_as_the_field_that_has_them_most_often(record, lines, indent, tell):
    assert [one["lines"] for one in tell(json.dumps(record, indent=indent))["faults"]] == [lines]
