"""The forwarding tables that tools print are read, and one that is not whole is left out and named."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from assay.fabric.readers.forwarding_tables import ForwardingEntry, ForwardingTable, read_forwarding_tables

SWITCHES = [f"0x{0xB0 + n:016x}" for n in range(2)]
TABLES = [
    ForwardingTable(switch, tuple(ForwardingEntry(lid, lid + n, f"0x{0xA0 + lid:016x}", "h mlx5_0") for lid in (2, 3)))
    for n, switch in enumerate(SWITCHES)
]
CUT_OFF, TWICE = f"of {SWITCHES[1]} was cut off", f"of {SWITCHES[0]} stands twice"
UNREADABLE = f"of {SWITCHES[0]} has line 2, which cannot be read: "


def dump_fts() -> Iterator[str]:
    yield "Multicast mlids [0xc000] of switch guid 0xb000000000000040"
    yield "0xc000 1 : (Channel Adapter portguid 0xa0: 'of no table')"
    yield from dump_unicast()


def dump_unicast() -> Iterator[str]:
    for table in TABLES:
        yield f"Unicast lids [0x0-0x8] of switch DR path guid {table.switch} (s):"
        for one in table.entries:
            yield f"0x{one.lid:04x} {one.port:03} : (Channel Adapter portguid {one.guid}: '{one.name}')"
        yield f"{len(table.entries)} valid lids dumped "


def dump_of_opensm() -> Iterator[str]:
    for line in dump_unicast():
        yield line.replace(" : (", " # ").replace("')", "'").replace("DR path guid", "Lid 9 guid")


@pytest.mark.parametrize("tool", [dump_fts, dump_of_opensm])
def test_each_table_is_read_as_the_tools_print_it(tool: Callable[[], Iterator[str]]) -> None:
    found = read_forwarding_tables("\n".join(tool()) + "\n")
    assert (found.tables, found.problems) == (TABLES, [])


@pytest.mark.parametrize(
    ("change", "kept", "said"),
    [
        (lambda lines: lines[:-1], TABLES[:1], CUT_OFF),
        (lambda lines: lines[:4] * 2 + lines[4:], TABLES[1:], TWICE),
        (lambda lines: [lines[0], lines[1].replace(" 002 : ", " "), *lines[2:]], TABLES[1:], UNREADABLE),
    ],
)
def test_a_table_that_is_not_whole_is_left_out_and_named(
    change: Callable[[list[str]], list[str]], kept: list[ForwardingTable], said: str
) -> None:
    found = read_forwarding_tables("\n".join(change(list(dump_unicast()))) + "\n")
    assert found.tables == kept
    assert [problem.startswith(f"the forwarding table {said}") for problem in found.problems] == [True]


def test_a_text_without_tables_gives_none() -> None:
    assert read_forwarding_tables("Multicast mlids [0xc000] of switch guid 0xb000000000000040\n") == ([], [])
