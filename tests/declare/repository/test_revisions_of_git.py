"""A revision is read straight from git's objects: without a checkout, whatever the folder holds meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from assay.declare.loader import build_fleet, load_fleet, read_draft
from assay.declare.repository.signed_commits import read_head_commit
from assay.declare.repository.tree import CommitTree, RepositoryTree, WorkingFolder
from assay.declare.yaml import ParseCache
from assay.model.errors import AssayError
from tests.support.places import SMALLEST

POOL = "inventory/pool.yml"


def git(root: Path, *command: str) -> str:
    """Run git as somebody, untouched by this machine's own settings."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    run = subprocess.run(
        ["git", "-C", str(root), *who, *command], capture_output=True, text=True, check=True, env=environment
    )
    return run.stdout.strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The smallest fleet, committed, in a folder of a larger repository."""
    root = tmp_path / "monorepo" / "fleet"
    shutil.copytree(SMALLEST, root, ignore=shutil.ignore_patterns("__pycache__"))
    git(tmp_path / "monorepo", "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


def test_a_revision_gives_the_fleet_that_the_folder_gave(root: Path) -> None:
    old, now = load_fleet(root, rev="HEAD"), load_fleet(root)
    assert (old.nodes, old.node_specs, old.lines) == (now.nodes, now.node_specs, now.lines)
    assert (old.commit, old.dirty) == (now.commit, now.dirty) == (git(root, "rev-parse", "HEAD"), False)


def test_a_repository_of_another_user_is_not_one_without_commits(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = git(root, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    with pytest.raises(AssayError, match="it belongs to another user") as refused:
        load_fleet(root)
    assert f"git config --global --add safe.directory {root.parent}" in refused.value.fix
    (root.parent / "settings").write_text(f"[safe]\n\tdirectory = {root.parent}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(root.parent / "settings"))
    assert load_fleet(root).commit == commit


def test_what_is_changed_or_deleted_in_the_folder_does_not_change_the_revision(root: Path) -> None:
    (root / POOL).write_text((root / POOL).read_text().replace("S2", "S3"))
    shutil.rmtree(root / "suites")
    assert load_fleet(root, rev="HEAD").nodes["n2"].serial == "S2"
    assert len(read_draft(root, rev="HEAD").suites.tests) == 1
    dirty = load_fleet(root)
    assert (dirty.nodes["n2"].serial, dirty.dirty) == ("S3", True)


def test_an_older_revision_is_read_as_it_was(root: Path) -> None:
    (root / POOL).write_text((root / POOL).read_text().replace("S2", "S3"))
    git(root, "commit", "-qam", "second")
    assert load_fleet(root, rev="HEAD~1").nodes["n2"].serial == "S2"
    assert load_fleet(root, rev="HEAD").nodes["n2"].serial == "S3"


def test_a_folder_and_its_commit_list_the_same_files_in_the_same_order(root: Path) -> None:
    (root / "inventory" / "a-b").mkdir()
    for name in ("a-b/x.yml", "a.yml", "a-b.yml", "Z.yml"):
        (root / "inventory" / name).write_text("# nobody\n")
    (root / "inventory" / "link.yml").symlink_to("a.yml")
    (root / "inventory" / "out.yml").symlink_to("/etc/hostname")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    trees: list[RepositoryTree] = [WorkingFolder(root), CommitTree(root, "HEAD")]
    on_disk, in_git = (tree.files("inventory") for tree in trees)
    assert [path for path in on_disk if path != "inventory/out.yml"] == in_git  # git never leads out of the repository
    assert all(len({tree.read(path, 1000) for tree in trees}) == 1 for path in in_git)


@pytest.mark.parametrize("rev", ["nowhere", "--output=x", "HEAD^{tree}", ""])
def test_a_revision_that_is_none_is_told(root: Path, rev: str) -> None:
    with pytest.raises(AssayError, match="git knows no revision"):
        load_fleet(root, rev=rev)


def test_a_folder_outside_of_git_has_no_revisions(tmp_path: Path) -> None:
    shutil.copytree(SMALLEST, tmp_path / "fleet")
    with pytest.raises(AssayError, match="git knows no revision HEAD"):
        load_fleet(tmp_path / "fleet", rev="HEAD")


def test_a_mistake_in_a_revision_is_told_at_its_line(root: Path) -> None:
    (root / POOL).write_text((root / POOL).read_text().replace("u: 2", "u: two"))
    git(root, "commit", "-qam", "wrong")
    with pytest.raises(AssayError, match="u: input should be a valid integer") as told:
        load_fleet(root, rev="HEAD")
    assert told.value.where == f"{POOL}:5:67"


def test_two_revisions_that_share_a_shelf_share_what_is_the_same(root: Path) -> None:
    (root / "specs/node.yaml").write_text((root / "specs/node.yaml").read_text().replace("value: 85", "value: 80"))
    cache = ParseCache()
    before, after = read_draft(root, rev="HEAD", cache=cache), read_draft(root, cache=cache)
    assert before.hosts is after.hosts
    limits = [build_fleet(draft).node_specs["small"].limits["gpu_temperature"].value for draft in (before, after)]
    assert limits == [85, 80]


def test_a_shelf_does_not_mix_inventories_that_differ(root: Path) -> None:
    (root / POOL).write_text((root / POOL).read_text().replace("S2", "S3"))
    cache = ParseCache()
    before, after = (build_fleet(read_draft(root, rev=rev, cache=cache)) for rev in ("HEAD", None))
    assert (before.nodes["n2"].serial, after.nodes["n2"].serial) == ("S2", "S3")


def test_without_git_a_folder_has_no_commit_and_a_repository_is_not_taken_for_one(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert read_head_commit(tmp_path) == ""
    with pytest.raises(AssayError, match="git cannot be run"):
        read_head_commit(root)
