"""Reads firmware settings of HCAs and NICs with `mstconfig`: the value in force, and the one from the next boot on.

`mstconfig -e query` prints a table. Its columns depend on the firmware: `Default` and `Current` may be missing. A cell
without a value is `N/A`. Refusals are lines that begin with `-E-`. (Mellanox/mstflint, mlxconfig/mlxcfg_ui.cpp.)
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence

from assay.model.reading import ReadingTree, absent, failed, unsupported, value
from assay.node.probe.devices.pci import parse_pci_slot
from assay.node.probe.node_access import NodeRoot

TOOL = "mstconfig"
ALLOWED_S = 5.0
HEADING = "Configurations:"
COLUMNS = {"Default": "default", "Current": "current", "Next Boot": "next_boot"}
MARKS = ("*", "RO")  # differs from its default or present value; read only
NO_VALUE = "N/A"

Row = dict[str, str]


def read_adapter_settings(root: NodeRoot, asked: str) -> ReadingTree:
    """Return the `adapter_settings` branch: by place and name, `current` and `next_boot`.

    `asked` is `PLACE=NAME+NAME,…`; a place is a PCI address or the name of an interface.
    """
    ends_at = time.monotonic() + ALLOWED_S
    tree: ReadingTree = {}
    wanted: dict[str, list[str]] = {}
    addresses: dict[str, str] = {}
    for entry in filter(None, asked.split(",")):
        place, _, names = entry.partition("=")
        address = _find_address(root, place)
        if "value" in address:
            addresses[place], wanted[place] = address["value"], names.split("+")
        else:
            tree[place] = address
    answers = _ask(addresses, wanted, ends_at)
    # An adapter that does not know one of the names refuses all of them. Then it is asked for its whole table.
    refused = {place: addresses[place] for place, text in answers.items() if isinstance(text, str) and "-E-" in text}
    answers |= _ask(refused, {}, ends_at)
    for place, answer in answers.items():
        tree[place] = answer if isinstance(answer, dict) else parse_settings(answer, wanted[place])
    return tree


def _find_address(root: NodeRoot, place: str) -> ReadingTree:
    if ":" in place:
        return value(place)
    return root.read_leaf(f"/sys/class/net/{place}/device/uevent", parse_pci_slot)


def _ask(
    addresses: Mapping[str, str], names: Mapping[str, Sequence[str]], ends_at: float
) -> dict[str, str | ReadingTree]:
    """Return what mstconfig prints for each adapter, or why it prints nothing. It runs for all of them at once."""
    started: dict[str, subprocess.Popen[bytes]] = {}
    answers: dict[str, str | ReadingTree] = {}
    for place, address in addresses.items():
        try:
            started[place] = subprocess.Popen(
                [TOOL, "-d", address, "-e", "query", *names.get(place, ())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except FileNotFoundError:
            answers[place] = absent(f"{TOOL} is not installed")
        except OSError as error:
            answers[place] = failed(f"{TOOL} could not be started: {error.strerror}")
    for place, process in started.items():
        try:
            output, _ = process.communicate(timeout=max(0.0, ends_at - time.monotonic()))
            answers[place] = output.decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
            answers[place] = failed(f"{TOOL} did not end within {ALLOWED_S:g} s")
    return answers


def parse_settings(text: str, names: Iterable[str]) -> ReadingTree:
    """Return the readings of these settings from what `mstconfig -e query` printed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    start = next((number for number, line in enumerate(lines) if line.startswith(HEADING)), None)
    refusals = [line.removeprefix("-E-").strip() for line in lines if line.startswith("-E-")]
    columns = _read_heading(lines[start]) if start is not None else []
    rows = dict(_read_rows(lines[start + 1 :], columns)) if start is not None else {}
    if not rows:
        why = refusals[0] if refusals else f"cannot make sense of {text.strip()[:80]!r}"
        return failed(f"{TOOL}: {why}")
    missing = failed(f"{TOOL}: {refusals[0]}") if refusals else unsupported("the adapter has no such setting")
    return {name: _read_setting(rows[name]) if name in rows else missing for name in names}


def _read_heading(line: str) -> list[str]:
    """Return the columns of the table in their order."""
    places = {key: line.find(title) for title, key in COLUMNS.items()}
    return sorted((key for key, place in places.items() if place >= 0), key=lambda key: places[key])


def _read_rows(lines: Iterable[str], columns: Sequence[str]) -> Iterable[tuple[str, Row]]:
    for line in lines:
        words = line.split()
        if words[0] in MARKS:
            words = words[1:]
        if len(words) == len(columns) + 1:
            yield words[0], dict(zip(columns, words[1:], strict=True))


def _read_setting(row: Row) -> ReadingTree:
    return {
        "current": _read_cell(row, "current", "the firmware does not say which value is in force"),
        "next_boot": _read_cell(row, "next_boot", "the firmware does not say which value comes next"),
    }


def _read_cell(row: Row, column: str, otherwise: str) -> ReadingTree:
    cell = row.get(column, NO_VALUE)
    return unsupported(otherwise) if cell == NO_VALUE else value(cell)
