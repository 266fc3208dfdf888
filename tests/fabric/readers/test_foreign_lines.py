"""A pasted prompt or a cut end in a tool's text is told, and never makes a fabric look other than it is."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.compiler import compile_topology
from assay.fabric.learn.draft import DraftCable, draft_from_discovery
from assay.fabric.readers.format_detection import read_topology
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.fabric.fabric_design import FabricDesign

RECORDINGS = Path(__file__).parent / "recordings"
FILES = (
    "ibnetdiscover.txt", "ibnetdiscover-f.txt", "ibnetdiscover-p.txt", "iblinkinfo.txt", "iblinkinfo-grouped.txt",
    "db_csv.txt", "ufm_ports.json",
)  # fmt: skip
FORMS = {file: (RECORDINGS / file).read_text() for file in FILES}
PASTED = (
    "admin@head:~$ tool > fabric.txt", "[root@head ~]# tool", "Last login: Mon Nov 23 08:12:45 2026 from 10.1.2.3",
    "^C", "(base) ops@mgmt01 % ", "PS C:\\Users\\ops> type fabric.txt", "-- more --",
)  # fmt: skip


def plan_of(text):
    """The design of the fabric in a text, with one more cable, which is lost."""
    draft = draft_from_discovery(read_topology(text), "x", {})
    leaf = next(one for one in draft.devices if one.guid.endswith("1010"))
    draft.cables.append(DraftCable(f"{leaf.guid}/2", "0xb83f000000002000/8"))
    draft.devices = [replace(one, ports=8) if one.kind == "switch" else one for one in draft.devices]
    return compile_topology(FabricDesign.model_validate(yaml.safe_load(draft.as_yaml())), Fleet(Path(), {}))


PLANS = {name: plan_of(text) for name, text in FORMS.items()}
LOST = ["missing"]


def compared(name, text):
    found = compare_cabling(PLANS[name], read_topology(text))
    return found, [one.kind for one in found.discrepancies]


@pytest.mark.parametrize("name", FORMS)
def test_a_whole_text_has_the_lost_cable_and_no_remark(name):
    found, kinds = compared(name, FORMS[name])
    assert (found.verdict, kinds, found.remarks) == ("mismatch", LOST, ())


@pytest.mark.parametrize("pasted", PASTED)
@pytest.mark.parametrize("name", FORMS)
def test_lines_pasted_before_or_after_change_nothing_and_are_told(name, pasted):
    for text in (f"{pasted}\n{FORMS[name]}", f"{FORMS[name]}{pasted}\n", f"{pasted}\n{FORMS[name]}{pasted}"):
        found, kinds = compared(name, text)
        assert (found.verdict, kinds) == ("mismatch", LOST)
        assert len(found.notes) == text.count(pasted)


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=30)
@given(data=st.data())
def test_a_line_pasted_anywhere_is_told_and_nothing_is_invented(name, data):
    lines = FORMS[name].rstrip("\n").split("\n")
    at, pasted = data.draw(st.integers(0, len(lines))), data.draw(st.sampled_from(PASTED))
    found, kinds = compared(name, "\n".join([*lines[:at], pasted, *lines[at:]]) + "\n")
    assert found.remarks
    assert kinds in (LOST, [])
    assert kinds == LOST or (found.verdict, len(found.unknown)) == ("partial", 1), "nothing else is in doubt"


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=50)
@given(data=st.data())
def test_of_a_text_that_is_cut_off_only_what_was_read_is_judged(name, data):
    text = FORMS[name][: data.draw(st.integers(0, len(FORMS[name]) - 1))]
    pasted = data.draw(st.sampled_from(("", *(f"\n{line}\n" for line in PASTED))))
    try:
        found, kinds = compared(name, text + pasted)
    except AssayError:
        return
    assert kinds in ([], LOST)
    assert found.matching + len(found.unknown) + len(kinds) == found.expected


@pytest.mark.parametrize(
    "own",
    [
        'DR path slid 0; dlid 0; 0,1 -> new Switch {b83fd20300100180} portnum 0 lid 0-0 "leaf"\n',
        'DR path slid 0; dlid 0; 0,1,7 -> known Switch {b83fd20300100180} portnum 0 lid 0-0 ""\n',
        "\nChassis 1 (guid 0x2c90200423e88)\n",
        "\nNon-Chassis Nodes\n",
    ],
    ids=["-s new", "-s known", "-g chassis", "-g others"],
)
def test_what_options_of_ibnetdiscover_add_is_not_foreign(own):
    text = FORMS["ibnetdiscover.txt"]
    found = read_topology(own + text)
    assert (found.notes, found.problems) == ((), ())
    assert list(found.cables) == list(read_topology(text).cables)


def test_what_iblinkinfo_adds_with_p_is_read_over():
    text = FORMS["iblinkinfo.txt"]
    added = re.sub(r"(/ *[A-Za-z ]+\))==>", r"\1 (HOQ:0 VL_Stall:7)==>", text)
    assert added != text
    assert read_topology(added) == read_topology(text)
