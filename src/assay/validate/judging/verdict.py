"""The rules of judging: what a check may do, and how its exceptions become a verdict and one line of reason.

`CheckContext` records what one check reads and measures on one subject.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from assay.model.errors import AssayError
from assay.model.evidence import IDENTITY_FAULT, UNKNOWN_BASIS, EvidenceBasis
from assay.model.outcome import CheckSubject, CheckVerdict, Measurement, Outcome
from assay.model.specs.check_catalog import SUBJECT_KIND_OF_FIXTURE
from assay.model.text.lists import escape_surrogates, suggest_nearest
from assay.model.text.safe_text import escape_line
from assay.validate.judging.evidence_cache import (
    NOT_ASKED_FOR,
    CachedEvidence,
    EvidenceCache,
    ReadingUnavailable,
    UnjudgeableCheck,
)

MAX_REASON_LENGTH = 500
EMPTY_SKIP_REASONS = ("", "unconditional skip", "Skipped")
RETURN_REASON = "returned a value, which pytest ignores; write `assert` before it"
SKIPPING_KINDS = ("unsupported", NOT_ASKED_FOR)
"""Readings that nobody could have taken here: the check is no error, and does not pass."""


@dataclass(slots=True)
class CheckContext:
    """What one check reads and measures on one subject, for its outcome.

    `check` is the check's id; `phases`, `fault` and `active` are its marks. `node` is "" for a rack or a fabric.
    """

    check: str
    subject: CheckSubject
    node: str
    evidence_cache: EvidenceCache
    phases: tuple[str, ...] = ()
    fault: str = ""
    active: bool = False
    measurements: list[Measurement] = field(default_factory=list)
    unavailable_readings: list[ReadingUnavailable] = field(default_factory=list)
    documents: dict[str, CachedEvidence] = field(default_factory=dict)

    def read_document(self, name: str) -> CachedEvidence:
        """Return the latest document of a node or fabric, and record that the verdict depends on it.

        Raises ReadingUnavailable, also for evidence of another machine, unless the check is about that.
        """
        if name not in self.documents:
            try:
                self.documents[name] = self.evidence_cache.read_latest(name)
            except ReadingUnavailable as unavailable:
                raise self.note_unavailable(unavailable) from None
        document = self.documents[name]
        if document.stranger and self.fault != IDENTITY_FAULT:
            reason = f"the evidence is of another machine: {document.stranger}"
            raise self.note_unavailable(ReadingUnavailable("failed", "", reason))
        return document

    def note_unavailable(self, unavailable: ReadingUnavailable) -> ReadingUnavailable:
        """Record a reading without a value: even if the check catches the exception, it cannot pass."""
        self.unavailable_readings.append(unavailable)
        return unavailable

    def make_outcome(self, verdict: CheckVerdict, reason: str, duration_s: float) -> Outcome:
        """Return the outcome. Its time is that of the oldest document that the check read."""
        documents = self.documents
        if len(documents) == 1:  # nearly always
            oldest: CachedEvidence | None = next(iter(documents.values()))
            basis = oldest.basis  # type: ignore[union-attr]  # one of the documents
        else:
            oldest = min(documents.values(), key=lambda document: document.evidence.at, default=None)
            basis = self._find_basis()
        return Outcome(
            check=self.check,
            subject=str(self.subject),
            node=self.node,
            verdict=verdict,
            reason=reason,
            fault=self.fault,
            phases=self.phases,
            active=self.active,
            evidence=oldest.digest if oldest else "",
            evidence_at=oldest.at if oldest else "",
            duration_s=round(duration_s, 6),
            measurements=tuple(self.measurements),
            basis=basis,
        )

    def _find_basis(self) -> EvidenceBasis:
        """Return the boot of the node's own document, and the least entry of all documents that the check read."""
        own = self.documents.get(self.node)
        basis = own.basis if own else UNKNOWN_BASIS
        entries = [document.basis.after_entry for document in self.documents.values()]
        known = [entry for entry in entries if entry is not None]
        return replace(basis, after_entry=min(known) if known and len(known) == len(entries) else None)


def convert_exception(error: BaseException) -> BaseException:
    """Return the exception that counts: a skip needs a reason, xfail is refused, an unsupported reading skips.

    Its message is text that can be written, for every plugin that writes it.
    """
    error.args = tuple(escape_surrogates(part) if isinstance(part, str) else part for part in error.args)
    if isinstance(error, pytest.xfail.Exception):
        return UnjudgeableCheck("xfail does not exist here; a known issue is data, not code")
    if isinstance(error, pytest.skip.Exception) and str(error).strip() in EMPTY_SKIP_REASONS:
        return UnjudgeableCheck("skipped without a reason")
    if isinstance(error, pytest.PytestReturnNotNoneWarning):
        return UnjudgeableCheck(RETURN_REASON)
    if isinstance(error, ReadingUnavailable) and error.kind in SKIPPING_KINDS:
        return pytest.skip.Exception(format_reason(error))
    return error


def find_pass_objection(context: CheckContext) -> BaseException | None:
    """Return why a check that returned has not passed: it ignored a missing reading, or read no evidence."""
    if context.unavailable_readings:
        first = context.unavailable_readings[0]
        return convert_exception(
            ReadingUnavailable(first.kind, first.where, f"{first.reason} (the check went on without it)")
        )
    if not context.documents:
        return UnjudgeableCheck("passed without reading any evidence")
    return None


def find_phase_verdict(error: BaseException | None, when: str) -> CheckVerdict:
    """Return the verdict of one phase (`setup`, `call`, `teardown`) of an item."""
    if error is None:
        return "pass"
    if isinstance(error, pytest.skip.Exception):
        return "skip"
    if when == "call" and isinstance(error, AssertionError | pytest.fail.Exception):
        return "fail"
    return "error"


def format_reason(error: BaseException) -> str:
    """Return the reason in one line: an assertion's message, a reading's path and reason, else type and message."""
    if isinstance(error, pytest.FixtureLookupError):
        known = (*SUBJECT_KIND_OF_FIXTURE, "measure", "since_last_pass")
        text = f"fixture {error.argname!r} not found. {suggest_nearest(error.argname or '', known)}"
    elif isinstance(error, ReadingUnavailable):
        text = f"{error.where}: {error.kind}: {error.reason}" if error.where else error.reason
    elif isinstance(
        error, AssertionError | UnjudgeableCheck | AssayError | pytest.fail.Exception | pytest.skip.Exception
    ):
        text = _first_line(str(error))
    else:
        text = f"{type(error).__name__}: {_first_line(str(error))}"
    text = escape_line(" ".join(text.split()).rstrip(": ") or type(error).__name__)
    return text if len(text) <= MAX_REASON_LENGTH else f"{text[: MAX_REASON_LENGTH - 1]}…"


def _first_line(text: str) -> str:
    """Return the first line of a message; for an assert without a message also where its values came from."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and lines[0].startswith("assert "):
        return " ".join(line.replace("+  where", "where", 1) for line in lines[:2])
    return lines[0] if lines else ""
