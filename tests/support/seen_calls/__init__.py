"""Sees which programs a test starts, from which function of production, with which words.

`CALLS_SEEN_BY_TESTS` names the file that gets a line for each. Python imports `sitecustomize.py` of this folder where
the folder is on its path, so children in Python write into it too.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = "CALLS_SEEN_BY_TESTS"
HERE = Path(__file__).parent
SOURCE = "/src/assay/"
STARTS = {"subprocess.Popen": 3, "os.posix_spawn": 2, "os.exec": 2}
"""The events of a start, with the place of the environment among what they tell."""


@dataclass(frozen=True)
class SeenCall:
    """A program that was started. `program`: its file; `functions`: those of production that did it, inner first."""

    program: str
    words: tuple[str, ...]
    functions: tuple[str, ...]


def install() -> None:
    """Write down each start of a program of this process, from now on."""
    file, is_writing = os.environ[FILE], False  # tests change their environment

    def see(event: str, told: tuple[Any, ...]) -> None:
        nonlocal is_writing
        if event in STARTS and not is_writing:
            is_writing = True
            try:
                _write(file, told[0], told[1], told[STARTS[event]])
            finally:
                is_writing = False

    sys.addaudithook(see)


def _write(place: str, program: Any, words: Any, environment: Any) -> None:
    given = [os.fsdecode(word) for word in ([words] if isinstance(words, str | bytes) else words or [program])]
    name = os.fsdecode(program or given[0])
    path = (os.environ if environment is None else environment).get("PATH", os.defpath)
    line = {
        "program": shutil.which(name, path=os.fsdecode(path)) or name,
        "words": given,
        "functions": [*_list_functions()],
    }
    with open(place, "a", encoding="utf-8") as file:  # noqa: PTH123 - it runs inside of a start
        file.write(json.dumps(line) + "\n")


def _list_functions() -> Iterator[str]:
    frame = sys._getframe(2)
    while frame:
        name = frame.f_code.co_filename
        if SOURCE in name:
            yield f"{name.rpartition(SOURCE)[2]}:{frame.f_code.co_qualname.replace('.<locals>', '')}"
        frame = frame.f_back  # type: ignore[assignment]


def read_calls(file: Path) -> list[SeenCall]:
    """Return what was written, in order."""
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines()) if file.exists() else ()
    return [SeenCall(line["program"], tuple(line["words"]), tuple(line["functions"])) for line in lines]
