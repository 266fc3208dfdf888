"""Verifies SSH signatures of commits with git, in a way that the repository and its configuration cannot influence.

A signature is accepted only if the exit status of `verify-commit`, the status letter and the trust level agree, and if
its key is also valid now: git judges a key by the date in the commit, which its author chooses.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from assay.declare.repository.git import read_git_error, run_git
from assay.model.errors import AssayError
from assay.model.timestamps import format_minute, format_time

SIGNATURE = re.compile(rb"^gpgsig(?:-sha256)? (-----BEGIN ([A-Z ]+)-----\n(?: .*\n)*)", re.MULTILINE)
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


@dataclass(frozen=True, slots=True)
class AllowedSigners:
    """Lines of allowed_signers that count, the name of their source in messages, and the time at which they count."""

    lines: frozenset[bytes]
    called: str
    at: datetime


def read_signature(root: Path, commit: str) -> tuple[str, bytes]:
    """Return the kind of a commit's signature, such as "SSH SIGNATURE", and its text. Both are empty without one."""
    header = run_git(root, "cat-file", "commit", commit).stdout.partition(b"\n\n")[0] + b"\n"
    found = SIGNATURE.search(header)
    return (found[2].decode(), found[1].replace(b"\n ", b"\n")) if found else ("", b"")


def verify_ssh_signature(root: Path, commit: str, signers: AllowedSigners) -> CommitSignature:
    """Return who signed a commit. Raises AssayError if it is not signed, or not by an allowed signer."""
    kind, text = read_signature(root, commit)
    if not kind:
        raise AssayError("it is not signed", fix="`git commit --amend --no-edit -S`, with gpg.format ssh")
    if kind != "SSH SIGNATURE":
        fix = "`git config gpg.format ssh`, and sign it with an SSH key; merges by the forge: see docs/plans.md"
        raise AssayError(f"it has a {kind.lower()}, and only SSH signatures count", fix=fix)
    program = shutil.which("ssh-keygen")
    if program is None:
        raise AssayError("its signature cannot be checked without ssh-keygen", fix="install openssh-client")
    with tempfile.TemporaryDirectory(prefix="assay-signers-") as folder:
        file = Path(folder, "allowed_signers")
        file.write_bytes(b"".join(line + b"\n" for line in sorted(signers.lines)))
        signature = _verify_at_its_own_date(root, commit, _list_signing_options(program, file), signers.called)
        _require_key_now(program, file, text, signature, signers)
    return signature


def _list_signing_options(program: str, signers: Path) -> Sequence[str]:
    wanted = {
        "gpg.format": "ssh",
        "gpg.program": "false",
        "gpg.openpgp.program": "false",
        "gpg.x509.program": "false",
        "gpg.ssh.program": program,
        "gpg.ssh.allowedSignersFile": str(signers),
        "gpg.minTrustLevel": "fully",
    }
    return list_git_settings(wanted.items())


def list_git_settings(settings: Iterable[tuple[str, str]]) -> list[str]:
    """Return git's options that set these values for one command."""
    return [word for name, value in settings for word in ("-c", f"{name}={value}")]


def _verify_at_its_own_date(root: Path, commit: str, options: Sequence[str], called: str) -> CommitSignature:
    checked = run_git(root, *options, "verify-commit", "--raw", commit)
    shown = run_git(root, *options, "log", "-1", "--format=%G?%x00%GT%x00%GF%x00%GS", commit)
    letter, trust, key, signer = (shown.stdout.decode(errors="replace").rstrip("\n").split("\0") + [""] * 4)[:4]
    if (checked.returncode, letter, trust) == (0, "G", "fully") and signer and key:
        return CommitSignature(signer, key)
    if letter in SIGNATURE_FAILURES:
        raise AssayError(SIGNATURE_FAILURES[letter], fix="sign it again, with an allowed key")
    found = FINGERPRINT.search(read_git_error(checked))
    by = f"the key {found[1]}" if found else "a key"
    raise AssayError(
        f"it is signed by {by}, which {called} does not allow at the time of the commit",
        fix="let an allowed signer sign it, or let one add the key in a signed commit",
    )


def _require_key_now(
    program: str, file: Path, text: bytes, signature: CommitSignature, signers: AllowedSigners
) -> None:
    stored = file.with_name("signature")
    stored.write_bytes(text)
    at = signers.at.astimezone(UTC)
    words = [program, "-Y", "find-principals", "-s", str(stored), "-f", str(file)]
    words.append(f"-Overify-time={at:%Y%m%d%H%M%S}")  # ssh-keygen reads it in the local time zone
    found = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, env={"TZ": "UTC"})
    if found.returncode or signature.signer not in found.stdout.split():
        raise AssayError(
            f"{signers.called} allows the key of {signature.signer} at the date in the commit, but not now, "
            f"{format_minute(format_time(at))}",
            fix="sign it again with a key that is valid now",
        )
