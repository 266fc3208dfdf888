"""Writes a proposal as one commit on a branch of its own. The working folder and the index stay as they are."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from assay.declare.repository.git import read_git_error, resolve_commit, run_git
from assay.declare.repository_check import check_repository
from assay.model.errors import AssayError


def read_committed_file(root: Path, path: str) -> str:
    """Return a file of the current commit, "" if it has none of this name."""
    run = run_git(root, "show", "--no-textconv", f"HEAD:{path}")
    return run.stdout.decode() if run.returncode == 0 else ""


@dataclass(frozen=True, slots=True)
class ProposedCommit:
    """A commit, and the mistakes that `assay check` finds there and not before: people settle them before the merge."""

    commit: str
    mistakes: tuple[str, ...]


def propose_file(root: Path, branch: str, path: str, text: str, message: str) -> ProposedCommit:
    """Commit one file on a new branch above the current commit.

    Raises AssayError if the branch exists, or if git cannot commit.
    """
    if run_git(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}").returncode == 0:
        fix = f"open its pull request, or delete it: git branch -D {branch}"
        raise AssayError(f"the branch {branch} exists already", where=str(root), fix=fix)
    base = resolve_commit(root, "HEAD")
    tree = _write_tree(root, base, path, text)
    commit = _git(root, "commit-tree", tree, "-p", base, "-m", message)
    _git(root, "update-ref", f"refs/heads/{branch}", commit, "")
    return ProposedCommit(commit, tuple(sorted(_list_mistakes(root, commit) - _list_mistakes(root, base))))


def _write_tree(root: Path, base: str, path: str, text: str) -> str:
    blob = _git(root, "hash-object", "-w", "--stdin", stdin=text.encode())
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        _git(root, "read-tree", base, environment=index)
        _git(root, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", environment=index)
        return _git(root, "write-tree", environment=index)


def _list_mistakes(root: Path, commit: str) -> set[str]:
    problems = check_repository(root, commit=commit).problems
    return {f"{problem.code}: {problem.message}" for problem in problems if problem.severity == "error"}


def _git(root: Path, *command: str, stdin: bytes = b"", environment: dict[str, str] | None = None) -> str:
    run = run_git(root, *command, stdin=stdin, environment=environment)
    if run.returncode:
        raise AssayError(f"git {command[0]} failed: {read_git_error(run)}", where=str(root), fix="see git's message")
    return run.stdout.decode().strip()
