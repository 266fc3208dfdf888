"""Nothing grows faster than the fleet: what each command, page, endpoint and pass does is counted at several sizes.

A line that goes through the fleet for each node of it shows long before it is the larger part of a command's work:
so each line is judged too, as soon as it does so much that it would be felt in a fleet of thousands.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from assay.cli.app import app
from assay.tell.pages.page_routes import PAGES
from tests.integration import growing_fleet
from tests.support import counted_work
from tests.support.places import ROOT

MOST, MOST_OF_A_LINE = 1.1, 1.5
"""Exponents: of all that a command does, and of one line. Twice the nodes are 2.1 and 2.8 times the work."""
FELT = 96
"""A line that counts fewer for each node is not felt yet: at most a second in a fleet of ten thousand."""
FEW, MANY = (32, 128), (128, 512, 2048)
Counts = Mapping[str, Mapping[str, int]]


def count(folder: Path, sizes: tuple[int, ...]) -> list[Counts]:
    """Return what each line did in each work, by size."""
    # with -B first, no fork of the tests runs it, which has imported all of assay without counters
    program = [sys.executable, "-B", "-m", "tests.integration.growing_fleet", str(folder), *map(str, sizes)]
    run = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not run.returncode, run.stderr[-3000:]
    return list(json.loads(run.stdout).values())


def find_growth(sizes: tuple[int, ...], counts: list[Counts]) -> Iterator[str]:
    """Yield what grows faster than the fleet from the last but one size to the last, with the lines that do most."""
    small, large = counts[-2:]
    for work in large:
        before, after = small[work], large[work]
        whole = rate_growth(sizes, sum(before.values()), sum(after.values()))
        if whole > MOST:
            yield f"{work}: exponent {whole:.2f}; most is done by {sorted(after, key=after.__getitem__)[-3:]}"
        for line, times in after.items():
            if times >= FELT * sizes[-1] and rate_growth(sizes, before.get(line, 0), times) > MOST_OF_A_LINE:
                yield f"{work}: {line} counts {before.get(line, 0)} and {times}"


def rate_growth(sizes: tuple[int, ...], small: int, large: int) -> float:
    """Return with which power of the number of nodes a count grows; what stands still at first grows with the rest.

    A query or two may reach SQLite's next hundred of steps in the one fleet only.
    """
    *_, few, many = sizes
    return math.log(max(large, 1) / max(small, few, 2 * counted_work.SQL_STEPS)) / math.log(many / few)


def test_nothing_grows_faster_than_a_small_fleet(tmp_path: Path) -> None:
    assert not list(find_growth(FEW, count(tmp_path, FEW)))


@pytest.mark.slow(minutes=4)
def test_nothing_grows_faster_than_a_fleet_of_thousands(tmp_path: Path) -> None:
    assert not list(find_growth(MANY, count(tmp_path, MANY)))


def test_what_goes_through_a_list_for_each_node_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_work, "PLACES", [])
    monkeypatch.setattr(counted_work, "COUNTS", [])
    code = counted_work.compile_counted("out = [name for name in nodes\n  if name in known]", "file", "a command")
    counts = []
    for size in FEW:
        nodes = list(range(size))
        exec(code, {"nodes": nodes, "known": nodes, **counted_work.HELPERS})
        counts.append({"check": counted_work.take_counts()})
    assert [sum(count["check"].values()) for count in counts] == [size * size + size for size in FEW]
    assert [line.partition(" counts")[0] for line in find_growth(FEW, counts)] == [
        "check: exponent 1.98; most is done by ['a command:1 walk 1', 'a command:2 search 0']",
        "check: a command:2 search 0",
    ]


def list_commands(command: Any, names: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the name of each command below a group, and of each group that is a command itself."""
    below = getattr(command, "commands", None) or {}
    names_below = command.list_commands(None) if hasattr(command, "list_commands") else ()
    if names and (not names_below or command.invoke_without_command):
        yield " ".join(names)
    for name in names_below:
        yield from list_commands(below.get(name) or command.get_command(None, name), (*names, name))


def test_every_command_is_counted_or_says_why_it_is_not() -> None:
    counted = {words.partition(" --")[0] for words in growing_fleet.COMMANDS}
    left_out = {name for names in growing_fleet.NOT_COUNTED.values() for name in names}
    assert not counted & left_out
    assert sorted(list_commands(typer.main.get_command(app))) == sorted(counted | left_out)


def test_every_page_is_counted() -> None:
    of_one = {"/rollouts/{id}", "/tickets/{id}", "/source/{commit}/{path:path}"}
    assert PAGES.keys() - of_one == growing_fleet.PAGES.keys()
