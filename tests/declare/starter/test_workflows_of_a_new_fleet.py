"""The workflows that `assay init` writes are green on what it writes: on GitHub and on GitLab, each step as written.

They install assay as they say, from a package that leads here. The fleet's own machine reaches the nodes of the example
as real ones (machines_that_answer.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.declare.starter.new_repository import create_repository
from tests.declare.starter.forge import Forge, git, replace_text
from tests.declare.starter.github_api import serve_github
from tests.declare.starter.github_runner import GitHub
from tests.declare.starter.gitlab_runner import GitLab
from tests.declare.starter.machines_that_answer import run_hall
from tests.declare.starter.package_index import make_index

pytestmark = pytest.mark.slow(minutes=6)
NODES = [f"n{number:04}" for number in range(1, 5)]
LOWER_LIMIT = replace_text("specs/nodes/hgx-h100.yaml", "gpu_temperature: {value: 85", "gpu_temperature: {value: 84")
SECRETS = {"ASSAY_BMC": "assay:hall"}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables by which machines find assay's package."""
    return make_index(tmp_path_factory.mktemp("index"))


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    """A new fleet, with the workflows of both forges."""
    return Forge(tmp_path, lambda root: create_repository(root, "both"))


@pytest.fixture
def hub(forge: Forge, index: dict[str, str]) -> Iterator[GitHub]:
    """The fleet on GitHub."""
    (machines := forge.folder / "github").mkdir()
    with serve_github() as api:
        yield GitHub(forge, machines, api, environments={"fleet": SECRETS, "fleet-watch": SECRETS}, variables=index)


@pytest.fixture
def gitlab(forge: Forge, index: dict[str, str]) -> GitLab:
    """The fleet on GitLab."""
    return GitLab(forge, forge.folder / "gitlab", {"fleet": SECRETS, "fleet-watch": SECRETS}, index)


@pytest.fixture
def in_service(forge: Forge, tmp_path: Path) -> Iterator[Forge]:
    """The fleet, whose inventory names machines that answer."""
    (folder := tmp_path / "hall").mkdir()
    with run_hall(folder, forge.clone) as hall:
        forge.merge(forge.open("Where our machines are", hall.write_addresses))
        yield forge


def test_a_pull_request_on_github_is_checked_and_planned(hub: GitHub) -> None:
    pull = hub.forge.open("A lower limit", LOWER_LIMIT)
    jobs = hub.run_pull_request(pull, "check", "plan")
    assert [name for name, job in jobs.items() if not job.is_green] == [], "\n".join(map(str, jobs.values()))
    assert "each passes on the good recording" in jobs["check"].step("assay suites verify").stdout
    assert "Successfully installed assay-fleet" in str(jobs["plan"])
    (comment,) = hub.api.bodies(pull.number)
    assert "gpu_temperature of hgx-h100: 85 °C → 84 °C" in comment


def test_on_github_a_merge_is_applied_and_the_pass_of_every_six_hours_is_green(hub: GitHub, in_service: Forge) -> None:
    merged = hub.run_fleet("merge.yml")
    assert merged.is_green, str(merged)
    assert "4 production" in merged.step("Where every node is now").stdout
    passed = hub.run_fleet("scheduled.yml")
    assert passed.is_green, str(passed)
    assert "all 3 bounds hold" in passed.step("The gates").stdout
    assert {name: len(files) for name, files in passed.artifacts.items()} == {"reports": 3, "fabric-week": 1}
    in_service.merge(in_service.open("A lower limit", LOWER_LIMIT))
    git(hub.folder / "assay-fleet", "fetch", "--quiet", "origin")
    git(hub.folder / "assay-fleet", "checkout", "--quiet", "origin/main")
    stopped = hub.run_fleet("scheduled.yml")
    assert [step.outcome for step in stopped.steps] == ["failure"], "a commit that nobody approved runs nothing"
    assert "approved last" in stopped.failed.stdout


def test_on_github_a_broken_main_branch_is_not_applied(hub: GitHub) -> None:
    hub.forge.merge(hub.forge.open("A wrong place", replace_text("inventory/h100-a.yml", "u: 4\n", "u: four\n")))
    merged = hub.run_fleet("merge.yml")
    assert merged.failed.name == "assay check --format github"
    assert "::error file=inventory/h100-a.yml,line=20," in merged.failed.stdout
    assert not (hub.folder / "assay-fleet/.assay").exists(), "nothing was reconciled"


def test_a_merge_request_on_gitlab_is_checked_planned_and_rehearsed(gitlab: GitLab) -> None:
    pull = gitlab.forge.open("A lower limit", LOWER_LIMIT)
    check, plan, rehearsal = (gitlab.run_merge_request(pull, name) for name in ("check", "plan", "rehearse"))
    assert check.is_green, str(check)
    assert "each passes on the good recording" in check.script.stdout
    assert plan.is_green, str(plan)
    assert "gpu_temperature of hgx-h100: 85 °C → 84 °C" in plan.artifacts[0].read_text()
    assert rehearsal.is_green, str(rehearsal)
    assert re.search(r"\d{4} outcomes on 4 nodes: ", rehearsal.script.stdout)
    assert rehearsal.after.returncode == 0
    assert rehearsal.after.stdout.startswith("the lab is down\n")
    assert [path.name for path in rehearsal.artifacts] == ["junit.xml"]


def test_on_gitlab_a_merge_is_applied_and_the_pass_of_every_six_hours_is_green(
    gitlab: GitLab, in_service: Forge
) -> None:
    applied = gitlab.run_fleet("apply", "push")
    assert applied.is_green, str(applied)
    assert "4 production" in applied.after.stdout
    passed = gitlab.run_fleet("scheduled", "schedule")
    assert passed.is_green, str(passed)
    assert "all 3 bounds hold" in passed.script.stdout
    assert [path.name for path in passed.artifacts] == ["index.html", "allure", "weekly"]
    in_service.merge(in_service.open("A lower limit", LOWER_LIMIT))
    git(gitlab.folder / "assay-fleet", "fetch", "--quiet", "origin", "main")
    git(gitlab.folder / "assay-fleet", "checkout", "--quiet", "FETCH_HEAD")
    stopped = gitlab.run_fleet("scheduled", "schedule")
    assert (stopped.is_green, "approved last" in stopped.script.stdout) == (False, True)
    assert "context fleet" not in str(stopped), "a commit that nobody approved runs nothing"
