"""The recipe of the images: pinned, without root, and each target starts what it says."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
import yaml
from click import Command
from typer.main import get_command

from assay.cli.app import load_verb
from tests.deploy.manifests import DEPLOY, HELM_PYTHON, needs_helm
from tests.deploy.recipe import FILE, STAGES, find_last
from tests.support.places import ROOT

reconcile_app = load_verb("reconcile")
serve_app = load_verb("serve")

SCRIPT = ROOT / "tools" / "images"
TARGETS = {"controller", "serve", "agent", "checks", "load"}
COMMANDS: dict[str, Command] = {"reconcile": get_command(reconcile_app), "serve": get_command(serve_app)}


def test_every_stage_begins_from_the_one_image_that_its_digest_names() -> None:
    assert {stage.base for stage in STAGES.values()} - STAGES.keys() == {"${BASE}"}
    assert STAGES.keys() == TARGETS | {"base", "built"}
    head = FILE.read_text().partition("FROM")[0]
    assert "ARG BASE\n" in head, "without a default"


def test_every_image_runs_as_a_user_without_rights_that_has_a_name() -> None:
    assert {find_last(name, "USER") for name in TARGETS} == {"65532:65532"}
    assert any("65532:65532:assay" in words and "/etc/passwd" in words for _, words in STAGES["base"].said)


def test_what_is_installed_by_pip_has_hashes_but_the_libraries_of_cuda() -> None:
    installs = [
        part
        for stage in STAGES.values()
        for name, words in stage.said
        if name == "RUN"
        for part in words.split("&&")
        if " install " in part and "pip" in part
    ]
    assert len(installs) == 3
    assert ["jax[cuda" in part for part in installs if "--require-hashes" not in part] == [True]


def test_each_command_of_an_image_is_one_of_assay() -> None:
    for target, verb in (("controller", "reconcile"), ("serve", "serve")):
        assert json.loads(find_last(target, "ENTRYPOINT")) == ["assay"]
        said, *words = json.loads(find_last(target, "CMD"))
        assert said == verb
        assert COMMANDS[verb].make_context(verb, words).args == []
    assert json.loads(find_last("agent", "ENTRYPOINT"))[-1] == "/assay-agent.pyz"


def test_the_script_and_the_chart_know_the_same_images() -> None:
    (built,) = re.findall(r"set -- (.*)", SCRIPT.read_text())
    assert set(built.split()) == TARGETS
    values = yaml.safe_load((DEPLOY / "chart" / "values.yaml").read_text())
    assert set(values["images"]) == TARGETS - {"load"}, "a pool of the inventory names the load's image"


@pytest.mark.parametrize("base", ["", "docker.io/library/python:3.11", "python@sha512:5e"])
def test_a_base_without_a_digest_is_refused(base: str) -> None:
    done = subprocess.run([SCRIPT, base], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "by its digest" in done.stderr


@needs_helm
def test_hadolint_finds_no_mistake_in_the_recipe() -> None:
    done = subprocess.run([HELM_PYTHON.parent / "hadolint", FILE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
