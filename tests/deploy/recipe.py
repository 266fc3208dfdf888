"""The recipe of the images, read stage by stage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.deploy.manifests import DEPLOY

FILE = DEPLOY / "Containerfile"
CONFIGURES = {"CMD", "ENTRYPOINT", "ENV", "EXPOSE", "USER", "WORKDIR"}
"""What says how an image starts, and not what it contains."""


@dataclass
class Stage:
    """One stage of the recipe: what it begins from, and its instructions."""

    base: str
    said: list[tuple[str, str]] = field(default_factory=list)

    def last(self, instruction: str) -> str:
        return next((words for name, words in reversed(self.said) if name == instruction), "")


def read_stages() -> dict[str, Stage]:
    """Return the stages by name. A line that ends with a backslash goes on."""
    text = re.sub(r"^\s*#.*\n", "", FILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    stages: dict[str, Stage] = {}
    for line in filter(str.strip, text.splitlines()):
        instruction, _, words = line.strip().partition(" ")
        if instruction == "FROM":
            base, _, name = words.partition(" AS ")
            stages[name] = Stage(base)
        elif stages:
            list(stages.values())[-1].said.append((instruction, words.strip()))
    return stages


STAGES = read_stages()


def find_last(name: str, instruction: str) -> str:
    """Return the last words of an instruction in a stage, or in those that it begins from."""
    while name in STAGES:
        if said := STAGES[name].last(instruction):
            return said
        name = STAGES[name].base
    return ""


def list_configuration(name: str) -> Iterator[str]:
    """Yield what a stage, and first those that it begins from, say about how the image starts."""
    if name in STAGES:
        yield from list_configuration(STAGES[name].base)
        yield from (f"{instruction} {words}" for instruction, words in STAGES[name].said if instruction in CONFIGURES)
