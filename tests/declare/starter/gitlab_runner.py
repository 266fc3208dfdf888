"""Runs jobs of a repository's GitLab pipeline as GitLab's runner does: line by line, as they are written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.declare.starter.forge import MAIN, NOBODY, Forge, PullRequest, git

GLOBAL = ("workflow", "stages", "variables")
JOB_KEYS = {
    *("extends", "stage", "image", "interruptible", "rules", "needs", "timeout", "tags", "resource_group"),
    *("variables", "allow_failure", "environment", "hooks", "before_script", "script", "after_script", "artifacts"),
}


def read_jobs(text: str) -> dict[str, dict[str, Any]]:
    """Return the jobs of a pipeline with what they extend. Mappings merge, other values replace, as GitLab does."""
    pipeline: dict[str, Any] = yaml.safe_load(text)

    def resolve(name: str) -> dict[str, Any]:
        own = pipeline[name]
        base = resolve(own["extends"]) if "extends" in own else {}
        merged = {
            key: {**base[key], **value} if isinstance(value, dict) and isinstance(base.get(key), dict) else value
            for key, value in own.items()
        }
        return {**base, **merged}

    return {name: resolve(name) for name in pipeline if name not in GLOBAL and not name.startswith(".")}


def run_script(
    script: str | list[str], folder: Path, world: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script as GitLab's runner does: the lines in one shell, which ends at the first that fails."""
    text = script if isinstance(script, str) else "\n".join(script)
    command = ["bash", "-c", f"set -eo pipefail\n{text}"]
    env = {**os.environ, **(world or {})}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@dataclass(frozen=True)
class GitLabJob:
    """How a job ended: its script, and what it did afterwards. `artifacts` are the files that GitLab keeps."""

    script: subprocess.CompletedProcess[str]
    after: subprocess.CompletedProcess[str] | None
    artifacts: tuple[Path, ...]

    @property
    def is_green(self) -> bool:
        """Whether its script ended well; what comes afterwards fails no job."""
        return self.script.returncode == 0

    def __str__(self) -> str:
        after = f"{self.after.stdout}{self.after.stderr}" if self.after else ""
        return f"{self.script.stdout}{self.script.stderr}\nafterwards:\n{after}"


@dataclass
class GitLab:
    """What GitLab knows: the repository, the variables of each environment, and those of its machines in `folder`."""

    forge: Forge
    folder: Path
    environments: Mapping[str, Mapping[str, str]]
    variables: Mapping[str, str]
    _jobs: int = 0

    def run_merge_request(self, pull: PullRequest, name: str) -> GitLabJob:
        """Run a job for the head of a branch, on a new machine."""
        self._jobs += 1
        (folder := self.folder / f"job-{self._jobs}").mkdir(parents=True)
        commit = git(self.forge.remote, "rev-parse", pull.branch)
        facts = {
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": MAIN,
            "CI_COMMIT_SHA": commit,
        }
        return self._run(name, commit, facts, folder)

    def run_fleet(self, name: str, source: str) -> GitLabJob:
        """Run `apply` or `scheduled` on the fleet's own machine, whose folder stays as it is."""
        (folder := self.folder / "assay-fleet").mkdir(parents=True, exist_ok=True)
        facts = {"CI_PIPELINE_SOURCE": source, "CI_COMMIT_BRANCH": MAIN, "CI_COMMIT_SHA": self.forge.head}
        return self._run(name, self.forge.head, facts, folder)

    def _run(self, name: str, commit: str, facts: dict[str, str], folder: Path) -> GitLabJob:
        text = git(self.forge.remote, "show", f"{commit}:.gitlab-ci.yml")
        job = read_jobs(text)[name]
        assert job.keys() <= JOB_KEYS, f"{name} has keys that this runner does not know: {job.keys() - JOB_KEYS}"
        variables = {**yaml.safe_load(text)["variables"], **job.get("variables", {})}
        assert str(variables["GIT_DEPTH"]) == "0"
        environment = job.get("environment", "")
        named = environment if isinstance(environment, str) else environment["name"]
        env = {
            **{name: text for name, text in os.environ.items() if not name.startswith(("ASSAY_", "GIT", "PYTEST_"))},
            **NOBODY,
            **{key: str(text) for key, text in variables.items()},
            **self.variables,
            **self.environments.get(named, {}),
            **facts,
            "CI": "true",
            "CI_REPOSITORY_URL": self.forge.remote.as_uri(),
        }
        for hook in job.get("hooks", {}).get("pre_get_sources_script", []):
            if (done := _run_lines([hook], folder, env)).returncode:
                return GitLabJob(done, None, ())
        if variables.get("GIT_STRATEGY") != "none":
            self._checkout(folder, commit, clean=variables.get("GIT_CLEAN_FLAGS") != "none")
        done = _run_lines([*job.get("before_script", []), *job["script"]], folder, env)
        after = _run_lines(job["after_script"], folder, env) if "after_script" in job else None
        wanted = job.get("artifacts", {})
        paths = [*wanted.get("paths", []), *wanted.get("reports", {}).values()]
        return GitLabJob(done, after, tuple(folder / path for path in paths if (folder / path).exists()))

    def _checkout(self, folder: Path, commit: str, *, clean: bool) -> None:
        if not (folder / ".git").exists():
            git(folder, "init", "--quiet", f"--initial-branch={MAIN}")
            git(folder, "remote", "add", "origin", self.forge.remote.as_uri())
        elif clean:
            git(folder, "clean", "-ffdx")
        git(folder, "fetch", "--quiet", "origin", commit)
        git(folder, "checkout", "--quiet", "--force", "--detach", commit)


def _run_lines(lines: list[str], folder: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    words = ["bash", "-c", "set -eo pipefail\n" + "\n".join(lines)]
    return subprocess.run(words, cwd=folder, env=dict(env), capture_output=True, text=True, check=False)
