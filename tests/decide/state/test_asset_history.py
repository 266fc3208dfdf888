"""A place keeps its history, a part takes its own along: replacements are told once, what was sent back is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from assay.decide.state.asset_history import (
    PART_HOLDERS,
    SENT_BACK_PARTS,
    AssetReading,
    InstalledPart,
    list_serial_stays,
    make_asset_entries,
    make_removed_entries,
    make_returned_entries,
    project_node_assets,
)
from assay.model.ledger_entry import LedgerEntry
from assay.observe.evidence_contents import clean_serial

START = datetime(2026, 11, 1, tzinfo=UTC)
NODES = ("n1", "n2", "n3")
PLACES = ("gpu0", "gpu1", "gpu2")


class History:
    """Looks and lines, an hour apart."""

    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []

    @property
    def now(self) -> datetime:
        return START + timedelta(hours=len(self.entries))

    def of(self, node: str) -> list[LedgerEntry]:
        return [entry for entry in self.entries if entry.node == node]

    def looks(self, node: str, **told: object) -> list[str]:
        """Look at a node: `inventory`, `bmc` and `dmi` are its serial number, other names are places."""
        sources = {name: str(told.pop(name)) for name in ("inventory", "bmc", "dmi") if name in told}
        pieces = {
            place: one if isinstance(one, InstalledPart) else InstalledPart("gpu", str(one))
            for place, one in told.items()
        }
        found = make_asset_entries(project_node_assets(self.of(node)), AssetReading(node, sources, pieces), self.now)
        sent, holders = SENT_BACK_PARTS.fold(self.entries), PART_HOLDERS.fold(self.entries)
        seen = [entry for entry in found if entry.kind == "parts.seen"]
        found += [line for entry in seen for line in make_returned_entries(entry, sent, self.now)]
        self.entries += [*found, *(line for entry in seen for line in make_removed_entries(entry, holders, self.now))]
        return [entry.kind for entry in found]

    def sends(self, node: str, place: str, serial: str, kind: str = "gpu") -> None:
        suspect = {"kind": kind, "place": place, "serial": serial, "faults": ["gpu.xid.79"]}
        body = {"effect": f"x{len(self.entries)}", "action": "dossier", "before": {"suspects": [suspect]}}
        self.entries.append(LedgerEntry(f"i{len(self.entries)}", self.now.isoformat(), "effect.intent", node, body))

    def comes_back(self, node: str) -> None:
        line = LedgerEntry(
            f"t{len(self.entries)}", self.now.isoformat(), "transition", node, {"from": "rma", "to": "onboard"}
        )
        self.entries.append(line)

    def where(self, serial: str) -> list[tuple[str, str, bool]]:
        told = [entry for entry in self.entries if entry.kind in ("parts.seen", "part.replaced")]
        return [(stay["node"], stay["place"], not stay["until"]) for stay in list_serial_stays(told, serial)]


def test_what_is_seen_again_is_told_once():
    history = History()
    assert history.looks("n1", inventory="S1", bmc="S1", gpu0="A", gpu1="B") == ["parts.seen"]
    assert history.looks("n1", inventory="S1", bmc="S1", gpu0="A", gpu1="B") == []
    assert history.looks("n1", inventory="S1", gpu1="B") == [], "a GPU that does not answer has not gone anywhere"
    assert history.looks("n1", inventory="S1", gpu0="A", gpu1="C") == ["parts.seen"]
    assert history.entries[-1].body["parts"] == {"gpu1": {"kind": "gpu", "serial": "C", "was": "B"}}


def test_a_node_that_is_replaced_is_told_once_whoever_notices_first():
    for first, second in (("inventory", "bmc"), ("bmc", "inventory"), ("dmi", "bmc")):
        history = History()
        history.looks("n1", inventory="S1", bmc="S1", dmi="S1")
        assert "part.replaced" in history.looks("n1", **{first: "S2"})
        body = history.entries[-1].body
        assert (body["old_serial"], body["new_serial"], body["who"]) == ("S1", "S2", first)
        assert "part.replaced" not in history.looks("n1", **{second: "S2"})
        assert "part.replaced" not in history.looks("n1", inventory="S2", bmc="S2", dmi="S2")
        assert "part.replaced" in history.looks("n1", bmc="S3"), "and the next replacement is another"


def test_the_old_node_put_back_is_a_replacement_too():
    history = History()
    history.looks("n1", inventory="S1", bmc="S1")
    history.looks("n1", inventory="S1", bmc="S2")
    assert "part.replaced" in history.looks("n1", inventory="S1", bmc="S1")
    assert history.entries[-1].body["old_serial"] == "S2"
    assert len({entry.id for entry in history.entries}) == len(history.entries)


def test_a_chassis_that_has_another_number_than_the_board_is_no_replacement():
    history = History()
    history.looks("n1", inventory="N1", bmc="C1", dmi="B1")
    assert history.looks("n1", inventory="N1", bmc="C1", dmi="B1") == []
    assert history.looks("n1", inventory="N1", bmc="C2", dmi="B2").count("part.replaced") == 1
    assert "part.replaced" not in history.looks("n1", inventory="N2", bmc="C2", dmi="B2")


def test_an_inventory_that_is_corrected_replaces_nothing():
    history = History()
    history.looks("n1", inventory="S1x", bmc="S1")
    assert "part.replaced" not in history.looks("n1", inventory="S1", bmc="S1")


def test_drives_that_the_kernel_only_names_anew_are_no_news():
    history = History()
    one, other, third = (InstalledPart("nvme", serial) for serial in ("D1AA", "D2AA", "D3AA"))
    history.looks("n1", nvme0=one, nvme1=other)
    assert history.looks("n1", nvme0=other, nvme1=one) == []
    assert history.looks("n1", nvme0=other, nvme1=third) == ["parts.seen"]


def test_a_part_that_was_sent_back_is_known_wherever_it_turns_up():
    history = History()
    history.looks("n1", gpu0="A", gpu1="B")
    history.sends("n1", "gpu0", "A")
    assert history.looks("n1", gpu0="A", gpu1="B") == [], "still in the node that is away"
    history.comes_back("n1")
    history.looks("n1", gpu0="C", gpu1="B")
    assert [entry for entry in history.entries if entry.kind == "part.returned"] == []
    assert history.looks("n2", gpu5="A") == ["parts.seen", "part.returned"]
    body = history.entries[-1].body
    assert (body["serial"], body["place"], body["from"], body["from_place"]) == ("A", "gpu5", "n1", "gpu0")
    assert body["faults"] == ["gpu.xid.79"]
    assert history.looks("n2", gpu5="A") == []


def test_a_node_that_comes_back_with_the_same_part_is_told_so_even_when_that_part_answers_late():
    history = History()
    history.looks("n1", gpu0="A", gpu1="B")
    history.sends("n1", "gpu0", "A")
    history.comes_back("n1")
    assert history.looks("n1", gpu1="B") == ["parts.seen"]
    assert history.looks("n1", gpu0="A", gpu1="B") == ["parts.seen", "part.returned"]
    assert history.looks("n1", gpu0="A", gpu1="B") == []


def test_a_whole_node_is_known_by_its_own_serial():
    history = History()
    history.looks("n1", bmc="S1")
    history.sends("n1", "", "S1", kind="node")
    history.comes_back("n1")
    assert "part.returned" in history.looks("n3", bmc="S1")


def test_where_a_part_was_is_told_from_place_to_place():
    history = History()
    history.looks("n1", bmc="S1", gpu0="A")
    history.looks("n1", bmc="S1", gpu0="B")
    history.looks("n2", bmc="S2", gpu1="A")
    assert history.where("A") == [("n1", "gpu0", False), ("n2", "gpu1", True)]
    history.looks("n2", bmc="S9", gpu1="A")
    assert history.where("S2") == [("n2", "", False)]


STEPS = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(PLACES), st.sampled_from("ABCDE"), st.integers(0, 7)), max_size=40
)


@given(STEPS)
def test_whatever_is_moved_the_ledger_knows_where_each_part_was_last_seen(steps):
    history, world = History(), {node: dict[str, str]() for node in NODES}
    last: dict[str, tuple[str, str]] = {}
    for node, place, serial, unread in steps:
        for others in world.values():
            for there in [one for one, known in others.items() if known == serial]:
                del others[there]
        world[node][place] = serial
        seen = {one: known for number, (one, known) in enumerate(world[node].items()) if not unread >> number & 1}
        history.looks(node, **seen)
        assert history.looks(node, **seen) == [], "the same look twice adds nothing"
        last |= {known: (node, one) for one, known in seen.items()}
    for serial, (node, place) in last.items():
        assert history.where(serial)[-1][:2] == (node, place)
    assert len({entry.id for entry in history.entries}) == len(history.entries)


@given(st.text(max_size=12) | st.integers() | st.none() | st.booleans())
def test_what_is_no_serial_number_is_never_one(said):
    serial = clean_serial(said)
    assert serial == "" or (len(serial) >= 4 and serial == str(said).strip())


def test_what_firmware_writes_where_there_is_none_is_not_recognised_on_every_node():
    for said in ("To Be Filled By O.E.M.", "0000000000", "N/A", "", "Default string", None, "0x0000000000000000"):
        assert clean_serial(said) == ""
