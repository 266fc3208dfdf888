"""The tutorials are true: each command is run as it stands there, and shows what the page says."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.fleet_site.machines_over_ssh import needs_sshd
from tests.integration.fleet_site.recorder_programs import ProgramCall
from tests.integration.tutorials.tutorial import TutorialCommand, read_command, read_tutorial
from tests.integration.tutorials.tutorial_reader import Reader, SiteReader
from tests.support.places import ROOT

PAGES = ROOT / "docs" / "tutorials"
PROGRAMS_OF_EVERY_LINUX = (
    "bash", "cat", "chmod", "cp", "date", "env", "git", "grep", "head", "ls", "mkdir", "mv", "rm", "sed", "sh", "sleep",
    "sort", "tr", "uname",
)  # fmt: skip
FLEET = ("assay init my-fleet", "cd my-fleet", "git add --all", "git commit --quiet --message fleet")
"""What a reader of ten-minutes.md has done, for the pages that go on from there."""
TO_REAL_MACHINES = "lab-to-fleet.md"


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.run("assay lab down")


@pytest.mark.slow(minutes=5)
@pytest.mark.parametrize("page", sorted({page.name for page in PAGES.glob("*.md")} - {TO_REAL_MACHINES}))
def test_every_command_shows_what_its_page_says(page: str, reader: Reader) -> None:
    for words in FLEET if page.startswith("first-") else ():
        reader.do(TutorialCommand(words, ()))
    steps = read_tutorial(PAGES / page)
    assert len(steps) > 5
    for step in steps:
        reader.do(step)


@pytest.mark.slow(minutes=5)
def test_a_machine_with_python_and_git_alone_takes_new_nodes_into_production(reader: Reader) -> None:
    """Without a C compiler, numpy, or ibsim: the lab says what is less real, and nothing waits for ever."""
    programs, packages = reader.folder / "programs", reader.folder / "packages"
    programs.mkdir()
    for name in PROGRAMS_OF_EVERY_LINUX:
        (programs / name).symlink_to(str(shutil.which(name)))
    packages.mkdir()
    (packages / "sitecustomize.py").write_text('import sys\n\nsys.modules["numpy"] = None\n')
    reader.environment["PATH"] = f"{Path(sys.executable).parent}:{programs}"
    reader.environment["PYTHONPATH"] = f"{packages}:{reader.environment.get('PYTHONPATH', '')}"
    assert not reader.run("command -v cc gcc clang ibsim ibnetdiscover qemu-system-x86_64 busybox").stdout
    for step in read_tutorial(PAGES / "own-fleet.md"):
        reader.do(step)
        if getattr(step, "words", "") == "assay lab up":
            parts = reader.run("assay lab status").stdout
            for less_real in ("readings are replayed", "digests are made up"):
                assert less_real in parts
                assert less_real in reader.run("assay doctor").stdout


@needs_sshd
@pytest.mark.slow(minutes=5)
def test_the_road_from_the_lab_to_the_fleet(tmp_path: Path) -> None:
    """The site stands for the real machines of the pages: nothing of it changes before a person has said yes."""
    with SiteReader(tmp_path / "reader", tmp_path / "site", ("gpu-01", "gpu-02")) as reader:
        for step in read_tutorial(PAGES / "own-fleet.md"):
            reader.do(step)
        for step in read_tutorial(PAGES / TO_REAL_MACHINES):
            if getattr(step, "words", "").startswith("assay approve"):
                assert reader.site.changes() == []
            reader.do(step)
        assert {change.machine for change in reader.site.changes() if not isinstance(change, ProgramCall)} == {"gpu-02"}


@pytest.mark.parametrize(
    ("output", "is_answer"),
    [
        ("one two\nthree\n", True),
        ("one 2\nmore\n\nlines\nthree\n", True),
        ("one two\nthree\nfour\n", False),
        ("zero\none two\nthree\n", False),
        ("one two\n", False),
        ("", False),
    ],
)
def test_a_page_shows_an_output_or_another(output: str, is_answer: bool) -> None:
    assert read_command("try\none …\n…\nthree").is_answer(output) is is_answer
