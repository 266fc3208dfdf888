"""The places that keep seals: a file, git notes of the fleet repository, and a time-stamp authority (RFC 3161).

A person names an anchor as `file:PATH`, `git-note[:REF]` or `rfc3161:URL[#CA]`. A file has one JSON document a line, as
the register of all seals has. The authority keeps nothing: its stamps lie in the register, and whoever keeps a copy of
that elsewhere keeps the proof. A stamp is checked as of its own time, so it stays valid when the authority's
certificate ends.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import requests

from assay.ledger.copies.seal import Anchor, AnchoredFleet, StoredSeal, make_no_seal_error, parse_stored_seals
from assay.model.errors import AssayError
from assay.model.facts import frozen

DEFAULT_REF = "assay-seals"
GIT_TIMEOUT_S = 60
ANONYMOUS = ("-c", "user.name=assay", "-c", "user.email=assay@localhost")
"""Who writes the note where git knows no name: a service often has none. The seal says who made it."""
REGISTER_NAME = "seals.jsonl"
"""The register's file in `.assay/`: which anchors were used, and the stamps of time-stamp authorities."""
ANSWER_TIMEOUT_S = 20
OPENSSL_TIMEOUT_S = 30
MAX_ANSWER_BYTES = 1 << 20
ANCHOR_FIX = "write file:PATH, git-note, git-note:REF, or rfc3161:URL#ROOTS.pem"


