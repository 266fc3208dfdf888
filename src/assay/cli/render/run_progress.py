"""How far a run is: a bar per pool where a person looks, a line now and then where nobody does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import typer

PoolProgress = Mapping[str, tuple[int, int]]
LINE_EVERY_S = 30.0


@contextmanager
def show_run_progress() -> Iterator[Callable[[PoolProgress], None]]:
    """Give what shows how far a run is, on stderr: outcomes done and due by pool."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield ProgressLines()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        tasks = {}

        def show(far: PoolProgress) -> None:
            for pool, (done, due) in far.items():
                if pool not in tasks:
                    tasks[pool] = shown.add_task(pool, total=due)
                shown.update(tasks[pool], completed=done)

        yield show


class ProgressLines:
    """Says how far a run is in a line each half minute, so that a log tells that it goes on."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __call__(self, far: PoolProgress) -> None:
        """Say so, if it is time."""
        if time.monotonic() - self._said < LINE_EVERY_S:
            return
        self._said = time.monotonic()
        done, due = (sum(pool[at] for pool in far.values()) for at in (0, 1))
        typer.echo(f"judged {done:,} of {due:,} ({done / max(due, 1):.0%})", err=True)
