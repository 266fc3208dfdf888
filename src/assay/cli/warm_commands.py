"""Runs `assay` commands as processes that start quickly: forks of one that has imported what they need.

Imports are most of what a short command costs, and a tour gives thirty commands. The process that is forked has run
none of them, and each command has its own words, environment and exit code.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TextIO

IMPORTED_BEFORE = (
    "assay.act.effects.dbos_workflows",
    "assay.act.loop.reconcile_pass",
    "assay.act.schedules.slot_runner",
    "assay.cli.operator_orders",
    "assay.cli.verbs.history",
    "assay.cli.verbs.orders",
    "assay.cli.verbs.reconcile",
    "assay.cli.verbs.status",
    "assay.decide.state.entry_messages",
    "assay.declare.fleet_cache",
    "assay.tell.messages.customer_teller",
    "assay.tell.messages.delivery",
)
"""What the commands of a tour import. What is missing here is imported by each that needs it."""
_STREAMS: list[TextIO] = []
"""The streams of a command, kept: `main` wraps them, and a text stream that nobody keeps closes the file below it."""


class WarmCommands:
    """Runs commands of `assay` with this environment. The process that is forked starts now, and imports meanwhile."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._forks = multiprocessing.get_context("forkserver")
        self._forks.set_forkserver_preload(list(IMPORTED_BEFORE))
        forkserver.ensure_running()

    def run_here(self, *words: str) -> int:
        """Run `assay` with these words until it ends; its answer goes where ours goes. Return its exit code."""
        process = self._forks.Process(target=_be_assay, args=(list(words), self._environment))
        process.start()
        process.join()
        return process.exitcode or 0

    def run(self, words: Sequence[str], show_line: Callable[[str], None]) -> subprocess.CompletedProcess[str]:
        """Run `assay` with these words until it ends. Each line of its answer is shown as soon as it is there."""
        answer, answer_end = self._forks.Pipe(duplex=False)
        lines = list[str]()
        with tempfile.NamedTemporaryFile("r", encoding="utf-8", errors="replace") as errors:
            arguments = (list(words), self._environment, answer_end, errors.name)
            process = self._forks.Process(target=_answer, args=arguments)
            process.start()
            answer_end.close()
            with answer, open(answer.fileno(), encoding="utf-8", errors="replace", closefd=False) as stream:
                for line in stream:
                    lines.append(line)
                    show_line(line.rstrip("\n"))
            process.join()
            returncode = process.exitcode or 0
            return subprocess.CompletedProcess(["assay", *words], returncode, "".join(lines), errors.read())


def _answer(words: Sequence[str], environment: Mapping[str, str], answer: Connection, errors: str) -> None:
    """Be `assay` with these words: in the new process, whose two streams are no longer those of the tour."""
    os.dup2(answer.fileno(), 1)
    answer.close()
    with Path(errors).open("wb") as file:
        os.dup2(file.fileno(), 2)
    sys.stdout, sys.stderr = _STREAMS[:] = [
        open(number, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115 — they live as the process
        for number in (1, 2)
    ]
    _be_assay(words, environment)


def _be_assay(words: Sequence[str], environment: Mapping[str, str]) -> None:
    from assay.cli.app import main

    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["assay", *words]
    main()
