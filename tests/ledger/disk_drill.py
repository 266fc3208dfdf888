"""A small fleet on a disk of its own, and the verbs of assay called on it: inside the namespace of `small_disk`."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from assay.cli.app import main
from assay.ledger.runs.writer import OutcomeWriter
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Outcome, SuiteRun
from tests.support.places import SMALLEST

AT = "2026-11-21T12:00:00+00:00"
READING = {
    "status": "n1",
    "status --format json": '"onboard"',
    "explain n1": "onboard",
    "history n1": "first seen",
    "history --outcomes": "",
    "tickets": "no open tickets",
    "ledger verify": "the ledger is unchanged: 2 entries, 1 run",
    "results": "2 outcomes on 2 nodes",
    "schedules": "",
    "show n1": "node_spec",
    "check": "no problems",
    "plan --base HEAD": "nothing changes",
}
"""Verbs that only read, and a word of what each says of the fleet."""


def make_fleet(disk: Path) -> Path:
    """Make a fleet with a ledger of two entries and one run, and a stored run, all on `disk`."""
    root = disk / "fleet"
    shutil.copytree(SMALLEST, root)
    for words in (("init", "-q"), ("add", "."), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")):
        subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)
    write_ledger(root)
    run = SuiteRun("20251120T000000.000-aaaaaa", AT, (), ("n1", "n2"))
    path = root / "reports/runs" / run.id / "run.sqlite"
    path.parent.mkdir(parents=True)
    writer = OutcomeWriter(path, run)
    for node in ("n1", "n2"):
        writer(Outcome("suites/production/test_heat.py::test_heat", f"pool/{node}", node, "pass"))
    writer.set_about(ended="whole")
    writer.close()
    return root


def write_ledger(root: Path, *, killed: bool = False) -> None:
    """Write the ledger; `killed` ends its writer at once, so that all of it is in the write-ahead log."""

    def write() -> None:
        ledger = Ledger.open(root / ".assay/ledger.sqlite")
        body = {"pool": "pool", "state": "onboard"}
        ledger.append(*(LedgerEntry(f"e{n}", AT, "node.enrolled", f"n{n}", body) for n in (1, 2)))
        ledger.record(SuiteRun("r1", AT), [Outcome("c", "pool/n1", "n1", "fail", "hot", phases=("production",))])
        if not killed:
            ledger.close()

    apart(write)


def ask(root: Path, words: str) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr of a verb."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["assay", *words.split()]
    before = warnings.showwarning
    with (
        contextlib.chdir(root),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("always")
        warnings.showwarning = before
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue(), err.getvalue()


def apart(work: Callable[[], None]) -> None:
    """Do a piece of work in a process of its own, which keeps no file open afterwards."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def check_reading(root: Path, *signs: str) -> None:
    """Prove that each verb reads, and that those that read the ledger say each of `signs` on stderr."""
    for verb, word in READING.items():
        code, out, err = ask(root, verb)
        assert (code, word in out) == (0, True), (verb, code, out, err)
        assert "internal error" not in err, (verb, err)
        reads_ledger = verb.split()[0] in ("status", "explain", "tickets", "ledger", "plan") or verb == "history n1"
        assert not reads_ledger or all(sign in err for sign in signs), (verb, err)
        if "json" in verb:
            json.loads(out)


def check_writing_fails(root: Path, *signs: str) -> None:
    """Prove that verbs that write fail with 2 and in plain words, which contain each of `signs`."""
    for verb in ("hold n1 --reason fan --who ann", "reconcile --once", "validate", "ledger seal --anchor file:seals"):
        code, out, err = ask(root, verb)
        assert code == 2, (verb, code, out, err)
        assert "internal error" not in err, (verb, err)
        assert "Traceback" not in err, (verb, err)
        assert all(sign in out + err for sign in signs), (verb, out, err)


def check_writing_goes_on(root: Path) -> None:
    """Prove that a verb that writes works again, and that nothing was lost."""
    code, out, err = ask(root, "hold n1 --reason fan --who ann")
    assert code == 0, (out, err)
    assert err.startswith("context fleet: "), err
    assert err.count("\n") == 1, err
    assert "the ledger is unchanged: 3 entries, 1 run" in ask(root, "ledger verify")[1]
