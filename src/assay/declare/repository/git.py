"""Runs read-only git commands on the fleet repository: without locks, hooks or a checkout."""

from __future__ import annotations

import os
import posixpath
import subprocess
from collections.abc import Mapping
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.facts import frozen

DECLARED_FOLDERS = ("inventory", "specs", "suites", "playbooks")
TOOL_PATHS = (
    *("roles", "collections", "library", "group_vars", "host_vars", "requirements.yml", "ansible.cfg"),
    *("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "conftest.py", "requirements.txt", "requirements.lock"),
    *(".github", ".gitlab", ".gitlab-ci.yml", "CODEOWNERS"),
)
"""What steers Ansible, pytest and the workflows, beside the declared folders."""
SAFE_GIT_OPTIONS = (
    *("--no-replace-objects", "--no-optional-locks"),
    *("-c", "core.fsmonitor=false", "-c", "core.ignoreStat=false", "-c", "core.trustctime=true"),
    *("-c", "core.checkStat=default", "-c", "core.commitGraph=false", "-c", "log.showSignature=false"),
)
SAFE_ENVIRONMENT = {"GIT_GRAFT_FILE": os.devnull, "LC_ALL": "C"}
"""These override the configuration of repository and user, so that git reports what is there, in words that we know."""
REGULAR_MODES, SYMLINK_MODE = ("100644", "100755"), "120000"


@frozen
class GitBlob:
    """One file of a revision: its mode in git, its object id and its size in bytes."""

    mode: str
    object: str
    size: int


def read_revision(root: Path) -> tuple[str, bool]:
    """Return the commit, and whether the declared files differ from it. Without git: `("", False)`.

    Raises AssayError for a repository of another user, which git does not read: it is not without commits.
    """
    try:
        run = run_git(root, "status", "--porcelain=v2", "--branch", "--", *DECLARED_FOLDERS)
    except AssayError:
        return "", False
    if run.returncode and b"dubious ownership" in run.stderr:
        advice = run.stderr.decode(errors="replace").splitlines()[-1].strip()
        fix = f"run assay as its owner, or trust it: {advice}"
        raise AssayError("git does not read this repository: it belongs to another user", where=str(root), fix=fix)
    lines = run.stdout.decode(errors="replace").splitlines() if run.returncode == 0 else []
    commit = next((line.removeprefix("# branch.oid ") for line in lines if line.startswith("# branch.oid ")), "")
    if commit == "(initial)":
        commit = ""
    return commit, any(not line.startswith("#") for line in lines)


def resolve_commit(root: Path, rev: str) -> str:
    """Return the commit id of `rev`. Raises AssayError if git does not know it."""
    run = run_git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
    if run.returncode:
        fix = "name a branch, a tag or a commit of it; in CI, fetch it first (`fetch-depth: 0`)"
        raise AssayError(f"git knows no revision {rev} in {root}", fix=fix)
    return run.stdout.decode().strip()


def list_blobs(root: Path, commit: str) -> dict[str, GitBlob]:
    """Return the files of a commit that assay acts by, by path. Raises AssayError if git cannot list them."""
    run = run_git(root, "ls-tree", "-r", "-z", "--long", commit, "--", *DECLARED_FOLDERS, *TOOL_PATHS)
    if run.returncode:
        raise AssayError(f"git cannot list {commit}: {run.stderr.decode(errors='replace').strip()}")
    blobs = {}
    for line in run.stdout.decode("utf-8", "surrogateescape").split("\0"):
        facts, _, path = line.partition("\t")
        if path:
            mode, _, name, size = facts.split()
            blobs[path] = GitBlob(mode, name, int(size) if size.isdecimal() else 0)
    return blobs


def find_tracked_paths(root: Path, paths: list[str]) -> set[str]:
    """Return those paths that git tracks; none without git."""
    if not paths:
        return set()
    try:
        run = run_git(root, "--literal-pathspecs", "ls-files", "-z", "--", *paths)
    except AssayError:
        return set()
    tracked = set(run.stdout.decode("utf-8", "surrogateescape").split("\0"))
    return {path for path in paths if posixpath.normpath(path) in tracked}


def list_ignored_paths(root: Path) -> list[str]:
    """Return the files of the declared folders that git ignores, sorted; none without git."""
    try:
        run = run_git(root, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", *DECLARED_FOLDERS)
    except AssayError:
        return []
    return sorted(path for path in run.stdout.decode("utf-8", "surrogateescape").split("\0") if path)


def read_git_objects(root: Path, objects: list[str]) -> dict[str, bytes]:
    """Return the contents of objects by their ids, with one git process. Raises AssayError for a missing object."""
    run = run_git(root, "cat-file", "--batch", stdin="\n".join(objects).encode() + b"\n")
    contents = {}
    at = 0
    for name in objects:
        end = run.stdout.find(b"\n", at)
        header = run.stdout[at:end].split()
        if run.returncode or len(header) != 3:
            raise AssayError(f"git cannot read the object {name}", fix="`git fsck` says what is missing")
        size = int(header[2])
        contents[name] = run.stdout[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
    return contents


def run_git(
    root: Path, *command: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run one git command; the caller judges its exit status. Raises AssayError if git is missing or hangs."""
    env = {**os.environ, **SAFE_ENVIRONMENT, **(environment or {})}
    words = ["git", "-C", str(root), *SAFE_GIT_OPTIONS, *command]
    try:
        return subprocess.run(words, input=stdin, capture_output=True, check=False, timeout=60, env=env)
    except OSError as error:
        raise AssayError(f"git cannot be run: {error.strerror}", fix="install git") from error
    except subprocess.TimeoutExpired:
        raise AssayError("git did not answer within 60 s", where=str(root)) from None


def read_git_error(run: subprocess.CompletedProcess[bytes]) -> str:
    """Return what git wrote to stderr, in one line."""
    return " ".join(run.stderr.decode(errors="replace").split())
