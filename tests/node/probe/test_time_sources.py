"""The probe reads the names of chrony's servers, and takes nothing else for one."""

from __future__ import annotations

import pytest

from assay.node.probe.host import parse_sources

SHOWN = """\
#,?,PPS0,0,4,377,13,-0.000000032,-0.000000032,0.000000111
^,*,ntp1.example,2,6,377,35,-0.000012,-0.000012,0.000345
^,+,pool.example,2,6,377,35,-0.000012,-0.000012,0.000345
^,+,pool.example,2,6,377,35,-0.000012,-0.000012,0.000345
"""


def test_each_server_is_named_once_and_a_local_clock_is_none():
    assert parse_sources(SHOWN) == {"value": ["ntp1.example", "pool.example"]}
    assert parse_sources("") == {"value": []}


@pytest.mark.parametrize("text", ["506 Cannot talk to daemon\n", "chronyc: invalid option -- 'N'\n"])
def test_another_answer_is_a_failed_reading(text: str):
    assert list(parse_sources(text)) == ["failed"]