@frozen
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
            problem = f"the repository has no seal in refs/notes/{self.ref}"
            raise make_no_seal_error(self.name, problem, self.register)
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
        output = self._git("cat-file", "--batch", stdin=wanted).encode(errors="surrogateescape")
        while output:
            header, _, rest = output.partition(b"\n")
            size = int(header.split()[-1])
            yield rest[:size].decode(errors="replace")
            output = rest[size + 1 :]

    def _git(self, *command: str, stdin: str = "") -> str:
        done = self._run(*command, stdin=stdin)
        if done.returncode:
            message = " ".join(done.stderr.decode(errors="replace").split())
            fix = f"this must be a git repository with a commit, and refs/notes/{self.ref} writable"
            raise AssayError(f"git says: {message}", where=f"{self.name} of {self.root}", fix=fix)
        return done.stdout.decode(errors="surrogateescape")

    def _run(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[bytes]:
        words = ["git", "-C", str(self.root), *command]
        try:
            return subprocess.run(words, input=stdin.encode(), capture_output=True, check=False, timeout=GIT_TIMEOUT_S)
        except OSError as error:
            raise AssayError(f"git cannot be run: {error.strerror}", where=self.name, fix="install git") from error
        except subprocess.TimeoutExpired:
            raise AssayError(f"git did not answer within {GIT_TIMEOUT_S} s", where=self.name) from None


@frozen
class FileAnchor:
    """A file of seals, best one that can only grow: `chattr +a`, or on a machine that others administer."""

    name: str
    path: Path
    register: Path

    def read(self) -> list[StoredSeal]:
        """Return the seals of the file. Raises AssayError where it is missing, empty or damaged."""
        kept = read_seal_file(self.path)
        if not kept:
            problem = "this file holds no seal" if self.path.exists() else "this file is missing"
            raise make_no_seal_error(self.name, problem, self.register)
        return kept

    def prove(self, seal: StoredSeal) -> StoredSeal:
        """Return the seal: the file is the proof."""
        return seal

    def store(self, seal: StoredSeal) -> StoredSeal:
        """Append one line."""
        append_to_seal_file(self.path, seal)
        return seal


def read_seal_file(path: Path) -> list[StoredSeal]:
    """Return the seals of a file, none where there is no file. Raises AssayError."""
    try:
        return parse_stored_seals(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is not text"
        raise AssayError(
            f"the seals cannot be read: {cause}", where=str(path), fix="check its owner and mode"
        ) from error


def append_to_seal_file(path: Path, seal: StoredSeal) -> None:
    """Append one line, and wait until it is on the disk; a line that cannot be written whole leaves nothing behind."""
    try:
        with path.open("ab", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            try:
                line = f"{seal.to_line()}\n".encode()
                if file.write(line) < len(line):
                    raise OSError(28, "No space left on device")
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise
    except OSError as error:
        fix = "its folder must exist and be writable, and its disk must have room"
        raise AssayError(f"the seal cannot be written: {error.strerror}", where=str(path), fix=fix) from error


_STAMPED = re.compile(r"^Time stamp: (\w+ +\d+ [\d:]+)(?:\.\d+)? (\d+) GMT$", re.MULTILINE)


@frozen
class TimeStampAnchor:
    """The authority at `url`. `ca` is the PEM file of the roots that are trusted, None for those of the system."""

    name: str
    url: str
    ca: Path | None
    register: Path

    def read(self) -> list[StoredSeal]:
        """Return the seals that this authority stamped. Raises AssayError where there are none."""
        stamped = [seal for seal in read_seal_file(self.register) if seal.anchor == self.name]
        if not stamped:
            raise make_no_seal_error(self.name, f"no stamp of it is in {self.register}", self.register)
        return stamped

    def prove(self, seal: StoredSeal) -> StoredSeal:
        """Return a seal with the time of its stamp. Raises AssayError unless the authority stamped this seal."""
        return self._check(seal)

    def store(self, seal: StoredSeal) -> StoredSeal:
        """Let the authority stamp a seal, and check the stamp."""
        with tempfile.TemporaryDirectory(prefix="assay-tsa-") as folder:
            query = Path(folder, "query.tsq")
            self._openssl("-query", "-digest", _digest(seal), "-sha256", "-cert", "-out", str(query))
            answer = self._ask(query.read_bytes())
            stamped = replace(seal, stamp=base64.b64encode(answer).decode())
            self._check(stamped, "-queryfile", str(query))
        return stamped

    def _ask(self, query: bytes) -> bytes:
        headers = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
        try:
            response = requests.post(self.url, data=query, headers=headers, timeout=ANSWER_TIMEOUT_S, stream=True)
            answer: bytes = response.raw.read(MAX_ANSWER_BYTES, decode_content=True) if response.ok else b""
        except (requests.RequestException, OSError) as error:
            cause = type(error).__name__
            fix = "nothing was sealed there: check the URL, the network and the proxy, and seal again"
            raise AssayError(f"the time-stamp authority does not answer ({cause})", where=self.name, fix=fix) from error
        if not response.ok:
            fix = "nothing was sealed there: check the URL"
            raise AssayError(
                f"the authority answers {response.status_code} {response.reason}", where=self.name, fix=fix
            )
        return answer

    def _check(self, seal: StoredSeal, *question: str) -> StoredSeal:
        """Return a seal with the time of its stamp. Raises AssayError unless a trusted authority stamped this seal."""
        try:
            answer = base64.b64decode(seal.stamp, validate=True)
        except (ValueError, binascii.Error):
            raise AssayError("this stamp is damaged", where=self.name) from None
        with tempfile.TemporaryDirectory(prefix="assay-tsa-") as folder:
            file = Path(folder, "answer.tsr")
            file.write_bytes(answer)
            shown = _STAMPED.search(self._openssl("-reply", "-in", str(file), "-text"))
            if not shown:
                raise AssayError("the answer is not a time stamp", where=self.name, fix="check the authority's URL")
            at = datetime.strptime(" ".join(shown.groups()), "%b %d %H:%M:%S %Y").replace(tzinfo=UTC)
            question = question or ("-digest", _digest(seal))
            options = ("-in", str(file), *self._trusted(), "-attime", str(int(at.timestamp())))
            self._openssl("-verify", *question, *options)
        return replace(seal, at=at.isoformat())

    def _trusted(self) -> tuple[str, str]:
        if self.ca:
            if not self.ca.is_file():
                raise AssayError(
                    "the authority's root certificate is missing", where=str(self.ca), fix="name a PEM file"
                )
            return "-CAfile", str(self.ca)
        paths = ssl.get_default_verify_paths()
        if paths.cafile:
            return "-CAfile", paths.cafile
        return "-CApath", paths.capath or "/etc/ssl/certs"

    def _openssl(self, *words: str) -> str:
        try:
            done = subprocess.run(
                ["openssl", "ts", *words], capture_output=True, text=True, check=False, timeout=OPENSSL_TIMEOUT_S
            )
        except OSError as error:
            raise AssayError(
                f"openssl cannot be run: {error.strerror}", where=self.name, fix="install openssl"
            ) from error
        except subprocess.TimeoutExpired:
            raise AssayError(f"openssl did not end within {OPENSSL_TIMEOUT_S} s", where=self.name) from None
        if done.returncode:
            raise _make_refusal_error(done.stderr, self.name)
        return done.stdout


def _digest(seal: StoredSeal) -> str:
    return hashlib.sha256(str(seal.seal).encode()).hexdigest()


def _make_refusal_error(output: str, name: str) -> AssayError:
    """Return the error for what `openssl ts` printed when it refused a stamp."""
    reasons = [line.split(":")[5] for line in output.splitlines() if line.count(":") > 5]
    detail = output.rpartition("Verify error:")[2].strip().partition("\n")[0] if "Verify error:" in output else ""
    shown = ", ".join(filter(None, [*reasons[:1], detail])) or "openssl refuses it"
    fix = "keep the register as it is, and find out who changed the stamp or its seal"
    if "certificate" in output:
        fix = "name the authority's root certificate: rfc3161:URL#FILE.pem"
    return AssayError(f"the time stamp does not hold: {shown}", where=name, fix=fix)


_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(?:/[A-Za-z0-9][A-Za-z0-9_.-]*)*")


def parse_anchor(name: str, fleet: AnchoredFleet) -> Anchor:
    """Return the anchor that a name means; paths are below the fleet's folder. Raises AssayError."""
    kind, _, rest = name.partition(":")
    if kind == "file" and rest:
        return _make_file_anchor(name, fleet, fleet.root / rest)
    if kind == "git-note" and _REF.fullmatch(rest or DEFAULT_REF) and ".." not in rest:
        return GitNoteAnchor(name, fleet.root, rest or DEFAULT_REF, fleet.register)
    if kind == "rfc3161" and rest.startswith(("http://", "https://")):
        url, _, roots = rest.partition("#")
        if "@" in urlsplit(url).netloc:
            raise AssayError("an anchor holds no password", where="rfc3161", fix="name an authority that asks for none")
        return TimeStampAnchor(name, url, fleet.root / roots if roots else None, fleet.register)
    raise AssayError(f"{name!r} is not an anchor", fix=ANCHOR_FIX)


def _make_file_anchor(name: str, fleet: AnchoredFleet, path: Path) -> Anchor:
    own = {fleet.register.absolute(), Path(str(fleet.ledger)).absolute()}
    if path.absolute() in own or path.is_dir():
        raise AssayError("an anchor is a file of its own", where=name, fix="name another file, best on another machine")
    return FileAnchor(name, path, fleet.register)
