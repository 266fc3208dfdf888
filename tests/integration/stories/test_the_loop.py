"""The stories that `make run` plays on twenty nodes: every chapter must come out as declared.

Each is played with the same commands and the same lab, in a copy of the fleet repository. Commands that
run to their end are forks; the one that is killed, the lab and all that commands start are processes of their own.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from assay.declare.home import Home
from assay.declare.loader import load_fleet
from assay.lab import process_control
from assay.lab.boot_site import copy_fleet
from assay.lab.scenario import ExpectationResult, load_scenario
from assay.lab.scenario_player import ScenarioPlayer, TourReporter
from assay.lab.world import LabWorld
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT

pytestmark = pytest.mark.slow(minutes=2)  # `make run` plays it too, and .github/workflows/code.yml runs that


class Listener(TourReporter):
    """Keeps the results of a tour, by chapter."""

    def __init__(self) -> None:
        self.findings: dict[str, list[ExpectationResult]] = defaultdict(list)
        self.title = ""

    def begin_chapter(self, number: int, title: str) -> None:
        self.title = title

    def show_result(self, result: ExpectationResult) -> None:
        self.findings[self.title].append(result)


@pytest.mark.parametrize("name", ["unanswered", "the-loop"])
def test_every_chapter_comes_out_as_declared(tmp_path: Path, name: str) -> None:
    story = load_scenario(ROOT / "scenarios" / f"{name}.yaml")
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    home = Home(copy_fleet(load_fleet(ROOT), fleet), "lab")
    home.folder.mkdir()
    world = LabWorld(home.world)
    process_control.build_world(load_fleet(fleet), world, story.starts_at, story.rate, story)
    process_control.start_lab(world)
    env = os.environ | home.environment

    def run(words: Sequence[str], show_line: Callable[[str], None]) -> CompletedProcess[str]:
        done = run_assay(*words, env=env)
        for line in done.stdout.splitlines():
            show_line(line)
        return done

    listener, declared = Listener(), load_fleet(fleet, [world.home / "inventory.yml"])
    try:
        ScenarioPlayer(home, declared, listener, run).play(story)
    finally:
        process_control.stop_lab(world)
    assert [*listener.findings] == [chapter.title for chapter in story.chapters]
    assert [(f.expected, f.observed) for findings in listener.findings.values() for f in findings if not f.met] == []
