"""The story that `make run` plays, chapter by chapter: every one must come out as declared.

The fixture plays it once, with the same commands and the same lab, in a copy of the fleet repository. Commands that
run to their end are forks; the one that is killed, the lab and all that commands start are processes of their own.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from subprocess import CompletedProcess

import pytest

from assay.declare.home import Home
from assay.declare.loader import load_fleet
from assay.lab import process_control
from assay.lab.scenario import ExpectationResult, load_scenario
from assay.lab.scenario_player import ScenarioPlayer, TourReporter
from assay.lab.world import LabWorld
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT

pytestmark = pytest.mark.slow(minutes=2)  # `make run` plays it too, and .github/workflows/code.yml runs that
STORY = load_scenario(ROOT / "scenarios" / "the-loop.yaml")


class Listener(TourReporter):
    """Keeps what a tour says, by chapter."""

    def __init__(self) -> None:
        self.findings: dict[str, list[ExpectationResult]] = defaultdict(list)
        self.lines: dict[str, list[str]] = defaultdict(list)
        self.title = ""

    def begin_chapter(self, number: int, title: str) -> None:
        self.title = title

    def begin_step(self, text: str) -> None:
        self.lines[self.title].append(text)

    def show_line(self, text: str) -> None:
        self.lines[self.title].append(text)

    def show_result(self, result: ExpectationResult) -> None:
        self.findings[self.title].append(result)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    fleet = tmp_path_factory.mktemp("story") / "fleet"
    for folder in ("inventory", "specs", "suites", "playbooks"):
        shutil.copytree(ROOT / folder, fleet / folder)
    shutil.copy(ROOT / "ansible.cfg", fleet)
    home = Home(fleet, "lab")
    home.folder.mkdir()
    world = LabWorld(home.world)
    process_control.build_world(load_fleet(fleet), world, STORY.starts_at, STORY.rate, STORY)
    process_control.start_lab(world)
    env = os.environ | home.environment

    def run(words: Sequence[str], show_line: Callable[[str], None]) -> CompletedProcess[str]:
        done = run_assay(*words, env=env)
        for line in done.stdout.splitlines():
            show_line(line)
        return done

    listener, declared = Listener(), load_fleet(fleet, [world.home / "inventory.yml"])
    try:
        ScenarioPlayer(home, declared, listener, run).play(STORY)
        yield listener
    finally:
        process_control.stop_lab(world)


@pytest.mark.parametrize("title", [chapter.title for chapter in STORY.chapters])
def test_the_chapter_comes_out_as_declared(told: Listener, title: str) -> None:
    findings = told.findings[title]
    assert findings
    assert [(f.expected, f.observed) for f in findings if not f.met] == []
