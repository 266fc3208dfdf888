"""What git knows of a commit: its history, its files, the signers that it names, whether the working tree is it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from pydantic import ValidationError

from assay.declare.repository.git import DECLARED_FOLDERS, read_git_error, run_git
from assay.declare.validation_problems import explain_violations
from assay.declare.yaml_builder import UnreadableYaml
from assay.declare.yaml_document import parse_yaml
from assay.model.errors import AssayError
from assay.model.specs.policy_sections import CommitTrust

SIGNED_PATHS = (*DECLARED_FOLDERS, "ansible.cfg")
CACHE_PATHS = re.compile(r"(^|/)(__pycache__|\.\w+_cache)/|\.pyc$")


def read_head_commit(root: Path) -> str:
    """Return the commit that is checked out at `root`, "" without commits or without a git repository.

    Raises AssayError if git takes another folder for the working tree, or cannot be run where there is a repository.
    """
    try:
        run = run_git(root, "rev-parse", "--show-toplevel", "--verify", "--end-of-options", "HEAD^{commit}")
    except AssayError:
        if any((folder / ".git").exists() for folder in (root.resolve(), *root.resolve().parents)):
            raise
        return ""
    if run.returncode:
        return ""
    top, commit = run.stdout.decode(errors="surrogateescape").rstrip("\n").rsplit("\n", 1)
    if not root.resolve().is_relative_to(Path(top).resolve()):
        raise AssayError(
            f"git takes {top} for the working tree", where=str(root), fix="`git config --unset core.worktree`"
        )
    return commit


def read_commit_trust(root: Path, commit: str) -> CommitTrust | None:
    """Return the section `commits` of the policy in a commit, None if it has none.

    Other parts of the specs are not read: an old commit's trust must work even if its specs no longer fit their models.
    Raises AssayError if git does not have the commit, or the section does not fit its model.
    """
    options = ("-l", "-z", "-a", "-F", "--no-full-name", "--no-recurse-submodules", "--no-textconv")
    listed = run_git(root, "grep", *options, "LifecyclePolicy", commit, "--", "specs")
    if listed.returncode > 1:
        fix = "`git fetch --unshallow`, or fetch its branch"
        raise AssayError(f"git does not have the commit {commit}", where=str(root), fix=fix)
    paths = [line.removeprefix(f"{commit}:") for line in _split_output(listed)]
    sections = [_read_trust_section(root, commit, path) for path in paths if path.endswith((".yaml", ".yml"))]
    found = [section for section in sections if section is not None]
    return next((section for section in found if section.signed), next(iter(found), None))


def _read_trust_section(root: Path, commit: str, path: str) -> CommitTrust | None:
    """Return the section of one spec, None if it has none. A file that is not YAML was never accepted: it has none."""
    try:
        spec = parse_yaml(read_committed_file(root, commit, path), f"{commit[:12]}:{path}").data
    except UnreadableYaml:
        return None
    section = spec.get("commits") if isinstance(spec, dict) and spec.get("kind") == "LifecyclePolicy" else None
    try:
        return CommitTrust.model_validate(section) if section is not None else None
    except ValidationError as error:
        what = f"its commits cannot be read: {explain_violations(error, CommitTrust)[0][1]}"
        raise AssayError(what, where=f"{commit[:12]}:{path}") from None


def read_committed_file(root: Path, commit: str, path: str) -> bytes:
    """Return the content of a file in a commit; `path` is relative to `root`. Raises AssayError if it is not there."""
    shown = run_git(root, "cat-file", "blob", f"{commit}:./{path}")
    if shown.returncode:
        raise AssayError(f"there is no {path} in commit {commit[:12]}", where=str(root / path), fix="commit that file")
    return shown.stdout


def list_allowed_signers(root: Path, commit: str, path: str) -> frozenset[bytes]:
    """Return the lines of an allowed_signers file in a commit; none if the commit does not have the file."""
    shown = run_git(root, "cat-file", "blob", f"{commit}:./{path}")
    lines = () if shown.returncode else (line.strip() for line in shown.stdout.splitlines())
    return frozenset(line for line in lines if line and not line.startswith(b"#"))


def list_new_commits(root: Path, accepted: str, commit: str) -> list[tuple[str, list[str]]]:
    """Return each commit between the two, parents first, each with its parents; without `accepted`, with `commit`."""
    listed = run_git(root, "rev-list", "--topo-order", "--reverse", "--parents", commit, f"^{accepted}")
    if listed.returncode:
        raise AssayError(
            f"git cannot list the commits since {accepted[:12]}: {read_git_error(listed)}", where=str(root)
        )
    words = (line.split() for line in listed.stdout.decode().splitlines())
    return [(name, parents) for name, *parents in words]


def is_descendant(root: Path, commit: str, ancestor: str) -> bool:
    """Whether `commit` is `ancestor` or descends from it."""
    return run_git(root, "merge-base", "--is-ancestor", ancestor, commit).returncode == 0


def has_commit(root: Path, commit: str) -> bool:
    """Whether git has a commit."""
    return run_git(root, "cat-file", "-e", f"{commit}^{{commit}}").returncode == 0


def has_whole_history(root: Path) -> bool:
    """Whether git has all commits, because the clone is not shallow."""
    return run_git(root, "rev-parse", "--is-shallow-repository").stdout.strip() == b"false"


def find_uncommitted(root: Path) -> list[str]:
    """Return the declared files that differ from the commit, including files that git is configured to ignore.

    Raises AssayError if git cannot tell.
    """
    options = ("--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching")
    status = run_git(root, "status", *options, "--ignore-submodules=none", "--", *SIGNED_PATHS)
    hidden = run_git(root, "ls-files", "-z", "-v", "--", *SIGNED_PATHS)
    if status.returncode or hidden.returncode:
        raise AssayError(
            f"git cannot say what is committed: {read_git_error(status) or read_git_error(hidden)}", where=str(root)
        )
    changed = [
        line[3:] for line in _split_output(status) if line[:2] not in ("!!", "??") or not CACHE_PATHS.search(line)
    ]
    return changed + [line[2:] for line in _split_output(hidden) if not line.startswith("H ")]


def _split_output(run: subprocess.CompletedProcess[bytes]) -> list[str]:
    return [line for line in run.stdout.decode(errors="surrogateescape").split("\0") if line]
