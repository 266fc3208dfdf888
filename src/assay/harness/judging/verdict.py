"""One check on one subject while it is judged: what it looked at, what it measured, what fell silent.

Judging is done once: what would run a check again until it passes is refused, whichever plugin offers it.

What may be tried again is collecting (`assay observe`), of which each document says when it was.

From what a check raised to its verdict and one line of reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from assay.harness.judging.evidence_cache import CachedEvidence, EvidenceCache, ReadingUnavailable, UnjudgeableCheck
from assay.model.errors import AssayError
from assay.model.outcome import CheckSubject, CheckVerdict, Measurement, Outcome

RERUN_OPTIONS = ("reruns", "retries", "force_flaky")
"""Of pytest-rerunfailures, pytest-retry and flaky; the first two may stand in an ini file too."""
REFUSED_MARKS = {
    "xfail": "xfail does not exist here; a known issue is data, not code",
    "flaky": "nothing is judged again until it passes; retries belong to collecting",
}


def refuse_rerun_options(config: pytest.Config) -> None:
    """Raise Trouble where this session shall run failed checks again."""
    for name in RERUN_OPTIONS:
        if config.getoption(name, default=None) or _is_in_ini(config, name):
            what = f"`{name}` is set: failed checks would be judged again until they pass"
            raise AssayError(what, fix="leave it out for suites; collect again with `assay observe`, then judge once")


def _is_in_ini(config: pytest.Config, name: str) -> bool:
    try:
        return bool(config.getini(name))
    except ValueError:  # no plugin knows it, so whatever a file says, nothing comes of it
        return False


def refuse_excusing_marks(item: pytest.Item) -> None:
    """Raise Unjudgeable for an item that is marked to be excused or judged again."""
    for name, why in REFUSED_MARKS.items():
        if item.get_closest_marker(name):
            raise UnjudgeableCheck(why)


@dataclass(slots=True)
class CheckContext:
    """Collects what the outcome will say. `check`, `phases`, `fault` and `active` come from the function's marks."""

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
        """Return the newest document of a node and remember that this verdict rests on it. Raises Silence."""
        if name not in self.documents:
            try:
                self.documents[name] = self.evidence_cache.read_latest(name)
            except ReadingUnavailable as silence:
                raise self.note_unavailable(silence) from None
        return self.documents[name]

    def note_unavailable(self, silence: ReadingUnavailable) -> ReadingUnavailable:
        """Note a reading that gave no value: whatever the check makes of it, it cannot pass any more."""
        self.unavailable_readings.append(silence)
        return silence

    def make_outcome(self, verdict: CheckVerdict, reason: str, duration_s: float) -> Outcome:
        """Return the one outcome. It is dated by the oldest document that was looked at."""
        oldest = _oldest(self.documents)
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
        )


def _oldest(documents: Mapping[str, CachedEvidence]) -> CachedEvidence | None:
    if len(documents) == 1:  # nearly always
        return next(iter(documents.values()))
    return min(documents.values(), key=_collection_time, default=None)


def _collection_time(document: CachedEvidence) -> datetime:
    return document.evidence.at


MAX_REASON_LENGTH = 500
EMPTY_SKIP_REASONS = ("", "unconditional skip", "Skipped")


def convert_exception(error: BaseException) -> BaseException:
    """Return what an exception of a check stands for: skips need a reason, xfail is refused, unsupported skips."""
    if isinstance(error, pytest.xfail.Exception):
        return UnjudgeableCheck("xfail does not exist here; a known issue is data, not code")
    if isinstance(error, pytest.skip.Exception) and str(error).strip() in EMPTY_SKIP_REASONS:
        return UnjudgeableCheck("skipped without a reason")
    if isinstance(error, ReadingUnavailable) and error.kind == "unsupported":
        return pytest.skip.Exception(format_reason(error))
    return error


def find_pass_objection(trial: CheckContext) -> BaseException | None:
    """Return why a check that returned did not judge: it went on past a silent reading, or looked at nothing."""
    if trial.unavailable_readings:
        first = trial.unavailable_readings[0]
        return convert_exception(
            ReadingUnavailable(first.kind, first.where, f"{first.reason} (the check went on without it)")
        )
    if not trial.documents:
        return UnjudgeableCheck("passed without looking at any evidence")
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
    """Return one line that says why: an assertion's message, a silence's path and reason, else type and message."""
    if isinstance(error, ReadingUnavailable):
        text = f"{error.where}: {error.kind}: {error.reason}" if error.where else error.reason
    elif isinstance(
        error, AssertionError | UnjudgeableCheck | AssayError | pytest.fail.Exception | pytest.skip.Exception
    ):
        text = _first(str(error))
    else:
        text = f"{type(error).__name__}: {_first(str(error))}"
    text = " ".join(text.split()).rstrip(": ") or type(error).__name__
    return text if len(text) <= MAX_REASON_LENGTH else f"{text[: MAX_REASON_LENGTH - 1]}…"


def _first(text: str) -> str:
    """Return the message's own line; of a bare assert also where its values came from."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and lines[0].startswith("assert "):
        return " ".join(line.replace("+  where", "where", 1) for line in lines[:2])
    return lines[0] if lines else ""
