"""Documents that agents push: kept as evidence, found by whoever collects, and never taken for newer than they are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.reading import absent, value
from assay.model.specs.node_settings import make_node_settings
from assay.observe.evidence_collector import collect_evidence
from assay.observe.evidence_store import EvidenceStore
from assay.observe.transports.push import store_pushed_document

AT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
TREE = {"host": {"hostname": value("n1")}}


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    node = Node("n1", "p", "s", "r01", 1, "x", "spec", "managed", settings=make_node_settings({"transport": "push"}))
    return Fleet(tmp_path, {"n1": node})


@pytest.fixture
def store(tmp_path: Path) -> EvidenceStore:
    return EvidenceStore(tmp_path / "evidence")


def pushed(at: datetime = AT, node: str = "n1", after_entry: int | None = None, **channels: Any) -> dict[str, Any]:
    return EvidenceDocument(node, at, channels or {"probe": TREE}, after_entry).as_json()


def test_what_was_pushed_is_the_evidence_and_as_old_as_it_is(fleet: Fleet, store: EvidenceStore) -> None:
    digest = store_pushed_document(store, fleet, pushed())
    assert store.get(digest).channels == {"probe": TREE}
    (found,) = collect_evidence(fleet, ["n1"], clock=SystemClock(), store=store).values()
    assert found.channels == {"probe": TREE, "bmc": absent("no bmc_address is declared for n1")}
    assert found.at == AT


def test_a_time_in_the_future_does_not_make_evidence_newer_than_now(fleet: Fleet, store: EvidenceStore) -> None:
    ahead = datetime.now(UTC) + timedelta(days=1)
    store_pushed_document(store, fleet, pushed(at=ahead))
    (found,) = collect_evidence(fleet, ["n1"], clock=SystemClock(), store=store).values()
    assert found.at < ahead


def test_evidence_is_as_new_as_the_ledger_entry_that_its_agent_knew(fleet: Fleet, store: EvidenceStore) -> None:
    store_pushed_document(store, fleet, pushed(after_entry=12))
    (found,) = collect_evidence(fleet, ["n1"], clock=SystemClock(), store=store, after_entry=40).values()
    assert found.after_entry == 12


def test_a_clock_that_is_set_back_does_not_make_newer_readings_old(fleet: Fleet, store: EvidenceStore) -> None:
    store_pushed_document(store, fleet, pushed(after_entry=12))
    store_pushed_document(store, fleet, pushed(at=AT - timedelta(hours=3), after_entry=15))
    last = store.latest_pushed("n1")
    assert last is not None
    assert last.after_entry == 15


def test_nothing_pushed_is_no_answer(fleet: Fleet, store: EvidenceStore) -> None:
    (found,) = collect_evidence(fleet, ["n1"], clock=SystemClock(), store=store).values()
    assert found.channels["probe"] == {"failed": "the agent of n1 has pushed nothing yet"}


def test_one_that_only_pushes_takes_no_orders(fleet: Fleet, store: EvidenceStore) -> None:
    store_pushed_document(store, fleet, pushed())
    (found,) = collect_evidence(fleet, ["n1"], clock=SystemClock(), store=store, active={"n1": ["memory"]}).values()
    assert found.channels["active"] == {"failed": "n1 only pushes: nothing can be started there"}
    assert found.channels["probe"] == TREE


def test_a_document_that_comes_late_is_kept_but_is_not_the_last(fleet: Fleet, store: EvidenceStore) -> None:
    store_pushed_document(store, fleet, pushed())
    late = store_pushed_document(store, fleet, pushed(at=AT - timedelta(hours=1)))
    assert store.get(late).at == AT - timedelta(hours=1)
    last = store.latest_pushed("n1")
    assert last is not None
    assert last.at == AT
    assert store.latest("n1") is None


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "not an evidence document"),
        ({"schema": "assay.evidence/1", "node": "n1", "at": 7, "channels": {}}, "not an evidence document"),
        (pushed(node="n9"), "the inventory has no node n9"),
        (pushed(bmc={}), "the channel probe alone"),
        (pushed(at=datetime(2026, 1, 1)), "not a time with a time zone"),  # noqa: DTZ001  # what is refused
    ],
)
def test_what_is_no_evidence_of_a_known_node_is_refused(
    fleet: Fleet, store: EvidenceStore, document: dict[str, Any], said: str
) -> None:
    with pytest.raises(AssayError, match=said):
        store_pushed_document(store, fleet, document)
    assert not store.folder.exists()
