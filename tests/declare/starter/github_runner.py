"""Runs jobs of a repository's GitHub workflows as a runner does: step by step, as they are written.

The actions of other people are played: checkout clones, uploads must find their files. Actions of the repository are
run. What this runner does not know of a workflow, it refuses: no key, expression or action is passed over in silence.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from tests.declare.starter.forge import MAIN, NAME, NOBODY, Forge, PullRequest, git
from tests.declare.starter.github_api import GitHubApi

JOB_KEYS = {"name", "runs-on", "timeout-minutes", "environment", "env", "permissions", "steps", "if"}
STEP_KEYS = {"name", "id", "if", "uses", "with", "run", "env", "shell"}
SHELLS = {"": ["bash", "-e"], "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"]}
_TOKEN = re.compile(r"\s*(?:(&&|\|\||[!=]=|[!(),])|'((?:[^']|'')*)'|([A-Za-z_][\w.-]*))")
_OPERATORS = {"&&": " and ", "||": " or ", "!": " not "}
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")


@dataclass
class StepRun:
    """A step that was due, and how it ended."""

    name: str
    outcome: Literal["success", "failure"]
    stdout: str = ""
    stderr: str = ""


@dataclass
class JobRun:
    """The steps of a job that ran, its summary, and the files that it uploaded by the name of the artifact."""

    steps: list[StepRun] = field(default_factory=list)
    summary: str = ""
    artifacts: dict[str, list[Path]] = field(default_factory=dict)

    @property
    def is_green(self) -> bool:
        """Whether no step failed."""
        return all(step.outcome == "success" for step in self.steps)

    @property
    def failed(self) -> StepRun:
        """The first step that failed."""
        return next(step for step in self.steps if step.outcome == "failure")

    def step(self, name: str) -> StepRun:
        """Return the step whose name, or script, begins so."""
        (found,) = [step for step in self.steps if step.name.startswith(name)]
        return found

    def __str__(self) -> str:
        return "\n".join(f"[{step.outcome}] {step.name}\n{step.stdout}{step.stderr}" for step in self.steps)


@dataclass
class GitHub:
    """What GitHub knows: the repository, its API, its secrets and those of each environment; its machines in `folder`.

    With `variables` for its machines, such as where pip finds packages, they install assay as the action is written;
    without, it is on their path already.
    """

    forge: Forge
    folder: Path
    api: GitHubApi
    secrets: Mapping[str, str] = field(default_factory=dict)
    environments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    _jobs: int = 0

    def __post_init__(self) -> None:
        self.api.tokens = {}

    def run_pull_request(self, pull: PullRequest, *jobs: str) -> dict[str, JobRun]:
        """Run jobs (none: all) of `pull-request.yml` of the merge, each on a new machine."""
        commit = git(self.forge.remote, "rev-parse", pull.merge_ref)
        event = {"pull_request": {"number": pull.number}}
        facts = {"GITHUB_BASE_REF": MAIN, "GITHUB_SHA": commit, "GITHUB_REF_NAME": f"{pull.number}/merge"}
        workflow = self._read("pull-request.yml", commit)
        return {
            name: self._run(workflow, name, event, facts, self._make_folder(), pull.merge_ref)
            for name in jobs or workflow["jobs"]
        }

    def run_fleet(self, file: str, commit: str = "") -> JobRun:
        """Run the job of `merge.yml` or `scheduled.yml` on the fleet's own machine, whose folder stays as it is."""
        commit = commit or self.forge.head
        workflow = self._read(file, commit)
        (name,) = workflow["jobs"]
        facts = {"GITHUB_SHA": commit, "GITHUB_REF_NAME": MAIN}
        event = {"repository": {"default_branch": MAIN}}
        (workspace := self.folder / "assay-fleet").mkdir(exist_ok=True)
        return self._run(workflow, name, event, facts, workspace, f"refs/heads/{MAIN}")

    def _read(self, file: str, commit: str) -> dict[str, Any]:
        return dict(yaml.safe_load(git(self.forge.remote, "show", f"{commit}:.github/workflows/{file}")))

    def _make_folder(self) -> Path:
        self._jobs += 1
        (folder := self.folder / f"job-{self._jobs}").mkdir()
        return folder

    def _run(
        self, workflow: dict[str, Any], name: str, event: object, facts: dict[str, str], workspace: Path, ref: str
    ) -> JobRun:
        job = workflow["jobs"][name]
        assert job.keys() <= JOB_KEYS, f"{name} has keys that this runner does not know: {job.keys() - JOB_KEYS}"
        temp = self._make_folder()
        (temp / "event.json").write_text(json.dumps(event))
        token = f"token-{self._jobs}"
        assert self.api.tokens is not None
        self.api.tokens[token] = job.get("permissions", workflow.get("permissions", {}))
        secrets = {**self.secrets, **self.environments.get(job.get("environment", ""), {})}
        runner = _JobRunner(self, workspace, temp, ref, facts, secrets, token)
        runner.known |= _flatten(event, "github.event")
        runner.environment |= runner.fill_all({**workflow.get("env", {}), **job.get("env", {})})
        assert runner.is_due(job, JobRun()), f"{name}: its `if` does not hold"
        for step in job["steps"]:
            runner.run_step(step)
        summary = temp / "summary.md"
        runner.job.summary = summary.read_text() if summary.exists() else ""
        return runner.job


