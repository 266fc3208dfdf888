"""Commands of a tour are forks, and answer as `assay` does: line by line, with its errors and its exit code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from multiprocessing import forkserver

import pytest

from assay.cli.warm_commands import IMPORTED_BEFORE, WarmCommands
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT


@pytest.fixture(scope="module")
def commands() -> Iterator[WarmCommands]:
    yield WarmCommands(os.environ | {"ASSAY_CONTEXT": "fleet"})
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # it would live as long as these tests


@pytest.mark.parametrize("words", [("schema", "status"), ("show", "n0003"), ("status", "--fleet", "/no/such/folder")])
def test_a_fork_answers_as_assay_does(commands: WarmCommands, words: tuple[str, ...]) -> None:
    lines = list[str]()
    forked, plain = commands.run(words, lines.append), run_assay(*words, env=os.environ | {"ASSAY_CONTEXT": "fleet"})
    assert (forked.returncode, forked.stdout, forked.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert lines == plain.stdout.splitlines()


def test_one_command_leaves_nothing_to_the_next(commands: WarmCommands) -> None:
    first = commands.run(("context", "--short", "--context", "lab", "--fleet", str(ROOT)), lambda _: None)
    second = commands.run(("context", "--short", "--fleet", str(ROOT)), lambda _: None)
    assert (first.stdout, second.stdout) == ("lab\n", "fleet\n")


@pytest.mark.parametrize("name", IMPORTED_BEFORE)
def test_what_is_imported_before_is_there(name: str) -> None:
    __import__(name)  # the server itself passes over a name that is wrong
