"""The workflow of pull requests as a runner runs it, step by step as written: on a fleet of one's own, for a change."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.declare.starter.forge import replace_text
from tests.declare.starter.github_runner import GitHub
from tests.support.reserved_ports import reserve_ports

LOWER_LIMIT = replace_text("specs/nodes/hgx-h100.yaml", "gpu_temperature: {value: 85", "gpu_temperature: {value: 84")
BUNDLE = "specs/firmware/hgx-h100-2026-10.yaml"


def test_a_right_change_is_planned_and_its_comment_is_edited(github: GitHub) -> None:
    pull = github.forge.open("A lower limit", LOWER_LIMIT)
    plan = github.run_pull_request(pull, "plan")["plan"]
    assert plan.is_green, str(plan)
    (comment,) = github.api.bodies(pull.number)
    assert comment.startswith("<!-- assay plan -->\n")
    assert "4 nodes" in comment
    assert plan.summary == comment
    github.forge.push(pull, "Lower", replace_text("specs/nodes/hgx-h100.yaml", "e: {value: 84", "e: {value: 83"))
    again = github.run_pull_request(pull, "plan")["plan"]
    assert again.is_green, str(again)
    (edited,) = github.api.bodies(pull.number)
    assert "85 °C → 83 °C" in edited


def test_a_plan_whose_server_is_silent_says_so_and_fails(github: GitHub) -> None:
    (port,) = reserve_ports(1)
    github.secrets = {"ASSAY_SERVER": f"https://127.0.0.1:{port}", "ASSAY_READER": "a-token"}
    pull = github.forge.open("A lower limit", LOWER_LIMIT)
    plan = github.run_pull_request(pull, "plan")["plan"]
    assert (plan.failed.name, "the server does not answer" in plan.failed.stderr) == ("The plan", True), str(plan)
    (comment,) = github.api.bodies(pull.number)
    assert "the facts of the fleet are missing (the server does not answer" in comment
    (token,) = github.folder.glob("job-*/reader")
    assert token.stat().st_mode & 0o777 == 0o600


def test_a_mistake_is_annotated_and_the_comment_says_that_there_is_no_plan(github: GitHub) -> None:
    pull = github.forge.open("A wrong place", replace_text("inventory/h100-a.yml", "u: 4\n", "u: four\n"))
    jobs = github.run_pull_request(pull, "check", "plan")
    (check,) = jobs["check"].steps
    assert check.outcome == "failure"
    assert check.stdout.startswith("::error file=inventory/h100-a.yml,line=20,")
    assert jobs["plan"].failed.name == "The plan"
    (comment,) = github.api.bodies(pull.number)
    assert comment.startswith("<!-- assay plan -->\n### assay plan: there is none\n")
    assert "inventory/h100-a.yml:20" in comment


@pytest.mark.slow
def test_a_change_that_touches_no_pool_rehearses_nothing(github: GitHub) -> None:
    pull = github.forge.open("Words", replace_text("README.md", "# Our fleet", "# The fleet"))
    rehearsal = github.run_pull_request(pull, "rehearse")["rehearse"]
    assert rehearsal.is_green, str(rehearsal)
    assert "no pool is touched" in rehearsal.step("The lab").stdout
    assert not list(github.folder.glob("job-*/.assay-lab/world"))


def bring_bios(image: bytes) -> Callable[[Path], None]:
    """Return a change that brings another BIOS, with its image in the repository."""

    def change(root: Path) -> None:
        (root / "firmware").mkdir(exist_ok=True)
        (root / "firmware/bios.bin").write_bytes(image)
        artifact = f"artifact: {{url: firmware/bios.bin, sha256: {hashlib.sha256(image).hexdigest()}}}"
        replace_text(BUNDLE, 'version: "2.7.3"\n', f'version: "2.8.0"\n    {artifact}\n')(root)

    return change


@pytest.mark.slow(minutes=2)
def test_a_rehearsal_flashes_what_the_change_flashes(github: GitHub) -> None:
    pull = github.forge.open("A newer BIOS", bring_bios(openbmc_archive("2.8.0")))
    rehearsal = github.run_pull_request(pull, "rehearse")["rehearse"]
    assert rehearsal.is_green, str(rehearsal)
    lab = rehearsal.step("The lab")
    assert "n0001: bios: pushes" in lab.stderr
    assert re.search(r"n0001 +out ", lab.stdout)
    assert re.search(r"^\d+ outcomes on 1 node: ", lab.stdout, re.MULTILINE), "those that wait are not judged"


@pytest.mark.slow(minutes=2)
def test_a_rehearsal_with_a_corrupted_image_fails(github: GitHub) -> None:
    pull = github.forge.open("A newer BIOS", bring_bios(openbmc_archive("2.7.9")))
    rehearsal = github.run_pull_request(pull, "rehearse")["rehearse"]
    said = "bios.bin is not what the bundle declares: its version is 2.7.9, and the bundle says 2.8.0"
    assert (rehearsal.failed.name[:7], said in rehearsal.failed.stderr) == ("The lab", True), str(rehearsal)


def openbmc_archive(version: str) -> bytes:
    """Return an image that says which version it is."""
    content, manifest = io.BytesIO(), f"purpose=xyz\nversion={version}\n".encode()
    with tarfile.open(fileobj=content, mode="w") as archive:
        member = tarfile.TarInfo("MANIFEST")
        member.size = len(manifest)
        archive.addfile(member, io.BytesIO(manifest))
    return content.getvalue()


@pytest.mark.slow(minutes=2)
def test_the_touched_pools_are_rehearsed_on_the_lab(github: GitHub) -> None:
    pull = github.forge.open("A lower limit", LOWER_LIMIT)
    rehearsal = github.run_pull_request(pull, "rehearse")["rehearse"]
    assert rehearsal.is_green, str(rehearsal)
    assert rehearsal.step("The pools").stdout == "h100-a\n"
    judged = rehearsal.step("The lab").stdout
    assert re.search(r"^.*\d+ passed, \d+ skipped$", judged, re.MULTILINE)  # a week takes more than a rehearsal
    assert [path.name for path in rehearsal.artifacts["rehearsal"]] == ["index.html", "allure"]
    assert rehearsal.step("assay lab down").stdout.startswith("the lab is down\n")
