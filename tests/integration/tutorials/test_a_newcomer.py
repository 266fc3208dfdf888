"""Somebody who has nothing but Python, or a clone, comes as far as the documentation says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.tutorials.newcomer_box import HOME, bwrap_words
from tests.integration.tutorials.tutorial import TutorialCommand, read_tutorial
from tests.support.places import ROOT

FLEET = f"{HOME}/fleet"


@pytest.mark.slow(minutes=3)
@pytest.mark.skipif(not shutil.which("bwrap"), reason="bwrap is not installed: apt-get install bubblewrap")
def test_the_wheel_is_enough_on_a_machine_with_nothing_but_python(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    shutil.copy(Path(__file__).with_name("newcomer_box.py"), tmp_path)
    machine = Machine(tmp_path)
    machine.run([HOME, "python3", "-m", "venv", f"{HOME}/venv"])
    core = machine.run([HOME, "pip", "install", "--quiet", f"{HOME}/{wheel.name}"], may_fail=True)
    if "No matching distribution" in core:
        pytest.skip("no package index here: let pip reach one, by its own configuration")
    machine.run([HOME, "assay", "init", FLEET])
    assert "no problems" in machine.run([FLEET, "assay", "check"])
    assert "assay-fleet[lab]" in machine.run([FLEET, "assay", "lab", "up"], may_fail=True)
    machine.run([HOME, "pip", "install", "--quiet", f"{HOME}/{wheel.name}[all]"])
    up, once, status, page, down = machine.run_all(
        [FLEET, "assay", "lab", "up"],
        [FLEET, "assay", "reconcile", "--once"],
        [FLEET, "assay", "status"],
        [FLEET, "open-page"],
        [FLEET, "assay", "lab", "down"],
    )
    assert "the lab is up: 4 nodes" in up
    assert "n0001: serial number A520112X4400001, by its BMC" in once
    assert "4 production" in status
    assert "n0003" in page
    assert "the lab is down" in down
    machine.run([HOME, "pip", "uninstall", "--quiet", "--yes", "assay-fleet"])
    left = (file for file in tmp_path.glob("venv/**/assay/**/*") if file.is_file())
    assert [file for file in left if "__pycache__" not in file.parts] == [], "pip leaves what Python has compiled"


class Machine:
    """Runs commands on the bare machine whose home is this folder."""

    def __init__(self, home: Path) -> None:
        self.words = [*bwrap_words(home), "python3", f"{HOME}/newcomer_box.py"]

    def run_all(self, *commands: list[str], may_fail: bool = False) -> list[str]:
        """Run commands one after the other on the machine, which ends after them; return what each printed."""
        asked = json.dumps({"commands": commands})
        done = subprocess.run(self.words, input=asked, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        answers: list[dict[str, Any]] = json.loads(done.stdout)
        for command, answer in zip(commands, answers, strict=True):
            assert may_fail or answer["code"] == 0, f"{command}: {answer['out']}"
        return [answer["out"] for answer in answers]

    def run(self, command: list[str], *, may_fail: bool = False) -> str:
        """Run one command."""
        return self.run_all(command, may_fail=may_fail)[0]


@pytest.mark.slow(minutes=8)
def test_a_clone_does_what_the_readme_says(tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone := tmp_path / "clone")], check=True)
    commands = [step.words for step in read_tutorial(ROOT / "README.md") if isinstance(step, TutorialCommand)]
    last = next(number for number, words in enumerate(commands) if words.startswith(".venv/bin/pytest suites"))
    assert commands[0].startswith("make run ")
    for words in commands[: last + 1]:
        done = subprocess.run(["bash", "-c", words], cwd=clone, capture_output=True, text=True, check=False)
        if "No matching distribution" in done.stderr:
            pytest.skip("no package index here: let pip reach one, by its own configuration")
        assert done.returncode in (0, 1), f"$ {words}\n{done.stdout}{done.stderr}"
        assert done.stdout
