"""What pip installs can make a fleet repository too: the wheel carries the example, and needs no checkout."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.support.places import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with assay from its wheel. The dependencies are those of this one: nothing is fetched."""
    home = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(home), folder=ROOT)
    (wheel,) = home.glob("*.whl")
    venv.create(home / "venv", with_pip=True)
    python = home / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def run(*words: str | Path, folder: Path | None = None) -> str:
    """Run a command that must end well, and return what it printed."""
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_assay_comes_from_the_wheel(python: Path) -> None:
    assert str(python.parents[1]) in run(python, "-c", "import assay; print(assay.__file__)")


def test_it_makes_a_fleet_that_runs_against_the_lab(python: Path, tmp_path: Path) -> None:
    assay, fleet = python.with_name("assay"), tmp_path / "ours"
    run(assay, "init", fleet)
    assert ": no problems" in run(assay, "check", folder=fleet)
    run(assay, "lab", "up", folder=fleet)
    try:
        assert run(assay, "reconcile", "--once", folder=fleet).count("starts in production") == 4
        assert " passed" in run(python, "-m", "pytest", "suites", "-k", "n0001 and pcie", folder=fleet)
    finally:
        run(assay, "lab", "down", folder=fleet)
