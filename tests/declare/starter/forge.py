"""A fleet repository on a forge: the remote that runners clone, and what people do there through pull requests.

A branch is made in a person's own clone, pushed, and merged with a merge commit, as the forge's button does.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

NAME, MAIN = "acme/fleet", "main"
PERSON = {f"GIT_{who}_{what}": "ann@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
NOBODY = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""git of a machine on which nobody has a name."""


def git(folder: Path, *words: str, **variables: str) -> str:
    """Return what git prints. Raises CalledProcessError if it fails."""
    environment = {**os.environ, **NOBODY, **variables}
    run = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        raise subprocess.CalledProcessError(run.returncode, run.args, run.stdout, run.stderr)
    return run.stdout.strip()


@dataclass(frozen=True)
class PullRequest:
    """A branch that somebody wants merged. `number` is its number on the forge."""

    number: int
    branch: str

    @property
    def merge_ref(self) -> str:
        """The ref of its merge with the base as that is now, which GitHub checks out."""
        return f"refs/pull/{self.number}/merge"


class Forge:
    """The remote below `folder`, and the clone of a person, which holds the repository that `make` makes."""

    def __init__(self, folder: Path, make: Callable[[Path], None]) -> None:
        self.folder, self.clone, self.remote = folder, folder / "ann", folder / NAME
        self._count = 0
        make(self.clone)
        self.commit("Our fleet")
        git(folder, "clone", "--quiet", "--bare", str(self.clone), str(self.remote))
        git(self.clone, "remote", "add", "origin", self.remote.as_uri())
        git(self.clone, "fetch", "--quiet", "origin")

    @property
    def head(self) -> str:
        """The newest commit of the main branch."""
        return git(self.remote, "rev-parse", MAIN)

    def commit(self, message: str) -> str:
        """Commit everything in the clone; return the commit."""
        git(self.clone, "add", "--all")
        git(self.clone, "commit", "--quiet", "--message", message, **PERSON)
        return git(self.clone, "rev-parse", "HEAD")

    def open(self, title: str, change: Callable[[Path], None], base: str = f"origin/{MAIN}") -> PullRequest:
        """Let a person change the clone on a branch of its own, and push that."""
        self._count += 1
        pull = PullRequest(self._count, f"change-{self._count}")
        git(self.clone, "fetch", "--quiet", "origin")
        git(self.clone, "checkout", "--quiet", "-B", pull.branch, base)
        change(self.clone)
        if git(self.clone, "status", "--porcelain"):
            self.commit(title)
        git(self.clone, "push", "--quiet", "origin", pull.branch)
        self.try_merge(pull)
        return pull

    def push(self, pull: PullRequest, title: str, *changes: Callable[[Path], object]) -> None:
        """Let a person mend the branch."""
        git(self.clone, "checkout", "--quiet", pull.branch)
        for change in changes:
            change(self.clone)
        self.commit(title)
        git(self.clone, "push", "--quiet", "origin", pull.branch)
        self.try_merge(pull)

    def try_merge(self, pull: PullRequest) -> str:
        """Make the merge of a branch with the main branch as it is now; return its commit. A conflict raises."""
        tree = git(self.remote, "merge-tree", "--write-tree", MAIN, pull.branch).splitlines()[0]
        parents = ("-p", MAIN, "-p", pull.branch)
        commit = git(self.remote, "commit-tree", tree, *parents, "-m", f"Merge {pull.branch}", **PERSON)
        git(self.remote, "update-ref", pull.merge_ref, commit)
        return commit

    def merge(self, pull: PullRequest) -> str:
        """Merge a pull request; return the merged commit."""
        commit = self.try_merge(pull)
        git(self.remote, "update-ref", f"refs/heads/{MAIN}", commit)
        git(self.clone, "fetch", "--quiet", "origin")
        return commit


def replace_text(path: str, old: str, new: str) -> Callable[[Path], None]:
    """Return a change that replaces the only place where `old` stands in a file."""

    def change(root: Path) -> None:
        text = (root / path).read_text()
        assert text.count(old) == 1, f"{path}: {old!r} stands there {text.count(old)} times"
        (root / path).write_text(text.replace(old, new))

    return change
