"""`make dist` makes the same release twice; pip installs it by hashes, and its bill names every package."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tools.release.changelog import NoNotesError, find_notes

CHANGELOG = """# Changelog

## Unreleased

## 0.2.0 (2026-12-01)

### Fabric

- Something new.

## 0.1.0

- The first.
"""


@pytest.mark.parametrize(
    ("version", "notes"), [("0.2.0", "### Fabric\n\n- Something new.\n"), ("0.1.0", "- The first.\n")]
)
def test_the_notes_are_what_the_changelog_says_of_the_version(version: str, notes: str) -> None:
    assert find_notes(CHANGELOG, version) == notes


@pytest.mark.parametrize("version", ["0.3.0", "0.2", "Unreleased"])
def test_a_version_without_notes_is_refused(version: str) -> None:
    with pytest.raises(NoNotesError, match=re.escape(f"'## {version} (DATE)'")):
        find_notes(CHANGELOG, version)


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two clones of one commit in which the changelog names the version. The second has the first's environment."""
    first, second = (tmp_path_factory.mktemp("release") / name for name in ("first", "second"))
    run("git", "clone", "--quiet", ROOT, first)
    changelog = first / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## Unreleased", "## 0.1.0 (2026-12-01)", 1))
    by = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    run("git", *by, "commit", "--quiet", "--no-verify", "--all", "--message", "release 0.1.0", folder=first)
    run("git", "clone", "--quiet", first, second)
    made = subprocess.run(["make", "dist"], cwd=first, capture_output=True, text=True, check=False)
    if made.returncode and "No matching distribution" in made.stderr:
        pytest.skip("no package index here: let pip reach one, by its own configuration")
    assert made.returncode == 0, made.stdout + made.stderr
    (second / ".venv-release").symlink_to(first / ".venv-release")
    run("make", "dist", folder=second)
    return [clone / "dist" / "release" for clone in (first, second)]


def run(*words: str | Path, folder: Path | None = None) -> str:
    """Run a command that must end well, and return what it printed."""
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow(minutes=4)
def test_two_releases_of_one_commit_are_alike(clones: list[Path]) -> None:
    first, second = (
        {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        for folder in clones
    )
    assert sorted(first) == sorted(second)
    assert [name for name, content in first.items() if second[name] != content] == []
    assert {Path(name).suffix for name in first if name.startswith("packages/")} == {".whl", ".gz"}


@pytest.mark.slow
def test_its_requirements_pin_both_packages_and_name_no_index(clones: list[Path]) -> None:
    text = (clones[0] / "requirements.txt").read_text()
    for package in (clones[0] / "packages").iterdir():
        assert f"--hash=sha256:{hashlib.sha256(package.read_bytes()).hexdigest()}" in text
    pins = re.findall(r"^([a-z0-9.-]+)(?:\[all\])?==", text, re.MULTILINE)
    tested = dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    assert "duckdb" in pins
    assert set(pins) - {"assay-fleet"} <= set(tested), "each was tested with assay"
    assert "://" not in text


@pytest.mark.slow
def test_its_bill_names_every_package_with_its_version_and_no_path(clones: list[Path]) -> None:
    text = (clones[0] / "sbom.cdx.json").read_text()
    bill = json.loads(text)
    own = bill["metadata"]["component"]
    assert (own["name"], own["version"]) == ("assay-fleet", "0.1.0")
    versions = {one["name"].lower().replace("_", "-"): one["version"] for one in bill["components"]}
    assert {"duckdb", "sqlalchemy", "kubernetes", "starlette"} <= versions.keys()
    assert f"sqlalchemy=={versions['sqlalchemy']}" in (clones[0] / "requirements.txt").read_text()
    assert "file://" not in text
    assert str(clones[0].parents[1]) not in text