class _JobRunner:
    """Runs the steps of one job in `workspace`. `known` holds the values that expressions may name."""

    def __init__(
        self,
        github: GitHub,
        workspace: Path,
        temp: Path,
        ref: str,
        facts: Mapping[str, str],
        secrets: Mapping[str, str],
        token: str,
    ) -> None:
        self.github, self.workspace, self.temp, self.ref, self.job = github, workspace, temp, ref, JobRun()
        self.path = github.variables.get("PATH") or f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith(("ASSAY_", "GIT", "PYTEST_"))},
            **NOBODY,
            **github.variables,
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": github.api.url,
            "GITHUB_EVENT_PATH": str(temp / "event.json"),
            "GITHUB_PATH": str(temp / "path"),
            "GITHUB_REPOSITORY": NAME,
            "GITHUB_SERVER_URL": github.forge.folder.as_uri(),
            "GITHUB_STEP_SUMMARY": str(temp / "summary.md"),
            "GITHUB_WORKSPACE": str(workspace),
            "RUNNER_TEMP": str(temp),
            **facts,
        }
        self.known = {
            "github.token": token,
            "github.ref_name": facts["GITHUB_REF_NAME"],
            "github.run_id": "1",
            "runner.temp": str(temp),
            **{f"secrets.{name}": text for name, text in secrets.items()},
        }

    def run_step(self, step: dict[str, Any], inputs: Mapping[str, str] = {}, first: int = 0) -> None:
        """Run a step if it is due. For a step of an action, only the steps from `first` on tell failures."""
        assert step.keys() <= STEP_KEYS, f"keys that this runner does not know: {step.keys() - STEP_KEYS}"
        if not self.is_due(step, JobRun(self.job.steps[first:])):
            return
        self.known |= {f"inputs.{name}": text for name, text in inputs.items()}
        before = len(self.job.steps)
        if "run" in step:
            self._run_script(step)
        else:
            self._use(step["uses"].partition("@")[0], self.fill_all(step.get("with", {})))
        if ident := step.get("id"):
            outcome = "success" if all(run.outcome == "success" for run in self.job.steps[before:]) else "failure"
            self.known[f"steps.{ident}.outcome"] = outcome

    def is_due(self, part: Mapping[str, Any], job: JobRun) -> bool:
        """Whether the `if` of a job or step holds; without a word on failures, it asks that none was before."""
        condition = str(part.get("if", "success()"))
        holds = {"success": job.is_green, "failure": not job.is_green, "always": True}
        if not any(f"{name}()" in condition for name in holds):
            condition = f"success() && ({condition})"
        return bool(self._evaluate(condition, holds))

    def fill_all(self, texts: Mapping[str, object]) -> dict[str, str]:
        """Return the texts with the values of their expressions. YAML's `true` is `true`."""
        return {name: self._fill(text) for name, text in texts.items()}

    def _fill(self, text: object) -> str:
        plain = json.dumps(text) if isinstance(text, bool | int) else str(text)
        return _EXPRESSION.sub(lambda found: str(self._evaluate(found[1], {})), plain)

    def _evaluate(self, expression: str, holds: Mapping[str, bool]) -> object:
        """Return the value of an expression. A word that this runner does not know is an error; no secret is ""."""
        parts, rest = [], expression.strip()
        functions: dict[str, Any] = {name: (lambda held=held: held) for name, held in holds.items()}
        functions["hashFiles"] = self._hash_file
        while rest:
            token = _TOKEN.match(rest)
            assert token, f"this runner cannot read {rest!r} of {expression!r}"
            operator, text, word = token.groups()
            rest = rest[token.end() :].strip()
            if operator:
                parts.append(_OPERATORS.get(operator, operator))
            elif text is not None:
                parts.append(repr(text.replace("''", "'")))
            elif rest.startswith("("):
                parts.append(word)
            else:
                parts.append(repr(self.known.get(word, "") if word.startswith("secrets.") else self.known[word]))
        return eval("".join(parts), {"__builtins__": {}}, functions)

    def _hash_file(self, path: str) -> str:
        file = self.workspace / path
        return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""

    def _run_script(self, step: Mapping[str, Any], action: Path | None = None) -> None:
        own = self.fill_all(step.get("env", {}))
        if action:
            own["GITHUB_ACTION_PATH"] = str(action)
        words = [*SHELLS[step.get("shell", "")], "-c", step["run"]]
        environment = {**self.environment, "PATH": self._read_path(), **own}
        run = subprocess.run(words, cwd=self.workspace, env=environment, capture_output=True, text=True, check=False)
        name = step.get("name", step["run"])
        self.job.steps.append(StepRun(name, "failure" if run.returncode else "success", run.stdout, run.stderr))

    def _read_path(self) -> str:
        """Return the PATH of the next step: what earlier ones wrote goes first."""
        added = self.temp / "path"
        return ":".join([*(added.read_text().split() if added.exists() else []), self.path])

    def _use(self, action: str, given: Mapping[str, str]) -> None:
        match action:
            case "actions/checkout":
                self._checkout(given)
            case "actions/upload-artifact":
                self._upload(given)
            case "actions/setup-python" | "actions/setup-node" | "actions/cache/restore" | "actions/cache/save":
                pass
            case "./.github/actions/install" if not self.github.variables:
                assert (self.workspace / action / "action.yml").is_file()
            case _:
                assert action.startswith("./"), f"this runner does not know the action {action}"
                self._use_own(self.workspace / action, given)

    def _use_own(self, folder: Path, given: Mapping[str, str]) -> None:
        """Run an action of the repository."""
        action = yaml.safe_load((folder / "action.yml").read_text())
        wanted = action.get("inputs", {})
        missing = [name for name, facts in wanted.items() if facts.get("required") and name not in given]
        assert not missing, f"{folder.name}: inputs are missing: {missing}"
        assert given.keys() <= wanted.keys(), f"{folder.name} has no such inputs: {given.keys() - wanted.keys()}"
        first = len(self.job.steps)
        for step in action["runs"]["steps"]:
            assert "uses" in step or "shell" in step, "a script of an action must name its shell"
            self.environment["GITHUB_ACTION_PATH"] = str(folder)
            self.run_step(step, given, first)

    def _checkout(self, given: Mapping[str, str]) -> None:
        remote, commit = self.github.forge.remote.as_uri(), self.environment["GITHUB_SHA"]
        if not (self.workspace / ".git").exists():
            git(self.workspace, "init", "--quiet", f"--initial-branch={MAIN}")
            git(self.workspace, "remote", "add", "origin", remote)
        elif given.get("clean", "true") == "true":
            git(self.workspace, "clean", "-ffdx")
        if given.get("fetch-depth", "1") == "0":
            git(
                self.workspace, "fetch", "--quiet", "--prune", "origin", "+refs/heads/*:refs/remotes/origin/*", self.ref
            )
        else:
            git(self.workspace, "fetch", "--quiet", "--depth=1", "origin", commit)
        branch = ["-B", MAIN] if self.ref == f"refs/heads/{MAIN}" else ["--detach"]
        git(self.workspace, "checkout", "--quiet", "--force", *branch, commit)

    def _upload(self, given: Mapping[str, str]) -> None:
        places = [self.workspace / path for path in given["path"].split()]
        found = [place for place in places if place.exists()]
        if not found and given.get("if-no-files-found") == "error":
            self.job.steps.append(StepRun("upload", "failure", stderr=f"no file of {given['path'].split()}"))
        self.job.artifacts[given["name"]] = found


def _flatten(data: object, name: str) -> dict[str, str]:
    """Return the leaves of nested mappings by their dotted names."""
    if not isinstance(data, Mapping):
        return {name: str(data)}
    return {leaf: text for key, part in data.items() for leaf, text in _flatten(part, f"{name}.{key}").items()}
