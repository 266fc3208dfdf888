"""A tutorial of the documentation: the files and commands that its reader is to write, and what each shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ANY = "…"
"""Stands for any text in a line; alone in a line, for any lines."""


@dataclass(frozen=True)
class TutorialFile:
    """A file that the reader writes."""

    path: str
    text: str


@dataclass(frozen=True)
class TutorialCommand:
    """A command that the reader types, with the lines that the page shows; none if it shows nothing."""

    words: str
    shown: tuple[str, ...]

    def is_answer(self, output: str) -> bool:
        """Return whether the page shows this output."""
        pattern = "".join(r"(?:.*\n)*" if line == ANY else _match_line(line) for line in self.shown)
        return not self.shown or re.fullmatch(pattern, output.rstrip("\n") + "\n") is not None


def _match_line(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split(ANY)) + r"\n"


def read_tutorial(page: Path) -> list[TutorialFile | TutorialCommand]:
    """Return what a reader does, in order."""
    steps: list[TutorialFile | TutorialCommand] = []
    for language, title, body in re.findall(r'(?ms)^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', page.read_text()):
        if title:
            steps.append(TutorialFile(title, body))
        elif language == "console":
            steps += [read_command(part) for part in re.split(r"(?m)^\$ ", body)[1:]]
    return steps


def read_command(text: str) -> TutorialCommand:
    """Return a command and its lines, from what follows the prompt."""
    words, *shown = text.splitlines()
    return TutorialCommand(words, tuple(shown))
