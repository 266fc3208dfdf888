"""A pasted prompt or a cut end in a sheet or a topology file is told, and makes no cable other than it is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.drafts.sheets.point_to_point_sheet import read_sheet
from assay.fabric.drafts.sheets.sheet_import import SheetImport
from assay.fabric.drafts.sheets.topology_file import is_topology_file, read_topology_file
from assay.model.errors import AssayError
from assay.model.fleet import Fleet

PASTED = (
    "admin@head:~$ cat sheet.csv", "[root@head ~]# cat sheet.csv", "Last login: Mon Nov 23 08:12:45 2026 from 10.1.2.3",
    "^C", "(base) ops@mgmt01 % ", "PS C:\\Users\\ops> type sheet.csv", "-- more --", "Connection to ufm01, closed.",
)  # fmt: skip
NODES = [f"r1,{n},n{n:03},1/{n},r9,20,leaf-1,{n}/1" for n in range(1, 7)]
SHEETS = {
    "cable validation": ["Rack,U,Name,HCA/Port,Rack,U,Name,Port", *NODES],
    "without a header": NODES,
    "network design": ["#StartDevice,StartPort,EndDevice,EndPort,LinkType",
                       *(f"leaf-1,{n}/1,spine-1,{n + 10}/2,NDR" for n in range(1, 7))],
    "topology": ["MQM9700 leaf-1", *(f"   P{n} -4x-100G-> MQM9700 spine-1 P{n + 10}" for n in range(1, 7)),
                 "MQM9700 leaf-2 CFG: M1=X", *(f"   P{n} -4x-100G-> MQM9700 spine-1 P{n + 20}" for n in range(1, 7))],
}  # fmt: skip


def read(text):
    return read_topology_file(text) if is_topology_file(text) else read_sheet(text)


def cables(sheet):
    return [(cable.a, cable.b, cable.rate) for cable in sheet.cables]


@pytest.mark.parametrize("pasted", PASTED)
@pytest.mark.parametrize("name", SHEETS)
def test_a_line_pasted_anywhere_changes_no_cable_and_is_told(name, pasted):
    lines = SHEETS[name]
    above = 1 if name in ("cable validation", "network design") else 0  # titles may stand above the header
    for at in range(above, len(lines) + 1):
        if name == "without a header" and not at:
            with pytest.raises(AssayError, match="no line names the columns"):
                read("\n".join([pasted, *lines, ""]))
            continue
        sheet = read("\n".join([*lines[:at], pasted, *lines[at:], ""]))
        assert cables(sheet) == cables(read("\n".join([*lines, ""])))
        assert [line for line, _ in sheet.problems] == [at + 1]


@given(st.sampled_from(sorted(SHEETS)), st.data())
def test_a_text_that_is_cut_off_says_so_or_lacks_whole_lines_only(name, data):
    text = "\n".join([*SHEETS[name], ""])
    part = text[: data.draw(st.integers(1, len(text) - 1))]
    try:
        sheet = read(part)
    except AssayError:
        return
    whole = cables(read(text))
    assert sheet.remarks or cables(sheet) == whole[: len(sheet.cables)]
    assert bool(sheet.remarks) == (not part.endswith("\n"))


def test_a_draft_says_that_the_last_line_has_no_end():
    draft = SheetImport(read("\n".join(SHEETS["network design"])), Fleet(Path(), {})).draft("x")
    assert draft.review[0].startswith("the last line has no end: was the file cut off after")
