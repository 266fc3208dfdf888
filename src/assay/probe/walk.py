"""Ask the questions of a lazy tree one after the other, saying each before and its answer after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.model.reading import as_reading, failed
from assay.probe.answers import Answers, Path
from assay.probe.journal import Journal
from assay.probe.lazy import USUAL_S, Timed


def walk(what: Any, known: Answers, journal: Journal, path: Path = ()) -> None:
    """Ask what is not `known` at and below `path`. Questions that led to a branch are asked again, to get there."""
    if known.settled(path):
        return
    while callable(what):
        journal.asks(path, what.seconds if isinstance(what, Timed) else USUAL_S)
        what = _answer(what)
    if not isinstance(what, Mapping):
        journal.leaf(path, failed(f"the reader answered with {type(what).__name__}, which is no reading"))
    elif as_reading(what) is not None:
        journal.leaf(path, dict(what))
    else:
        journal.names(path, list(what))
        for name, below in what.items():
            walk(below, known, journal, (*path, name))


def _answer(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception as error:  # whatever went wrong is the answer
        return failed(f"{type(error).__name__}: {error}")
