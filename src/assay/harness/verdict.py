"""From what a check raised to its verdict and one line of reason."""

from __future__ import annotations

import pytest

from assay.harness.silence import Silence, Unjudgeable
from assay.harness.trial import Trial
from assay.model.errors import Trouble
from assay.model.outcome import Verdict

LONGEST = 500
UNREASONED = ("", "unconditional skip", "Skipped")


def settled(error: BaseException) -> BaseException:
    """Return what an exception of a check stands for: skips need a reason, xfail is refused, unsupported skips."""
    if isinstance(error, pytest.xfail.Exception):
        return Unjudgeable("xfail does not exist here; a known issue is data, not code")
    if isinstance(error, pytest.skip.Exception) and str(error).strip() in UNREASONED:
        return Unjudgeable("skipped without a reason")
    if isinstance(error, Silence) and error.kind == "unsupported":
        return pytest.skip.Exception(said(error))
    return error


def unearned(trial: Trial) -> BaseException | None:
    """Return why a check that returned did not judge: it went on past a silent reading, or looked at nothing."""
    if trial.silences:
        first = trial.silences[0]
        return settled(Silence(first.kind, first.where, f"{first.reason} (the check went on without it)"))
    if not trial.documents:
        return Unjudgeable("passed without looking at any evidence")
    return None


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
