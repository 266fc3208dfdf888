"""What `assay init` writes into `requirements.txt`: where this assay came from, so that CI can install it too."""

from __future__ import annotations

import json
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import pytest

from assay.declare.starter.new_repository import make_requirement

WHEEL = "assay_fleet-1.2-py3-none-any.whl"


def installed(folder: Path, origin: dict[str, Any] | None) -> PathDistribution:
    info = folder / "assay_fleet-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: assay-fleet\nVersion: 1.2\n")
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps(origin))
    return PathDistribution(info)


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (None, "assay-fleet[all]==1.2"),
        (
            {"url": "https://example.org/assay.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            "assay-fleet[all] @ git+https://example.org/assay.git@c0ffee",
        ),
        (
            {"url": f"https://example.org/{WHEEL}", "archive_info": {"hashes": {"sha256": "ab"}}},
            f"assay-fleet[all] @ https://example.org/{WHEEL}#sha256=ab",
        ),
        (
            {"url": f"https://example.org/{WHEEL}", "archive_info": {}},
            f"assay-fleet[all] @ https://example.org/{WHEEL}",
        ),
    ],
    ids=["index", "git", "wheel with hash", "wheel"],
)
def test_it_names_where_assay_came_from(tmp_path: Path, origin: dict[str, Any] | None, requirement: str) -> None:
    assert make_requirement(installed(tmp_path, origin)) == f"{requirement}\n"


@pytest.mark.parametrize("origin", [{"archive_info": {}}, {"dir_info": {"editable": True}}], ids=["wheel", "checkout"])
def test_a_file_of_one_machine_is_not_named_and_the_ways_out_are(tmp_path: Path, origin: dict[str, Any]) -> None:
    text = make_requirement(installed(tmp_path, {"url": "file:///home/ann/assay", **origin}))
    *comments, requirement = text.splitlines()
    assert requirement == "assay-fleet[all]==1.2"
    assert "/home/ann" not in text
    assert all(line.startswith("#") for line in comments)
    assert [line for line in comments if "wheels/" in line or "git+https:" in line]
