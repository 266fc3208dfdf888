"""Who held a place: a new interval begins with another part, version or rack, and after a repair; with nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.decide.state.asset_history import (
    PART_HOLDERS,
    AssetReading,
    InstalledPart,
    NodeSetup,
    PartHolder,
    list_part_holders,
    make_asset_entries,
    make_removed_entries,
    make_setup_entry,
    project_node_assets,
    project_node_setup,
)
from assay.model.entries.node_entries import CertifiedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time

START = datetime(2026, 11, 1, tzinfo=UTC)
SETUP = NodeSetup("lab/r1", 4, "h100", "order-7", {"driver": "570.1", "gpu0": "96.1"}, {"gpu0": "H100", "gpu1": "H100"})


class Site:
    """Looks at nodes, an hour apart."""

    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []
        self.hour = 0

    def looks(self, node: str, setup: NodeSetup = SETUP, **parts: str) -> None:
        at, self.hour = START + timedelta(hours=self.hour), self.hour + 1
        mine = [entry for entry in self.entries if entry.node == node]
        reading = AssetReading(node, {"bmc": f"S-{node}"}, {k: InstalledPart("gpu", v) for k, v in parts.items()})
        seen = make_asset_entries(project_node_assets(mine), reading, at)
        holders = PART_HOLDERS.fold(self.entries)
        gone = [one for entry in seen for one in make_removed_entries(entry, holders, at)]
        changed = make_setup_entry(project_node_setup(mine), setup, node, at)
        self.entries += [*seen, *gone, *([changed] if changed else [])]

    def certifies(self, node: str) -> None:
        at, self.hour = START + timedelta(hours=self.hour), self.hour + 1
        self.entries.append(CertifiedEntry("ann", "reseated").make_entry(f"c{self.hour}", format_time(at), node))

    def of(self, node: str, place: str) -> list[PartHolder]:
        mine = [entry for entry in self.entries if entry.node == node]
        return [one for one in list_part_holders(node, mine) if one.place == place]


def hour(at: str) -> int | None:
    return int((datetime.fromisoformat(at) - START) / timedelta(hours=1)) if at else None


def spans(holders: list[PartHolder]) -> list[tuple[str, int | None, int | None]]:
    return [(one.serial, hour(one.since), hour(one.until)) for one in holders]


def test_the_same_look_twice_is_one_interval():
    site = Site()
    site.looks("n1", gpu0="A", gpu1="B")
    site.looks("n1", gpu0="A", gpu1="B")
    assert len(site.entries) == 2
    (one,) = site.of("n1", "gpu0")
    assert one == PartHolder(
        "n1", "gpu0", "gpu", "A", "H100", "order-7", "96.1, driver 570.1", "lab/r1", "gpu0", one.since, driver="570.1"
    )
    (node,) = site.of("n1", "")
    assert (node.kind, node.serial, node.sku, node.position) == ("node", "S-n1", "h100", "u4")


def test_an_exchanged_part_ends_its_interval_and_its_delivery_is_not_the_nodes():
    site = Site()
    site.looks("n1", gpu0="A", gpu1="B")
    site.looks("n1", gpu0="C", gpu1="B")
    assert spans(site.of("n1", "gpu0")) == [("A", 0, 1), ("C", 1, None)]
    assert [one.batch for one in site.of("n1", "gpu0")] == ["order-7", ""]
    assert spans(site.of("n1", "gpu1")) == [("B", 0, None)]


def test_a_part_that_moves_to_another_node_leaves_its_place():
    site = Site()
    site.looks("n1", gpu0="A")
    site.looks("n2", gpu0="B", gpu1="A")
    assert spans(site.of("n1", "gpu0")) == [("A", 0, 1)]
    assert spans(site.of("n2", "gpu1")) == [("A", 1, None)]
    site.looks("n1", gpu0="D")
    assert spans(site.of("n1", "gpu0")) == [("A", 0, 1), ("D", 2, None)]


def test_new_versions_begin_an_interval_of_the_same_part():
    site = Site()
    site.looks("n1", gpu0="A", gpu1="B")
    site.looks("n1", NodeSetup("lab/r1", 4, "h100", "order-7", {"driver": "580.2"}), gpu0="A", gpu1="B")
    assert spans(site.of("n1", "gpu1")) == [("B", 0, 1), ("B", 1, None)]
    assert [one.firmware for one in site.of("n1", "gpu0")] == ["96.1, driver 570.1", "96.1, driver 580.2"]


def test_a_repair_by_people_begins_an_interval_of_everything_in_the_node():
    site = Site()
    site.looks("n1", gpu0="A")
    site.looks("n2", gpu0="B")
    site.certifies("n1")
    assert spans(site.of("n1", "gpu0")) == [("A", 0, 2), ("A", 2, None)]
    assert spans(site.of("n2", "gpu0")) == [("B", 1, None)]


def test_what_could_not_be_read_changes_nothing():
    site = Site()
    site.looks("n1", gpu0="A", gpu1="B")
    site.looks("n1", NodeSetup("lab/r1", 4, "h100", "order-7"), gpu0="A")
    assert len(site.entries) == 2
    assert spans(site.of("n1", "gpu1")) == [("B", 0, None)]


def test_a_delivery_that_is_declared_later_begins_no_interval():
    site = Site()
    site.looks("n1", NodeSetup("lab/r1", 4, "h100", ""), gpu0="A")
    site.looks("n1", NodeSetup("lab/r1", 4, "h100", "order-7"), gpu0="A")
    (one,) = site.of("n1", "gpu0")
    assert (one.serial, hour(one.since), one.batch) == ("A", 0, "order-7")


def test_another_rack_begins_an_interval():
    site = Site()
    site.looks("n1", gpu0="A")
    site.looks("n1", NodeSetup("lab/r2", 9, "h100", "order-7"), gpu0="A")
    assert [(one.rack, hour(one.since)) for one in site.of("n1", "gpu0")] == [("lab/r1", 0), ("lab/r2", 1)]
    assert [one.position for one in site.of("n1", "")] == ["u4", "u9"]


LOOK = st.tuples(
    st.sampled_from(["n1", "n2"]), st.dictionaries(st.sampled_from(["gpu0", "gpu1"]), st.sampled_from("AB"))
)


@given(st.lists(st.one_of(LOOK, st.sampled_from(["n1", "n2"])), max_size=12))
@settings(deadline=None)
def test_the_intervals_of_a_place_follow_one_another(events):
    site = Site()
    for event in events:
        if isinstance(event, str):
            site.certifies(event)
        else:
            site.looks(event[0], **event[1])
    for node in ("n1", "n2"):
        for place in ("", "gpu0", "gpu1"):
            found = site.of(node, place)
            assert all(one.until for one in found[:-1])
            for before, after in pairwise(found):
                assert before.since < before.until <= after.since
