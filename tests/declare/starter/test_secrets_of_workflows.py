"""The secrets that a new fleet refers to reach the commands that need them, on GitHub and on GitLab."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.declare.starter.new_repository import create_repository

ACTS = re.compile(r"\bassay (reconcile|schedules run)\b")
"""Commands that read secrets: they reach BMCs, nodes, ticket systems and people."""
ONLY_OF = {"ASSAY_ALERTS_TOKEN": "serve", "ASSAY_SIGNALS_TOKEN": "serve"}
"""Secrets of one verb, by it: no workflow may call the verb without them."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    create_repository(root := tmp_path_factory.mktemp("new") / "fleet", "both")
    return root


def find_variables(part: Any) -> Iterator[str]:
    """Yield each variable that data of YAML refers to as a secret."""
    if isinstance(part, dict):
        if list(part) == ["env"] and isinstance(part["env"], str):
            yield part["env"]
        part = list(part.values())
    if isinstance(part, list):
        for value in part:
            yield from find_variables(value)


def list_secrets(fleet: Path) -> set[str]:
    files = [file for folder in ("specs", "inventory") for file in (fleet / folder).rglob("*.y*ml")]
    return {
        name for file in files for document in yaml.safe_load_all(file.read_text()) for name in find_variables(document)
    }


def list_steps(fleet: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted((fleet / ".github/workflows").glob("*.yml")):
        for job in yaml.safe_load(file.read_text())["jobs"].values():
            yield from ((file.name, step) for step in job["steps"])


def test_a_reference_in_any_depth_is_found(fleet: Path) -> None:
    assert set(find_variables({"a": [{"b": {"env": "X"}}], "c": {"env": {"Y": "Z"}}})) == {"X"}
    assert {"ASSAY_BMC", "ASSAY_BMC_MONITOR_PASSWORD", *ONLY_OF} <= list_secrets(fleet)


def test_githubs_steps_that_act_get_each_secret_and_no_other_step_gets_one(fleet: Path) -> None:
    needed = list_secrets(fleet) - ONLY_OF.keys()
    acting = 0
    for file, step in list_steps(fleet):
        of_specs = {name: value for name, value in step.get("env", {}).items() if name in list_secrets(fleet)}
        if ACTS.search(step.get("run", "")) and file != "pull-request.yml":
            acting += 1
            assert of_specs == {name: f"${{{{ secrets.{name} }}}}" for name in needed}, (file, step["name"])
        else:
            assert of_specs == {}, (file, step)
    assert acting == 3


def test_a_verb_whose_secret_is_not_passed_is_called_nowhere(fleet: Path) -> None:
    texts = [step.get("run", "") for _, step in list_steps(fleet)] + [(fleet / ".gitlab-ci.yml").read_text()]
    for verb in ONLY_OF.values():
        assert not [text for text in texts if re.search(rf"\bassay {verb}\b", text)]


def test_the_page_about_ci_names_each_secret_and_gitlab_hides_none(fleet: Path) -> None:
    """GitLab gives a job the variables of its environment, unless the file sets one of the same name."""
    page = (fleet / "docs/ci.md").read_text()
    for name in list_secrets(fleet) - ONLY_OF.keys():
        assert f"`{name}`" in page
        assert name not in (fleet / ".gitlab-ci.yml").read_text()
