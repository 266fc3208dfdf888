"""The scripts of the pull request's workflow, run here as a runner does: on a fleet of one's own, for a real change.

The steps that are other people's actions (checkout, upload) and those that install assay are passed over.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml
from reserved_ports import reserve_ports

from assay.declare.starter.new_repository import create_repository


class Runner:
    """A fleet whose `origin/main` is its first commit, and a job's temporary folder."""

    def __init__(self, home: Path) -> None:
        self.fleet, self.temp = home / "fleet", home / "temp"
        self.temp.mkdir()
        create_repository(self.fleet)
        self.summary = self.temp / "summary.md"
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Our fleet")
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")

    def git(self, *words: str) -> None:
        who = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *words], cwd=self.fleet, check=True)

    def commit(self, path: str, old: str, new: str) -> None:
        """Change a file as the pull request does."""
        file = self.fleet / path
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
        self.git("commit", "--quiet", "--all", "--message", "A change")

    def job(self, name: str, without: str = "") -> list[subprocess.CompletedProcess[str]]:
        """Run a job's scripts, the one after the other, until one fails; those that say `always()` run all the same.

        The script that is `without` is passed over.
        """
        workflow = yaml.safe_load((self.fleet / ".github/workflows/pull-request.yml").read_text())
        runs: list[subprocess.CompletedProcess[str]] = []
        for step in workflow["jobs"][name]["steps"]:
            well = all(run.returncode == 0 for run in runs)
            if step.get("run", without) != without and (well or step.get("if") == "always()"):
                runs.append(self.script(step["run"]))
        return runs

    def script(self, text: str, **secrets: str) -> subprocess.CompletedProcess[str]:
        """Run one script as a runner does, whose shell ends at the first command that fails."""
        github = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "GITHUB_WORKSPACE": str(self.fleet),
            "GITHUB_BASE_REF": "main",
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "RUNNER_TEMP": str(self.temp),
        }
        command = ["bash", "-e", "-c", text]
        environment = {**os.environ, **github, **secrets}
        return subprocess.run(command, cwd=self.fleet, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_a_right_change_is_checked_and_planned(runner: Runner) -> None:
    runner.commit("specs/nodes/hgx-h100.yaml", "gpu_temperature: {value: 85", "gpu_temperature: {value: 84")
    check = runner.job("check", without="assay suites verify --jobs 2")  # half a minute of CPU, see below
    assert [run.returncode for run in (*check, *runner.job("plan"))] == [0, 0, 0]
    plan = (runner.temp / "plan.md").read_text()
    assert plan.startswith("<!-- assay plan -->\n")
    assert "4 nodes" in plan
    assert runner.summary.read_text() == plan


def test_a_plan_whose_server_is_silent_says_so_and_fails(runner: Runner) -> None:
    runner.commit("specs/nodes/hgx-h100.yaml", "gpu_temperature: {value: 85", "gpu_temperature: {value: 84")
    workflow = yaml.safe_load((runner.fleet / ".github/workflows/pull-request.yml").read_text())
    (step,) = [step for step in workflow["jobs"]["plan"]["steps"] if step.get("id") == "plan"]
    names = [name for name, value in step["env"].items() if value.startswith("${{ secrets.ASSAY_")]
    assert names == ["ASSAY_SERVER", "READER", "AUTHORITY"]
    (port,) = reserve_ports(1)
    run = runner.script(step["run"], ASSAY_SERVER=f"https://127.0.0.1:{port}", READER="a-token", AUTHORITY="")
    assert (run.returncode, "the server does not answer" in run.stderr) == (2, True), run.stderr
    assert "the facts of the fleet are missing (the server does not answer" in (runner.temp / "plan.md").read_text()
    assert (runner.temp / "reader").stat().st_mode & 0o777 == 0o600


def test_a_mistake_is_annotated_and_the_comment_says_that_there_is_no_plan(runner: Runner) -> None:
    runner.commit("inventory/h100-a.yml", "u: 4\n", "u: four\n")
    (check,) = runner.job("check")
    assert check.returncode == 1
    assert check.stdout.startswith("::error file=inventory/h100-a.yml,line=20,")
    (plan,) = runner.job("plan")
    assert plan.returncode == 2
    comment = (runner.temp / "plan.md").read_text()
    assert comment.startswith("<!-- assay plan -->\n### assay plan: there is none\n")
    assert "inventory/h100-a.yml:20" in comment


@pytest.mark.slow
def test_a_change_that_touches_no_pool_rehearses_nothing(runner: Runner) -> None:
    runner.commit("README.md", "# Our fleet", "# The fleet")
    runs = runner.job("rehearse")
    assert [run.returncode for run in runs] == [0] * len(runs)
    assert "no pool is touched" in runs[1].stdout
    assert not (runner.fleet / ".assay-lab/world").exists()


@pytest.mark.slow
def test_the_checks_of_a_new_fleet_are_verified(runner: Runner) -> None:
    *_, verify = runner.job("check")
    assert verify.returncode == 0
    assert "each passes on the good recording and fails for its stated reasons" in verify.stdout


BUNDLE = "specs/firmware/hgx-h100-2026-10.yaml"


def flash_bios(runner: Runner, image: bytes) -> None:
    """Let the pull request bring another BIOS, with its image in the repository."""
    (runner.fleet / "firmware").mkdir(exist_ok=True)
    (runner.fleet / "firmware/bios.bin").write_bytes(image)
    digest = hashlib.sha256(image).hexdigest()
    runner.git("add", "--all")
    artifact = f"artifact: {{url: firmware/bios.bin, sha256: {digest}}}"
    runner.commit(BUNDLE, 'version: "2.7.3"\n', f'version: "2.8.0"\n    {artifact}\n')


@pytest.mark.slow(minutes=2)
def test_a_rehearsal_flashes_what_the_change_flashes(runner: Runner) -> None:
    flash_bios(runner, openbmc_archive("2.8.0"))
    runs = runner.job("rehearse")
    assert [run.returncode for run in runs] == [0] * len(runs), runs[1].stdout + runs[1].stderr
    assert "n0001: bios: pushes" in runs[1].stderr
    assert re.search(r"n0001 +out ", runs[1].stdout)
    assert re.search(r"^\d+ outcomes on 1 node: ", runs[1].stdout, re.MULTILINE), "those that wait are not judged"


@pytest.mark.slow(minutes=2)
def test_a_rehearsal_with_a_corrupted_image_fails(runner: Runner) -> None:
    flash_bios(runner, openbmc_archive("2.7.9"))
    _, rehearsed, *_ = runner.job("rehearse")
    said = "bios.bin is not what the bundle declares: its version is 2.7.9, and the bundle says 2.8.0"
    assert (rehearsed.returncode, said in rehearsed.stderr) == (1, True), rehearsed.stdout + rehearsed.stderr


def openbmc_archive(version: str) -> bytes:
    """Return an image that says which version it is."""
    content, manifest = io.BytesIO(), f"purpose=xyz\nversion={version}\n".encode()
    with tarfile.open(fileobj=content, mode="w") as archive:
        member = tarfile.TarInfo("MANIFEST")
        member.size = len(manifest)
        archive.addfile(member, io.BytesIO(manifest))
    return content.getvalue()


@pytest.mark.slow(minutes=2)
def test_the_touched_pools_are_rehearsed_on_the_lab(runner: Runner) -> None:
    runner.commit("specs/nodes/hgx-h100.yaml", "gpu_temperature: {value: 85", "gpu_temperature: {value: 84")
    runs = runner.job("rehearse")
    assert [run.returncode for run in runs] == [0] * len(runs), runs
    assert runs[0].stdout == "h100-a\n"
    assert re.search(r"^.*\d+ passed, \d+ skipped$", runs[1].stdout, re.MULTILINE)  # a week takes more than a rehearsal
    assert (runner.fleet / ".assay-lab/reports/allure/index.html").is_file()
    assert runs[-1].stdout.startswith("the lab is down\n")
