"""Progress on stderr: bars in a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import typer

ProgressByLabel = Mapping[str, tuple[int, int]]
"""Label (such as a pool) → done and total."""

LINE_EVERY_S = 30.0


@contextmanager
def show_progress(verb: str) -> Iterator[Callable[[ProgressByLabel], None]]:
    """Yield a function that shows the progress: one bar a label in a terminal, else a `ProgressLines`.

    `verb` is a past participle, such as "judged".
    """
    from rich.console import Console

    console = Console(file=sys.__stderr__)  # it moves the cursor, and shows only labels of ours
    if not console.is_terminal:
        yield ProgressLines(verb)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        tasks = {}

        def show(progress: ProgressByLabel) -> None:
            for label, (done, total) in progress.items():
                if label not in tasks:
                    tasks[label] = bars.add_task(label, total=total)
                bars.update(tasks[label], completed=done, total=total)

        yield show


class ProgressLines:
    """Prints the total progress as a line, at most every `LINE_EVERY_S` seconds."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._printed_at = time.monotonic()

    def __call__(self, progress: ProgressByLabel) -> None:
        """Print a line if it is time."""
        if time.monotonic() - self._printed_at < LINE_EVERY_S:
            return
        self._printed_at = time.monotonic()
        done, total = (sum(counts[index] for counts in progress.values()) for index in (0, 1))
        typer.echo(f"{self._verb} {done:,} of {total:,} ({done / max(total, 1):.0%})", err=True)


def print_step(line: str) -> None:
    """Print a line about the step that a person waits for."""
    print(f"· {line}", file=sys.stderr, flush=True)  # noqa: T201 — for people
