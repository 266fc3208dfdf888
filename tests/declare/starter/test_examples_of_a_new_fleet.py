"""What `assay init` writes: nothing invented reaches a machine, and `assay check` lists what to replace."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from assay.declare.check import STAND_IN_CODE
from assay.declare.home import CONTEXT_VARIABLE
from assay.declare.loader import load_fleet
from assay.declare.stand_ins import find_placeholders
from assay.declare.starter.new_repository import create_repository
from tests.support.forked_assay import run_assay

PICTURES = {".png": b"\x89PNG"}
STARTER_TEXTS = ".assay-starter"
"""Holds the same files again, compressed: the base of the next upgrade."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("init") / "our-fleet"
    create_repository(folder, "both")
    return folder


def files_of(made: Path) -> list[Path]:
    return [file for file in made.rglob("*") if file.is_file() and ".git" not in file.relative_to(made).parts]


def test_no_file_holds_random_bytes(made: Path) -> None:
    for file in files_of(made):
        content, path = file.read_bytes(), file.relative_to(made)
        if path.parts[0] == STARTER_TEXTS:
            continue
        if start := PICTURES.get(file.suffix):
            assert content.startswith(start), path
        else:
            assert content.decode("utf-8").isprintable() or "\0" not in content.decode("utf-8"), path
    assert not (made / "firmware").exists()


def test_no_bundle_has_an_artifact_and_every_one_is_marked(made: Path) -> None:
    for bundle in load_fleet(made).bundles.values():
        assert bundle.stands_in
        assert not any(component.artifact for component in bundle.components)


def test_nothing_that_reaches_far_is_switched_on(made: Path) -> None:
    fleet = load_fleet(made)
    assert {profile.name: profile.may for profile in fleet.profiles.values()} == {"managed": [], "unmanaged": []}
    assert not any(spec.wipe for spec in fleet.node_specs.values()), "its profiles forbid that"
    assert not fleet.policy.notices.scheduler.shown
    assert not fleet.policy.notices.webhooks


def test_check_lists_every_example_with_its_line_and_what_to_write_and_is_content(made: Path) -> None:
    run = run_assay("check", "--format", "json", cwd=made)
    found = json.loads(run.stdout)["problems"]
    assert run.returncode == 0
    assert {(one["severity"], one["code"]) for one in found} == {("notice", STAND_IN_CODE)}
    assert all(one["line"] and one["fix"] for one in found)
    marked = {
        (file.relative_to(made).as_posix(), number)
        for file in (made / "specs").rglob("*.yaml")
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if line.startswith("stands_in:")
    }
    assert marked
    assert marked <= {(one["file"], one["line"]) for one in found}
    fleet = load_fleet(made)
    held = [spec.model_dump(exclude_unset=True) for spec in (*fleet.provisionings.values(), *fleet.node_specs.values())]
    values = {re.search(r"'(.*?)'", one.message)[1] for data in held for one in find_placeholders(data)}  # type: ignore[index]
    assert {"ntp1.lab1.example", "http://boot.lab1.example:8080", "log.lab1.example"} <= values
    told = " ".join(one["message"] for one in found)
    assert all(repr(value) in told for value in values)
    assert all(node.serial in told for node in fleet.nodes.values())


def test_each_form_tells_them_and_the_last_line_counts_them(made: Path) -> None:
    text = run_assay("check", cwd=made)
    count = re.search(r": no problems; (\d+) examples in place of your own values\n$", text.stdout)
    assert text.returncode == 0
    assert count
    assert int(count[1]) > 20
    github = run_assay("check", "--format", "github", cwd=made)
    assert "::notice file=specs/provisioning/lab1.yaml,line=6" in github.stdout


def test_for_the_lab_there_is_nothing_to_replace(made: Path) -> None:
    run = run_assay("check", cwd=made, env={CONTEXT_VARIABLE: "lab"})
    assert (run.returncode, run.stdout.partition(": ")[2]) == (0, "no problems\n")
