"""A fleet's packages are installed by hash: the lock is made from what pip would install, and pip is held to it."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.declare.starter.new_repository import OWN_FILES
from assay.declare.starter.requirement_hashes import format_lock
from assay.model.errors import AssayError

ENVIRONMENT = {"python_version": "3.12", "platform_system": "Linux", "platform_machine": "x86_64"}


def report(*packages: dict[str, Any]) -> str:
    return json.dumps({"version": "1", "install": packages, "environment": ENVIRONMENT})


def package(name: str, version: str, **archive: Any) -> dict[str, Any]:
    info = {"url": f"https://example.org/{name}.whl", **archive}
    return {"metadata": {"name": name, "version": version}, "download_info": info}


def test_the_lock_has_versions_and_hashes_and_names_no_index() -> None:
    text = format_lock(
        report(
            package("Rich", "14.0", archive_info={"hashes": {"sha256": "ab"}}),
            package("assay-fleet", "1.0", archive_info={"hashes": {"sha256": "cd"}}),
        )
    )
    pins = [line for line in text.splitlines() if not line.startswith("#")]
    assert pins == ["assay-fleet==1.0 \\", "    --hash=sha256:cd", "rich==14.0 \\", "    --hash=sha256:ab"]
    assert "Python 3.12 on Linux x86_64" in text
    assert "example.org" not in text


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no installation report"),
        ("[]", "no installation report"),
        (report(), "names no package"),
        (report(package("own", "1", vcs_info={"vcs": "git"})), "own 1 comes from https:, without a hash"),
        (report(package("own", "1", archive_info={})), "own 1 comes from https:, without a hash"),
    ],
)
def test_what_gives_no_lock_is_told(text: str, what: str) -> None:
    with pytest.raises(AssayError) as refused:
        format_lock(text)
    assert what in refused.value.what
    assert refused.value.fix


def _wheel(folder: Path, version: str) -> Path:
    file = folder / f"own-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr("own.py", f"version = {version!r}\n")
        wheel.writestr(f"own-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: own\nVersion: {version}\n")
        wheel.writestr(
            f"own-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"own-{version}.dist-info/RECORD", "")
    return file


@pytest.mark.slow
def test_pip_installs_what_the_lock_names_and_nothing_else(tmp_path: Path) -> None:
    def pip(*words: str) -> subprocess.CompletedProcess[str]:
        base = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--find-links", ".", *words]
        return subprocess.run(base, cwd=tmp_path, capture_output=True, text=True, check=False)

    wheel, lock, wanted = _wheel(tmp_path, "1.0"), tmp_path / "requirements.lock", tmp_path / "requirements.txt"
    wanted.write_text("own==1.0\n")
    lock.write_text(format_lock(pip("--ignore-installed", "--quiet", "--report", "-", "-r", wanted.name).stdout))
    held = ("--require-hashes", "--requirement", lock.name)
    assert "Would install own-1.0" in pip(*held).stdout
    wheel.write_bytes(_wheel(tmp_path, "1.0").read_bytes() + b"\0")
    assert "HASH" in pip(*held).stderr.upper()


def test_the_starter_installs_by_hash_where_there_is_a_lock_and_says_so_where_there_is_none() -> None:
    action = yaml.safe_load((OWN_FILES / ".github/actions/install/action.yml").read_text())
    (script,) = [step["run"] for step in action["runs"]["steps"] if "requirements" in step.get("run", "")]
    with_lock, _, without = script.partition("else\n")
    assert "--require-hashes --requirement requirements.lock" in with_lock
    assert "::warning::" in without
