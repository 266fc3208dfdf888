"""From what a check raised to its verdict and one line of reason."""

from __future__ import annotations

import pytest

from assay.harness.silence import Silence, Unjudgeable
from assay.harness.trial import Trial
from assay.model.errors import Trouble
from assay.model.outcome import Verdict

LONGEST = 500
UNREASONED = ("", "unconditional skip", "Skipped")


def settle(error: BaseException | None, trial: Trial) -> BaseException | None:
    """Return what really ends a check that returned (None) or raised `error`; None is a pass.

    Skips need a reason, expected failures do not exist here, an unsupported reading skips, and a check that
    returned although it met a silent reading, or looked at nothing at all, did not judge.
    """
    if isinstance(error, pytest.xfail.Exception):
        return Unjudgeable("expected failures do not exist here; a known issue is data, not code")
    if isinstance(error, pytest.skip.Exception) and str(error).strip() in UNREASONED:
        return Unjudgeable("skipped without a reason")
    if error is None and trial.silences:
        first = trial.silences[0]
        error = Silence(first.kind, first.where, f"{first.reason} (the check went on without it)")
    if isinstance(error, Silence):
        return pytest.skip.Exception(said(error)) if error.kind == "unsupported" else error
    if error is None and not trial.documents:
        return Unjudgeable("passed without looking at any evidence")
    return error


def verdict_of(error: BaseException | None, when: str) -> Verdict:
    """Return the verdict of one phase (`setup`, `call`, `teardown`) of an item."""
    if error is None:
        return "pass"
    if isinstance(error, pytest.skip.Exception):
        return "skip"
    if when == "call" and isinstance(error, AssertionError | pytest.fail.Exception):
        return "fail"
    return "error"


def said(error: BaseException) -> str:
    """Return one line that says why: an assertion's message, a silence's path and reason, else type and message."""
    if isinstance(error, Silence):
        text = f"{error.where}: {error.kind}: {error.reason}" if error.where else error.reason
    elif isinstance(error, AssertionError | Unjudgeable | Trouble | pytest.fail.Exception | pytest.skip.Exception):
        text = _first(str(error))
    else:
        text = f"{type(error).__name__}: {_first(str(error))}"
    text = " ".join(text.split()).rstrip(": ") or type(error).__name__
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _first(text: str) -> str:
    """Return the message's own line; of a bare assert also where its values came from."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and lines[0].startswith("assert "):
        return " ".join(line.replace("+  where", "where", 1) for line in lines[:2])
    return lines[0] if lines else ""
