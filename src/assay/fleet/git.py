"""Asks git about the fleet repository. A question takes no lock, runs no hook, and needs no checkout."""

from __future__ import annotations

import posixpath
import subprocess
from dataclasses import dataclass
from pathlib import Path

from assay.model.errors import Trouble

DECLARED = ("inventory", "specs", "suites", "playbooks")
CAREFUL = (
    *("--no-replace-objects", "--no-optional-locks"),
    *("-c", "core.fsmonitor=false", "-c", "core.ignoreStat=false", "-c", "core.trustctime=true"),
    *("-c", "core.checkStat=default", "-c", "log.showSignature=false"),
)
"""Whatever the repository's own configuration says, git answers about what is really there."""
REGULAR, LINK = ("100644", "100755"), "120000"


@dataclass(frozen=True, slots=True)
class Blob:
    """One file of a revision: git's mode, its object and its size in bytes."""

    mode: str
    object: str
    size: int


def revision(root: Path) -> tuple[str, bool]:
    """Return the commit and whether what the repository declares differs from it. No git: `("", False)`."""
    try:
        run = ask(root, "status", "--porcelain=v2", "--branch", "--", *DECLARED)
    except Trouble:
        return "", False
    lines = run.stdout.decode(errors="replace").splitlines() if run.returncode == 0 else []
    commit = next((line.removeprefix("# branch.oid ") for line in lines if line.startswith("# branch.oid ")), "")
    if commit == "(initial)":
        commit = ""
    return commit, any(not line.startswith("#") for line in lines)


def commit_of(root: Path, rev: str) -> str:
    """Return the commit that `rev` means. Raises Trouble."""
    run = ask(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
    if run.returncode:
        fix = "name a branch, a tag or a commit of it; in CI, fetch it first (`fetch-depth: 0`)"
        raise Trouble(f"git knows no revision {rev} in {root}", fix=fix)
    return run.stdout.decode().strip()


def blobs(root: Path, commit: str) -> dict[str, Blob]:
    """Return what a commit declares below `root`: every file by its path. Raises Trouble."""
    run = ask(root, "ls-tree", "-r", "-z", "--long", commit, "--", *DECLARED)
    if run.returncode:
        raise Trouble(f"git cannot list {commit}: {run.stderr.decode(errors='replace').strip()}")
    found = {}
    for line in run.stdout.decode("utf-8", "surrogateescape").split("\0"):
        facts, _, path = line.partition("\t")
        if path:
            mode, _, name, size = facts.split()
            found[path] = Blob(mode, name, int(size) if size.isdecimal() else 0)
    return found


def tracked(root: Path, paths: list[str]) -> set[str]:
    """Return which of these paths git keeps. No git: none."""
    if not paths:
        return set()
    try:
        run = ask(root, "--literal-pathspecs", "ls-files", "-z", "--", *paths)
    except Trouble:
        return set()
    kept = set(run.stdout.decode("utf-8", "surrogateescape").split("\0"))
    return {path for path in paths if posixpath.normpath(path) in kept}


def contents(root: Path, objects: list[str]) -> dict[str, bytes]:
    """Return the contents of objects, all in one go. Raises Trouble for one that is not there."""
    run = ask(root, "cat-file", "--batch", stdin="\n".join(objects).encode() + b"\n")
    found, at = {}, 0
    for name in objects:
        end = run.stdout.find(b"\n", at)
        header = run.stdout[at:end].split()
        if run.returncode or len(header) != 3:
            raise Trouble(f"git cannot read the object {name}", fix="`git fsck` says what is missing")
        size = int(header[2])
        found[name] = run.stdout[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
    return found


def ask(root: Path, *command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Ask git one thing. Its exit status is for the caller to judge. Raises Trouble where it gives no answer."""
    words = ["git", "-C", str(root), *CAREFUL, *command]
    try:
        return subprocess.run(words, input=stdin, capture_output=True, check=False, timeout=60)
    except OSError as error:
        raise Trouble(f"git cannot be run: {error.strerror}", fix="install git") from error
    except subprocess.TimeoutExpired:
        raise Trouble("git did not answer within 60 s", where=str(root)) from None
