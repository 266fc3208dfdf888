"""Runs the tests of an entry of `outside_calls.yaml`, and finds its places whose call no real program took.

`python -m tests.architecture.made_calls SEED` draws twenty entries and runs them; names of entries run these.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.architecture.outside_calls import GIVEN
from tests.support.places import ROOT
from tests.support.seen_calls import FILE, HERE, SeenCall, read_calls

PARTNERS: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("outside_calls.yaml").read_text())
DRAWN = 20
BUILDER = re.compile(r"_?(build|list|make|wrap)(_|$)")
"""Functions that return the words of a call."""


@dataclass(frozen=True)
class EntryRun:
    """How the tests of an entry ended, and which programs they started."""

    code: int
    printed: str
    calls: tuple[SeenCall, ...]

    @property
    def is_skipped(self) -> bool:
        """Whether a test did not run, as it needs something that this machine lacks."""
        return "\nSKIPPED [" in self.printed


def run_tests(tests: Sequence[str]) -> EntryRun:
    """Run tests in a process of its own, and see what they start."""
    with tempfile.TemporaryDirectory() as folder:
        seen = Path(folder) / "calls"
        environment = {**os.environ, FILE: str(seen), "PYTHONPATH": f"{HERE}:{ROOT / 'src'}:{ROOT}"}
        command = [sys.executable, "-m", "pytest", "-n0", "-q", "-rsfE", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        return EntryRun(done.returncode, done.stdout + done.stderr, tuple(read_calls(seen)))


def list_unmade(row: Mapping[str, Any], calls: Sequence[SeenCall]) -> Iterator[str]:
    """Yield the places of an entry that start a program, but started no real one, with the reason.

    What runs on a node by Ansible, or in a machine of its own, is not seen.
    """
    for place in row["places"]:
        where, _, what = place.rpartition(": ")
        starts = what == GIVEN or what.startswith("runs ")
        if not starts or where.startswith("playbooks/") or not where.partition(":")[0].endswith(".py"):
            continue
        made = [call for call in calls if _is_of(row, where, what, call)]
        if not made:
            yield f"{place}: no test came here"
        elif not row.get("any_program") and not any(
            is_real(call) or any(is_real(other) and is_same(call, other) for other in calls) for call in made
        ):
            yield f"{place}: no real program got these words: {' '.join(made[0].words)}"


def _is_of(row: Mapping[str, Any], where: str, what: str, call: SeenCall) -> bool:
    file, _, function = where.partition(":")
    functions = [one for one in call.functions if one.partition(":")[0] == file]
    words = [Path(call.words[0]).name, *call.words[1:]]
    named = [words[0] if name == "sys.executable" and "python" in words[0] else name for name in what.split()[1:]]
    if BUILDER.match(function.rpartition(".")[2]):  # others start what it returns
        return words[0] in (named[0], row["program"])
    if function:
        return any(one == where or one.startswith(f"{where}.") for one in functions)
    is_data = words[: len(named)] == named and (len(named) > 1 or bool(call.functions))
    return is_data or (bool(functions) and named[0] in words[:3])


def is_real(call: SeenCall) -> bool:
    """Whether the program is one of the machine, and none that a test wrote."""
    return "pytest-of-" not in call.program and "/.assay-lab/" not in call.program


def is_same(call: SeenCall, other: SeenCall) -> bool:
    """Whether two calls are of one program with the same options, in the same order."""
    return _reduce(call) == _reduce(other)


def _reduce(call: SeenCall) -> tuple[str, ...]:
    options = [word.partition("=")[0] for word in call.words[1:] if word.startswith("-")]
    return Path(call.words[0]).name, *options


def main() -> None:
    """Run entries, and print what is not so."""
    names = sys.argv[1:]
    if names and names[0].isdigit():
        able = [name for name, row in PARTNERS.items() if row["by"] in ("real", "stand-in")]
        names = random.Random(int(names[0])).sample(able, DRAWN)
    for name in names:
        row = PARTNERS[name]
        run = run_tests(row["tests"])
        unmade = [*list_unmade(row, run.calls)] if row["by"] == "real" else []
        mark = "BAD" if run.code or unmade else "ok "
        others = [line for line in run.printed.splitlines() if line.startswith(("SKIPPED", "FAILED", "ERROR"))]
        last = run.printed.strip().rpartition("\n")[2]
        sys.stdout.write("\n    ".join([f"{mark} {name} ({row['by']}): {last}", *unmade, *others]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
