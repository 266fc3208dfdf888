"""GitLab's pipeline runs the same commands as GitHub's workflows, with the same guards and no more rights."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.cli.app import VERBS
from assay.declare.starter.new_repository import OWN_FILES, create_repository
from tests.declare.starter.gitlab_runner import read_jobs, run_script
from tests.support.places import ROOT

PIPELINE: dict[str, Any] = yaml.safe_load((OWN_FILES / ".gitlab-ci.yml").read_text())


JOBS = read_jobs((OWN_FILES / ".gitlab-ci.yml").read_text())
OF_CHANGES = [name for name, job in JOBS.items() if "merge_request_event" in str(job["rules"])]


def scripts(job: dict[str, Any]) -> list[str]:
    hooks = job.get("hooks", {}).get("pre_get_sources_script", [])
    return [*hooks, *job.get("before_script", []), *job["script"], *job.get("after_script", [])]


def commit(folder: Path, message: str) -> str:
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    if not (folder / ".git").exists():
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(folder)], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", message], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def test_it_has_a_job_for_each_of_githubs() -> None:
    assert sorted(OF_CHANGES) == ["check", "plan", "rehearse"]
    assert sorted(set(JOBS) - set(OF_CHANGES)) == ["apply", "scheduled"]
    for name, job in JOBS.items():
        assert job["stage"] in PIPELINE["stages"], name
        assert job["rules"], name
        assert job["timeout"], name


@pytest.mark.parametrize("name", JOBS)
def test_its_scripts_are_bash(name: str, tmp_path: Path) -> None:
    for script in scripts(JOBS[name]):
        checked = subprocess.run(["bash", "-n", "-c", script], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr


def test_every_image_is_pinned_by_its_digest() -> None:
    images = {name: job.get("image") for name, job in JOBS.items()}
    assert [name for name, image in images.items() if image is None] == ["apply", "scheduled"]
    assert all(re.fullmatch(r"[\w./:-]+@sha256:[0-9a-f]{64}", image) for image in images.values() if image)


def test_what_a_change_runs_has_no_environment_and_reaches_no_runner_of_the_fleet() -> None:
    for name in OF_CHANGES:
        assert JOBS[name]["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "merge_request_event"'}]
        assert not {"environment", "tags", "secrets", "id_tokens"} & set(JOBS[name]), name
        assert not [script for script in scripts(JOBS[name]) if "ASSAY_BMC" in script or "TOKEN" in script]


def test_what_acts_on_the_fleet_waits_for_an_approval_and_runs_alone() -> None:
    for name in ("apply", "scheduled"):
        assert (JOBS[name]["tags"], JOBS[name]["resource_group"]) == (["assay-fleet"], "fleet")
    assert JOBS["apply"]["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "push"', "when": "manual"}]
    assert (JOBS["apply"]["environment"], JOBS["apply"]["allow_failure"]) == ("fleet", False)
    assert JOBS["scheduled"]["environment"]["name"] == "fleet-watch"
    only_main = [rule["if"] for rule in PIPELINE["workflow"]["rules"] if "merge_request_event" not in rule["if"]]
    assert all("$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH" in rule for rule in only_main)


def test_a_late_approval_ends_before_the_checkout(tmp_path: Path) -> None:
    remote, elsewhere = tmp_path / "fleet", tmp_path / "runner"
    elsewhere.mkdir()
    older, newest = commit(remote, "older"), commit(remote, "newest")
    guard = JOBS["apply"]["hooks"]["pre_get_sources_script"]
    for sha, status in ((newest, 0), (older, 1)):
        world = {"CI_REPOSITORY_URL": remote.as_uri(), "CI_COMMIT_BRANCH": "main", "CI_COMMIT_SHA": sha}
        done = run_script(guard, elsewhere, world)
        assert (done.returncode, newest in done.stdout) == (status, bool(status)), done.stderr
        assert remote.as_uri() not in done.stdout + done.stderr
    assert list(elsewhere.iterdir()) == []


def test_an_unreachable_server_stops_the_merge(tmp_path: Path) -> None:
    world = {"CI_REPOSITORY_URL": (tmp_path / "gone").as_uri(), "CI_COMMIT_BRANCH": "main", "CI_COMMIT_SHA": "1" * 40}
    assert run_script(JOBS["apply"]["hooks"]["pre_get_sources_script"], tmp_path, world).returncode != 0


def test_the_scheduled_pass_acts_only_on_the_commit_that_the_last_merge_marked(tmp_path: Path) -> None:
    job = JOBS["scheduled"]
    assert job["variables"]["GIT_STRATEGY"] == "none"
    (mark,) = [line for line in JOBS["apply"]["script"] if "refs/assay/approved" in line]
    commit(tmp_path, "approved")
    assert run_script(job["before_script"], tmp_path).returncode == 1  # no merge was applied here
    assert run_script(mark, tmp_path).returncode == 0
    assert run_script(job["before_script"], tmp_path).returncode == 0
    commit(tmp_path, "a merge that nobody approved")
    stopped = run_script(job["before_script"], tmp_path)
    assert (stopped.returncode, "approved last" in stopped.stdout) == (1, True)


def test_the_ledger_beside_the_checkout_stays() -> None:
    assert JOBS["apply"]["variables"] == {"GIT_STRATEGY": "fetch", "GIT_CLEAN_FLAGS": "none", "ASSAY_CONTEXT": "fleet"}


def test_packages_are_installed_by_hash_where_there_is_a_lock() -> None:
    (install,) = [script for script in PIPELINE[".assay"]["before_script"] if "requirements.lock" in script]
    assert "--require-hashes --requirement requirements.lock" in install.partition("else\n")[0]


def test_every_verb_exists_and_githubs_workflows_use_the_same() -> None:
    def verbs(text: str) -> set[str]:
        return set(re.findall(r"(?:^|bin/|\s)assay ([a-z]+)\b", text, re.MULTILINE))

    here = {verb for job in JOBS.values() for script in scripts(job) for verb in verbs(script)}
    files = [ROOT / ".github/workflows" / f"{name}.yml" for name in ("pull-request", "merge", "scheduled")]
    steps = [
        step.get("run", "")
        for file in files
        for job in yaml.safe_load(file.read_text())["jobs"].values()
        for step in job["steps"]
    ]
    there = {verb for step in steps for verb in verbs(step)}
    assert here <= set(VERBS)
    assert there <= here


@pytest.mark.parametrize(
    ("ci", "github", "gitlab"), [("github", True, False), ("gitlab", False, True), ("both", True, True)]
)
def test_a_new_fleet_has_the_files_of_its_forge(ci: str, github: bool, gitlab: bool, tmp_path: Path) -> None:
    create_repository(tmp_path / "fleet", ci)
    assert (tmp_path / "fleet" / ".github" / "workflows" / "merge.yml").is_file() is github
    assert (tmp_path / "fleet" / ".gitlab-ci.yml").is_file() is gitlab
    assert (tmp_path / "fleet" / "CODEOWNERS").is_file()
