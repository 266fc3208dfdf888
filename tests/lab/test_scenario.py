"""A scenario file is read completely, or refused with the place of the mistake."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from assay.declare.home import Home
from assay.declare.loader import load_fleet
from assay.lab.faults.injection import FAULTS
from assay.lab.scenario import LabScenario, ScenarioStep, load_scenario
from assay.lab.scenario_player import ScenarioPlayer, TourReporter
from assay.model.errors import AssayError
from tests.support.places import ROOT

THE_LOOP = ROOT / "scenarios" / "the-loop.yaml"
UNANSWERED = THE_LOOP.with_name("unanswered.yaml")


@pytest.mark.parametrize(("file", "chapters"), [(THE_LOOP, 8), (UNANSWERED, 1)])
def test_a_shipped_story_reads_and_plants_only_faults_that_exist(file: Path, chapters: int) -> None:
    story = load_scenario(file)
    planted = [*story.plant, *(s.inject for c in story.chapters for s in c.steps if s.inject)]
    assert {wish.fault for wish in planted} <= set(FAULTS)
    assert len(story.chapters) == chapters


@pytest.mark.parametrize("file", [THE_LOOP, UNANSWERED])
def test_every_chapter_of_a_shipped_story_declares_what_must_come_of_it(file: Path) -> None:
    for chapter in load_scenario(file).chapters:
        assert any(step.expect for step in chapter.steps), chapter.title


def test_the_first_start_is_of_machines_with_an_image() -> None:
    fleet = load_fleet(THE_LOOP.parents[1])
    for node in load_scenario(THE_LOOP.with_name("first-start.yaml")).new_machines:
        assert fleet.provisioning_of(node)
        assert fleet.image_of(node)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Scenario\nname: x\nstart: now\nrate: 0\n", "rate"),
        ("kind: Scenario\nname: x\nstart: now\nrate: 1\nchapters: [{title: a, steps: [{jump: 1}]}]\n", "jump"),
        ("kind: Scenario\nname: x\nstart: now\nrate: 1\nchapters: [{title: a, steps: [{}]}]\n", "exactly one"),
        ("kind: [\n", "line 2"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "story.yaml"
    path.write_text(text)
    with pytest.raises(AssayError, match=said):
        load_scenario(path)


def test_a_file_that_is_not_there_is_trouble_and_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(AssayError, match="No such file"):
        load_scenario(tmp_path / "none.yaml")


def test_a_round_waits_for_the_burn_ins_of_its_nodes(tmp_path: Path) -> None:
    """Hours that pass are worked through meanwhile: what is about other nodes goes on."""
    done: list[object] = []

    def run(words: Sequence[str], _: object) -> CompletedProcess[str]:
        done.append(words[0])
        return CompletedProcess(words, 0, "", "")

    home = Home(tmp_path, "lab")
    player = ScenarioPlayer(home, load_fleet(ROOT), TourReporter(), run)
    player.burn_ins.append(done.append)
    chapter = {"title": "a", "steps": [{"assay": ["status"]}, {"reconcile": {"nodes": ["n0001"]}}]}
    story = {"kind": "Scenario", "name": "x", "owner": "y", "start": "now", "rate": 1, "chapters": [chapter]}
    assert player.play(LabScenario.model_validate(story))
    assert done == ["status", ["n0001"], "reconcile"]


def test_a_step_does_one_thing() -> None:
    with pytest.raises(ValueError, match="exactly one"):
        ScenarioStep.model_validate({"advance_hours": 1.0, "assay": ["status"]})
