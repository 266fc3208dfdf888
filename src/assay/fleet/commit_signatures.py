"""Who signed a commit, asked of git in a way that neither the repository nor its configuration can talk round.

Only SSH signatures count (`gpg.format ssh`). Git's own answer about them is taken only where the exit status of
`verify-commit`, the status letter and the trust agree: a good signature by a key that nobody named is none.
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
    """Who signed, as `allowed_signers` calls them, and the fingerprint of the key."""

    signer: str
    key: str


def read_head_commit(root: Path) -> str:
    """Return the commit that is checked out at `root`, "" where there is none or no git. Raises Trouble."""
    told = run_git(root, "rev-parse", "--show-toplevel", "--verify", "--end-of-options", "HEAD^{commit}")
    if told.returncode:
        return ""
    top, commit = told.stdout.decode(errors="surrogateescape").rstrip("\n").rsplit("\n", 1)
    if not root.resolve().is_relative_to(Path(top).resolve()):
        raise AssayError(
            f"git takes {top} for the working tree", where=str(root), fix="`git config --unset core.worktree`"
        )
    return commit


def read_commit_trust(root: Path, commit: str) -> CommitTrust | None:
    """Return what the policy in a commit asks of commits. Raises Trouble where the commit is not here.

    Only that section is read, so that the trust of an old commit holds even where its other specs fit no longer.
    """
    options = ("-l", "-z", "-a", "-F", "--no-full-name", "--no-recurse-submodules", "--no-textconv")
    listed = run_git(root, "grep", *options, "LifecyclePolicy", commit, "--", "specs")
    if listed.returncode > 1:
        fix = "`git fetch --unshallow`, or fetch its branch"
        raise AssayError(f"git does not have the commit {commit}", where=str(root), fix=fix)
    paths = [line.removeprefix(f"{commit}:") for line in _split_output(listed)]
    found = [_read_trust_section(root, commit, path) for path in paths if path.endswith((".yaml", ".yml"))]
    return next((one for one in found if one is not None and one.signed), next(iter(filter(None, found)), None))


def _read_trust_section(root: Path, commit: str, path: str) -> CommitTrust | None:
    """Return the section of one spec, None where there is none. What is no YAML was never accepted: it asks nothing."""
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
    """Return a file of a commit; `path` starts at `root`. Raises Trouble where it is not there."""
    shown = run_git(root, "cat-file", "blob", f"{commit}:./{path}")
    if shown.returncode:
        raise AssayError(f"there is no {path} in commit {commit[:12]}", where=str(root / path), fix="commit that file")
    return shown.stdout


def is_descendant(root: Path, commit: str, ancestor: str) -> bool:
    """Whether `ancestor` is part of the history of `commit`."""
    return run_git(root, "merge-base", "--is-ancestor", ancestor, commit).returncode == 0


def find_uncommitted(root: Path) -> list[str]:
    """Return the files that would be acted on and are not as committed, also those that git was told to overlook."""
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
    """Return who signed a commit. Raises Trouble unless it is one of `signers` (`called` so in messages)."""
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
    told = run_git(root, *options, "log", "-1", "--format=%G?%x00%GT%x00%GF%x00%GS", commit)
    letter, trust, key, signer = (told.stdout.decode(errors="replace").rstrip("\n").split("\0") + [""] * 4)[:4]
    if (checked.returncode, letter, trust) == (0, "G", "fully") and signer and key:
        return CommitSignature(signer, key)
    if letter in SIGNATURE_FAILURES:
        raise AssayError(SIGNATURE_FAILURES[letter], fix="sign it anew, with a key that is allowed to")
    found = FINGERPRINT.search(_error_output(checked))
    by = f"the key {found[1]}" if found else "a key"
    raise AssayError(
        f"it is signed by {by}, which {called} does not allow at the time of the commit",
        fix="let somebody who is allowed to sign it, or add the key in a commit that they sign",
    )


def _split_output(run: subprocess.CompletedProcess[bytes]) -> list[str]:
    return [line for line in run.stdout.decode(errors="surrogateescape").split("\0") if line]


def _error_output(run: subprocess.CompletedProcess[bytes]) -> str:
    return " ".join(run.stderr.decode(errors="replace").split())
