"""Seals in git notes of the fleet repository: each is a note on the commit that was checked out."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from assay.ledger.copies.anchor import make_no_seal_error
from assay.ledger.copies.seal import StoredSeal, parse_stored_seals
from assay.model.errors import AssayError

DEFAULT_REF = "assay-seals"
GIT_TIMEOUT_S = 60
ANONYMOUS = ("-c", "user.name=assay", "-c", "user.email=assay@localhost")
"""Who writes the note where git knows no name: a service often has none. The seal says who made it."""


@dataclass(frozen=True, slots=True)
class GitNoteAnchor:
    """The notes of `ref` (below `refs/notes/`) of the repository at `root`. They protect once they are pushed."""

    name: str
    root: Path
    ref: str
    register: Path

    def read(self) -> list[StoredSeal]:
        """Return the seals of all notes, by their time. Raises AssayError where there are none, or git fails."""
        listed = self._git("notes", f"--ref={self.ref}", "list").split()
        kept = [seal for note in self._read_notes(listed[::2]) for seal in parse_stored_seals(note, self.name)]
        if not kept:
            what = f"the repository has no seal in refs/notes/{self.ref}"
            raise make_no_seal_error(self.name, what, self.register)
        return sorted(kept, key=lambda seal: (seal.at, seal.seal.entry.seq))

    def prove(self, seal: StoredSeal) -> StoredSeal:
        """Return the seal: the note is the proof."""
        return seal

    def store(self, seal: StoredSeal) -> StoredSeal:
        """Append the seal to the note of the commit that is checked out."""
        known = self._run("var", "GIT_COMMITTER_IDENT").returncode == 0
        writer = () if known else ANONYMOUS
        self._git(*writer, "notes", f"--ref={self.ref}", "append", "-m", seal.to_line(), "HEAD")
        return seal

    def _read_notes(self, blobs: list[str]) -> Iterator[str]:
        """Yield the text of each note, by one process for all."""
        wanted = "".join(f"{blob}\n" for blob in dict.fromkeys(blobs))
        told = self._git("cat-file", "--batch", stdin=wanted).encode(errors="surrogateescape")
        while told:
            header, _, rest = told.partition(b"\n")
            size = int(header.split()[-1])
            yield rest[:size].decode(errors="replace")
            told = rest[size + 1 :]

    def _git(self, *command: str, stdin: str = "") -> str:
        done = self._run(*command, stdin=stdin)
        if done.returncode:
            said = " ".join(done.stderr.decode(errors="replace").split())
            fix = f"this must be a git repository with a commit, and refs/notes/{self.ref} writable"
            raise AssayError(f"git says: {said}", where=f"{self.name} of {self.root}", fix=fix)
        return done.stdout.decode(errors="surrogateescape")

    def _run(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[bytes]:
        words = ["git", "-C", str(self.root), *command]
        try:
            return subprocess.run(words, input=stdin.encode(), capture_output=True, check=False, timeout=GIT_TIMEOUT_S)
        except OSError as error:
            raise AssayError(f"git cannot be run: {error.strerror}", where=self.name, fix="install git") from error
        except subprocess.TimeoutExpired:
            raise AssayError(f"git did not answer within {GIT_TIMEOUT_S} s", where=self.name) from None
