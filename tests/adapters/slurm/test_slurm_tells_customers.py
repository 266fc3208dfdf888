"""With a real slurmctld: a node out of service has a notice for customers in its comment; what others wrote stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from assay.adapters.scheduler import NodeNotice, ShowsNotices
from assay.model.errors import AssayError
from tests.support.slurm_cluster import needs_slurm, said
from tests.support.slurm_room import adapter, by_hand

pytestmark = needs_slurm
LEFT = NodeNotice(in_service=False, text='The node left service: a "GPU" no longer answers.\nBack: not known yet.')
BACK = NodeNotice(in_service=True, text="The node is in service.")
WORDS = "assay: for customers: The node left service: a 'GPU' no longer answers. Back: not known yet. #"


def field(name: str, key: str = "comment") -> str:
    """Return a field of a node, as programs of customers read it."""
    (node,) = [one for one in json.loads(said("sinfo", "--json"))["nodes"] if one["name"] == name]
    return str(node[key] or "").strip('"')


def tell(notice: NodeNotice, name: str, **more: Any) -> dict[str, str]:
    """Show a notice, and return what a reading finds missing."""
    adapter(**more).show_notices({name: notice})
    return adapter(**more).find_missing_notices({name: notice})


def test_a_node_out_of_service_has_a_notice_until_it_is_back(node: str):
    assert isinstance(adapter(), ShowsNotices)
    assert adapter().find_missing_notices({node: LEFT}) == {node: "the node's comment is empty"}
    assert tell(LEFT, node) == {}
    assert field(node).startswith(WORDS)
    assert adapter().find_missing_notices({node: BACK}) == {node: "the node's comment still has an earlier notice"}
    assert tell(NodeNotice(in_service=False, text="Back: by noon."), node) == {}
    assert field(node).startswith("assay: for customers: Back: by noon. #")
    assert tell(BACK, node) == {}
    assert field(node) == ""


def test_a_node_in_service_has_a_notice_of_planned_work_until_there_is_none(node: str):
    planned = NodeNotice(in_service=True, text="Planned: reboot from 2026-12-24 08:00 UTC: a new kernel")
    assert tell(planned, node) == {}
    assert field(node).startswith("assay: for customers: Planned: reboot from 2026-12-24 08:00 UTC: a new kernel #")
    assert adapter().read_statuses([node])[node].cordon == "", "it is no cordon"
    assert tell(NodeNotice(in_service=True, text="The node is in service, and no work is planned on it."), node) == {}
    assert field(node) == ""


def test_a_notice_is_written_once(node: str, monkeypatch: pytest.MonkeyPatch):
    tell(LEFT, node)
    orders: list[str] = []
    scheduler = adapter()
    monkeypatch.setattr(type(scheduler.client), "run_scontrol", lambda _, given: orders.extend(given))
    scheduler.show_notices({node: LEFT})
    assert orders == []


@pytest.mark.parametrize(
    "theirs", ["bob: spare fans in the drawer", "assay: by hand", "assay: for customers: soon #0000"]
)
def test_somebody_elses_comment_stays_and_is_said(node: str, theirs: str):
    by_hand(node, comment=theirs)
    assert tell(LEFT, node) == {node: "the node's comment is used by somebody else"}
    assert tell(BACK, node) == {}
    assert field(node) == theirs


def test_a_notice_that_somebody_changed_is_theirs(node: str):
    tell(LEFT, node)
    mine = f"{field(node)} bob: I look after it"
    by_hand(node, comment=mine)
    tell(BACK, node)
    assert field(node) == mine


def test_a_notice_and_the_reason_of_a_reservation_are_apart(node: str):
    scheduler = adapter(slurm_cordon="reservation")
    scheduler.cordon(node, "gpu.missing on gpu3")
    assert tell(LEFT, node, slurm_cordon="reservation") == {}
    assert field(node, "extra").startswith(WORDS)
    assert scheduler.read_cordon_reason(node) == "assay: gpu.missing on gpu3"
    assert tell(BACK, node, slurm_cordon="reservation") == {}
    scheduler.uncordon(node)
    assert (field(node, "extra"), field(node)) == ("", "")


def test_a_notice_is_no_cordon_and_asks_for_no_reservations(node: str, monkeypatch: pytest.MonkeyPatch):
    tell(LEFT, node)
    scheduler = adapter()
    asked: list[Any] = []
    monkeypatch.setattr(type(scheduler.client), "read_lines", lambda _, *command: asked.append(command) or [])
    assert scheduler.read_statuses([node])[node].cordon == ""
    assert asked == []


def test_nodes_that_slurm_does_not_know_hold_up_no_other(take: Callable[[], str]):
    name = take()
    notices = {"n9999": LEFT, name: LEFT}
    adapter().show_notices(notices)
    assert adapter().find_missing_notices(notices) == {"n9999": "Slurm does not know this node"}
    assert field(name).startswith(WORDS)


def test_a_slurm_that_does_not_answer_is_an_error(tmp_path: Any):
    with pytest.raises(AssayError):
        adapter(slurm_conf=str(tmp_path / "nowhere.conf")).find_missing_notices({"n0001": LEFT})
