"""Merges that a forge made and signed with its own PGP key, such as those of the merge button on GitHub.

Anybody with access to the forge can make it sign. So its key counts for merges alone, and only for those that hold
nothing but what git makes of the two parents: people signed all of that.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from assay.declare.repository.git import read_git_error, run_git
from assay.declare.repository.signature_verification import CommitSignature, list_git_settings
from assay.model.errors import AssayError

GPG_SETTINGS = "no-autostart\nno-auto-key-retrieve\ntrust-model always\n"


def verify_forge_merge(root: Path, commit: str, parents: Sequence[str], keys: bytes, called: str) -> CommitSignature:
    """Return the forge's name and key. `keys` are armored PGP keys, from the file that messages call `called`.

    Raises AssayError if the commit is no such merge. The caller verifies the parents.
    """
    _require_plain_merge(root, commit, parents)
    program = shutil.which("gpg")
    if program is None:
        raise AssayError("the forge's signature cannot be checked without gpg", fix="install gnupg")
    with tempfile.TemporaryDirectory(prefix="assay-forge-") as home:  # only its owner can enter it
        Path(home, "gpg.conf").write_text(GPG_SETTINGS)
        imported = subprocess.run(
            [program, "--homedir", home, "--batch", "--quiet", "--import"], input=keys, capture_output=True, check=False
        )
        if imported.returncode:
            fix = "the forge publishes its key in armored form; GitHub: https://github.com/web-flow.gpg"
            raise AssayError(f"gpg cannot read the keys in {called}", fix=fix)
        options = list_git_settings({"gpg.program": program, "gpg.openpgp.program": program}.items())
        world = {"GNUPGHOME": home}
        checked = run_git(root, *options, "verify-commit", "--raw", commit, environment=world)
        shown = run_git(root, *options, "log", "-1", "--format=%G?%x00%GF%x00%GS", commit, environment=world)
    letter, key, signer = (shown.stdout.decode(errors="replace").rstrip("\n").split("\0") + [""] * 3)[:3]
    if checked.returncode or letter != "G" or not key:
        raise AssayError(f"its PGP signature is not a good one by a key in {called}", fix="merge it again, signed")
    return CommitSignature(signer, key)


def _require_plain_merge(root: Path, commit: str, parents: Sequence[str]) -> None:
    if len(parents) != 2:
        raise AssayError(
            "the forge signed it, but it is no merge of two commits",
            fix="merge with a merge commit: squashing and rebasing replace the commits that people signed",
        )
    merged = run_git(root, "merge-tree", "--write-tree", "--no-messages", *parents)
    if merged.returncode > 1:
        raise AssayError(f"git cannot repeat the merge: {read_git_error(merged)}", fix="install git 2.38 or newer")
    tree = run_git(root, "rev-parse", "--verify", f"{commit}^{{tree}}").stdout.strip()
    if merged.returncode or merged.stdout.strip() != tree:
        raise AssayError(
            "the forge signed it, but its files are not what git makes of its two parents",
            fix="merge the branch on your machine, and sign that merge",
        )
