"""Verifies SSH signatures of commits with git, in a way that the repository and its configuration cannot influence.

Only SSH signatures count (`gpg.format ssh`). A signature is accepted only if the exit status of `verify-commit`, the
status letter and the trust level agree. A good signature by an unknown key is refused.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from assay.fleet.git import DECLARED_FOLDERS, run_git
from assay.fleet.validation_problems import explain_violations
from assay.fleet.yaml_builder import UnreadableYaml
from assay.fleet.yaml_document import parse_yaml
from assay.model.errors import AssayError
from assay.model.specs.policy_sections import CommitTrust

SIGNED_PATHS = (*DECLARED_FOLDERS, "ansible.cfg")
CACHE_PATHS = re.compile(r"(^|/)(__pycache__|\.\w+_cache)/|\.pyc$")
SIGNATURE_KIND = re.compile(rb"^gpgsig(?:-sha256)? -----BEGIN ([A-Z ]+)-----$", re.MULTILINE)
FINGERPRINT = re.compile(r"key (SHA256:\S+)")
SIGNATURE_FAILURES = {
    "B": "its signature does not fit its content: it was changed after it was signed",
    "E": "its signature cannot be checked",
    "N": "it is not signed",
}


@dataclass(frozen=True, slots=True)
class CommitSignature:
    """The signer's name in `allowed_signers`, and the fingerprint of the key."""

    signer: str
    key: str


def read_head_commit(root: Path) -> str:
    """Return the commit that is checked out at `root`, "" without commits or without a git repository.

    Raises AssayError if git takes another folder for the working tree.
    """
    run = run_git(root, "rev-parse", "--show-toplevel", "--verify", "--end-of-options", "HEAD^{commit}")
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


def is_descendant(root: Path, commit: str, ancestor: str) -> bool:
    """Whether `commit` is `ancestor` or descends from it."""
    return run_git(root, "merge-base", "--is-ancestor", ancestor, commit).returncode == 0


def find_uncommitted(root: Path) -> list[str]:
    """Return the declared files that differ from the commit, including files that git is configured to ignore.

    Raises AssayError if git cannot tell.
    """
    options = ("--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching")
    status = run_git(root, "status", *options, "--ignore-submodules=none", "--", *SIGNED_PATHS)
    hidden = run_git(root, "ls-files", "-z", "-v", "--", *SIGNED_PATHS)
    if status.returncode or hidden.returncode:
        raise AssayError(
            f"git cannot say what is committed: {_error_output(status) or _error_output(hidden)}", where=str(root)
        )
    changed = [
        line[3:] for line in _split_output(status) if line[:2] not in ("!!", "??") or not CACHE_PATHS.search(line)
    ]
    return changed + [line[2:] for line in _split_output(hidden) if not line.startswith("H ")]


def verify_signature(root: Path, commit: str, signers: bytes, called: str) -> CommitSignature:
    """Return who signed a commit. `signers` is the content of the allowed_signers file that messages call `called`.

    Raises AssayError if the commit is not signed, or not by an allowed signer.
    """
    raw = run_git(root, "cat-file", "commit", commit).stdout.partition(b"\n\n")[0]
    kind = SIGNATURE_KIND.search(raw)
    if kind is None:
        raise AssayError("it is not signed", fix="`git commit --amend --no-edit -S`, with gpg.format ssh")
    if kind[1] != b"SSH SIGNATURE":
        what = f"it has a {kind[1].decode().lower()}, and only SSH signatures can be checked here"
        raise AssayError(what, fix="`git config gpg.format ssh`, and sign it with an SSH key")
    with tempfile.NamedTemporaryFile(prefix="assay-signers-") as file:
        file.write(signers)
        file.flush()
        return _verify_commit(root, commit, _git_signing_options(Path(file.name)), called)


def _git_signing_options(signers: Path) -> Sequence[str]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise AssayError("its signature cannot be checked without ssh-keygen", fix="install openssh-client")
    wanted = {
        "gpg.format": "ssh",
        "gpg.program": "false",
        "gpg.openpgp.program": "false",
        "gpg.x509.program": "false",
        "gpg.ssh.program": program,
        "gpg.ssh.allowedSignersFile": str(signers),
        "gpg.minTrustLevel": "fully",
    }
    return [word for name, value in wanted.items() for word in ("-c", f"{name}={value}")]


def _verify_commit(root: Path, commit: str, options: Sequence[str], called: str) -> CommitSignature:
    checked = run_git(root, *options, "verify-commit", "--raw", commit)
    shown = run_git(root, *options, "log", "-1", "--format=%G?%x00%GT%x00%GF%x00%GS", commit)
    letter, trust, key, signer = (shown.stdout.decode(errors="replace").rstrip("\n").split("\0") + [""] * 4)[:4]
    if (checked.returncode, letter, trust) == (0, "G", "fully") and signer and key:
        return CommitSignature(signer, key)
    if letter in SIGNATURE_FAILURES:
        raise AssayError(SIGNATURE_FAILURES[letter], fix="sign it again, with an allowed key")
    found = FINGERPRINT.search(_error_output(checked))
    by = f"the key {found[1]}" if found else "a key"
    raise AssayError(
        f"it is signed by {by}, which {called} does not allow at the time of the commit",
        fix="let an allowed signer sign it, or let one add the key in a signed commit",
    )


def _split_output(run: subprocess.CompletedProcess[bytes]) -> list[str]:
    return [line for line in run.stdout.decode(errors="surrogateescape").split("\0") if line]


def _error_output(run: subprocess.CompletedProcess[bytes]) -> str:
    return " ".join(run.stderr.decode(errors="replace").split())
