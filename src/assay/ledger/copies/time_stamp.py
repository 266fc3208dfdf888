"""Seals that a time-stamp authority (RFC 3161) signs with the time. `openssl ts` makes and checks the messages.

The authority keeps nothing: its stamps lie in the register, and whoever keeps a copy of that elsewhere keeps the proof.
A stamp is checked as of its own time, so it stays valid when the authority's certificate ends.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import ssl
import subprocess
import tempfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import requests

from assay.ledger.copies.anchor import make_no_seal_error
from assay.ledger.copies.seal import StoredSeal
from assay.ledger.copies.seal_file import read_seal_file
from assay.model.errors import AssayError

ANSWER_TIMEOUT_S = 20
OPENSSL_TIMEOUT_S = 30
MAX_ANSWER_BYTES = 1 << 20
_STAMPED = re.compile(r"^Time stamp: (\w+ +\d+ [\d:]+)(?:\.\d+)? (\d+) GMT$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
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
            told = requests.post(self.url, data=query, headers=headers, timeout=ANSWER_TIMEOUT_S, stream=True)
            answer: bytes = told.raw.read(MAX_ANSWER_BYTES, decode_content=True) if told.ok else b""
        except (requests.RequestException, OSError) as error:
            why = type(error).__name__
            fix = "nothing was sealed there: check the URL, the network and the proxy, and seal again"
            raise AssayError(f"the time-stamp authority does not answer ({why})", where=self.name, fix=fix) from error
        if not told.ok:
            fix = "nothing was sealed there: check the URL"
            raise AssayError(f"the authority answers {told.status_code} {told.reason}", where=self.name, fix=fix)
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
            told = ("-in", str(file), *self._trusted(), "-attime", str(int(at.timestamp())))
            self._openssl("-verify", *question, *told)
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
            raise AssayError(_describe_refusal(done.stderr), where=self.name, fix=_choose_fix(done.stderr))
        return done.stdout


def _digest(seal: StoredSeal) -> str:
    return hashlib.sha256(str(seal.seal).encode()).hexdigest()


def _describe_refusal(said: str) -> str:
    reasons = [line.split(":")[5] for line in said.splitlines() if line.count(":") > 5]
    detail = said.rpartition("Verify error:")[2].strip().partition("\n")[0] if "Verify error:" in said else ""
    return f"the time stamp does not hold: {', '.join(filter(None, [*reasons[:1], detail])) or 'openssl refuses it'}"


def _choose_fix(said: str) -> str:
    if "certificate" in said:
        return "name the authority's root certificate: rfc3161:URL#FILE.pem"
    return "keep the register as it is, and find out who changed the stamp or its seal"
