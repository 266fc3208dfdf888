"""The streams to which every verb prints: no control character reaches a terminal, a file or a pipe by them.

Texts inside rich's markup hold no markup and begin no line. Progress goes to stderr: bars in a terminal, else lines.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import typer

from assay.model.text.safe_text import escape_all_but_styles, escape_controls, escape_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_REPLACED = {"strict": "backslashreplace"}
LINE_EVERY_S = 30.0
LEAST_WORDS = 36
"""A column of words is at least so wide."""


class PrintableOutput(io.TextIOWrapper):
    """A text stream that escapes control characters. On a terminal, colours pass."""

    def write(self, text: str) -> int:
        """Write a text with its control characters escaped."""
        super().write(escape_all_but_styles(text) if self.isatty() else escape_controls(text))
        return len(text)

    def close(self) -> None:
        """Write out what is left. The stream below stays open: it belongs to whoever started this process."""
        self.flush()


def escape_standard_streams() -> None:
    """Let everything that this process prints from now on be printable."""
    sys.stdout, sys.stderr = _wrap(sys.stdout), _wrap(sys.stderr)


def _wrap(stream: TextIO) -> TextIO:
    if not hasattr(stream, "buffer"):  # nobody looks, or a test does
        return stream
    stream.flush()
    errors = _REPLACED.get(stream.errors or "strict", stream.errors)
    return PrintableOutput(
        stream.buffer,
        encoding=stream.encoding,
        errors=errors,
        line_buffering=bool(stream.line_buffering),
        write_through=True,
    )


def escape(text: str) -> str:
    """Return a text for rich's markup, in one printable line."""
    from rich.markup import escape as escape_brackets

    return escape_brackets(escape_line(text))


def open_console(pipe_width: int = 160) -> Console:
    """Return where tables are printed: as wide as the terminal, or as COLUMNS says; else as wide as given."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = pipe_width
    return console


def make_table(titles: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> Table:
    """Return a table of texts in rich's markup, whose last column alone wraps, at words.

    Where the others leave it fewer than LEAST_WORDS columns, they stand in one line above it.
    """
    from rich import box
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    every = [[Text.from_markup(cell) for cell in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    columns = zip(*(row[:-1] for row in every), strict=True)
    taken = sum(max(cell.cell_len for cell in column) + 2 for column in columns)
    if width - taken >= LEAST_WORDS:
        for title in titles[:-1]:
            table.add_column(title, no_wrap=True)
        table.add_column(titles[-1], overflow="fold")
        for row in every:
            table.add_row(*row)
        return table
    table.add_column(", ".join(titles), overflow="fold")
    for row in every:
        head = Text("  ").join(cell for cell in row[:-1] if cell)
        table.add_row(Group(head, Padding(row[-1], (0, 0, 0, 2))))
    return table


ProgressByLabel = Mapping[str, tuple[int, int]]
"""Label (such as a pool) → done and total."""


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
