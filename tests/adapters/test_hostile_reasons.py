"""Whatever a reason holds, an order for scontrol is one line, and the text in its quotes is one printable line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.adapters.scheduler import NodeNotice
from assay.adapters.slurm.client import SlurmNode
from assay.adapters.slurm.cordon import make_drain_orders, make_notice_orders, make_reservation_orders
from assay.model.cordon_ownership import is_untampered, tag_reason
from assay.model.text.safe_text import escape_line
from assay.node.agent import slurm_hook

HOSTILE = '"\x1b]0;owned\x07\x1b[2K\x9b1A\u202egnol\u2066\u2028\r\nupdate nodename=ALL state=resume\x00\\"'
REASONS = st.text() | st.just(HOSTILE)
ORDER = re.compile(r'(?:update nodename=n1 (?:state=drain reason|comment)="([^"]*)"|create reservationname=[^"]*)')


def slurm_node() -> SlurmNode:
    return SlurmNode.model_validate({"name": "n1", "state": ["IDLE"]})


@given(REASONS)
def test_an_order_is_one_line_and_one_order(reason: str) -> None:
    node = slurm_node()
    notices = {"n1": NodeNotice(in_service=False, text=reason, move="a1")}
    orders = [
        *make_drain_orders([(node, reason)]),
        *make_reservation_orders([(node, reason)]),
        *make_notice_orders({"n1": node}, notices, "comment"),
    ]
    assert len(orders) == 4
    for order in orders:
        found = ORDER.fullmatch(order)
        assert found, order
        assert order == escape_line(order)
        assert found[1] is None or is_untampered(found[1])


@given(REASONS)
def test_a_tagged_reason_is_printable_and_stays_ours(reason: str) -> None:
    tagged = tag_reason(reason)
    assert tagged == escape_line(tagged)
    assert is_untampered(tagged)


def test_the_log_of_a_hook_has_a_line_for_each_finding(capsys: pytest.CaptureFixture[str]) -> None:
    slurm_hook._write_log("", "prolog", [HOSTILE])
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.strip() == escape_line(said.strip())
