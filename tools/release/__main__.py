"""`python -m tools.release FOLDER [--packages]`: make what a release publishes, twice alike from the same commit.

FOLDER gets `packages/` (wheel and sdist), `requirements.txt` (this version and all that it needs, each with hashes),
`sbom.cdx.json` (CycloneDX, with licences) and `notes.md`. With --packages it gets only the first two, also of a
version without notes: what images are built from. Runs in the environment of `requirements-release.lock`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tools.release.changelog import NoNotesError, find_notes

ROOT = Path(__file__).parents[2]
NAME = "assay-fleet"
BIN = Path(sys.executable).parent


def main(folder: Path, *, only_packages: bool = False) -> None:
    """Make the files of a release in a folder that is new or empty."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    packages = folder / "packages"
    notes = "" if only_packages else find_notes((ROOT / "CHANGELOG.md").read_text(), version)
    packages.mkdir(parents=True)
    build_packages(packages)
    (folder / "requirements.txt").write_text(f"{format_own_pin(packages, version)}{resolve_requirements()}")
    if not only_packages:
        (folder / "notes.md").write_text(notes)
        write_sbom(folder)


def build_packages(folder: Path) -> None:
    """Build the sdist, and the wheel from it; their times are those of the commit."""
    committed_at = run("git", "log", "-1", "--format=%ct").strip()
    run(BIN / "python", "-m", "build", "--no-isolation", "--outdir", folder, ROOT, SOURCE_DATE_EPOCH=committed_at)
    run(BIN / "twine", "check", "--strict", *folder.iterdir())


def format_own_pin(packages: Path, version: str) -> str:
    """Return the lines of a requirements file that pin this version by the hashes of both packages."""
    return " \\\n".join([f"{NAME}[all]=={version}", *_hashes(packages)]) + "\n"


def _hashes(packages: Path) -> Iterator[str]:
    for package in sorted(packages.iterdir()):
        yield f"    --hash=sha256:{hashlib.sha256(package.read_bytes()).hexdigest()}"


def resolve_requirements() -> str:
    """Return what a fleet needs besides, in the versions that assay was tested with."""
    what = (ROOT / "pyproject.toml", "--extra", "all", "--constraint", ROOT / "requirements.lock")
    where = ("--quiet", "--universal", "--python-version", "3.11")
    form = ("--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate")
    return run(BIN / "uv", "pip", "compile", *where, *form, *what)


def write_sbom(folder: Path) -> None:
    """Write the bill of materials of an environment that has the release, and nothing else."""
    uv, requirements = BIN / "uv", folder / "requirements.txt"
    with tempfile.TemporaryDirectory() as home:
        python = Path(home, "bin", "python")
        run(uv, "venv", "--quiet", "--clear", "--python", BIN / "python", home)
        into = ("--quiet", "--python", python, "--find-links", folder / "packages")
        run(uv, "pip", "install", *into, "--require-hashes", "--requirement", requirements)
        of = (python, "--pyproject", ROOT / "pyproject.toml")
        to = ("--of", "JSON", "--output-reproducible", "--output-file", folder / "sbom.cdx.json")
        run(BIN / "cyclonedx-py", "environment", *of, *to)


def run(*command: str | Path, **environment: str) -> str:
    """Run a command in the checkout and return what it printed. What it says when it fails ends this program."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}tools.release: {Path(command[0]).name} ended with code {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]).absolute(), only_packages="--packages" in sys.argv[2:])
    except (NoNotesError, FileExistsError) as refused:
        sys.exit(f"tools.release: {refused}")
