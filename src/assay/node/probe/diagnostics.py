"""The reports of a node that its vendor asks for, and that a restart destroys: each within its own time and size.

A tool that does not end in time is killed with all that it started, and what it had written by then is kept. NVIDIA
asks for `nvidia-bug-report.sh`, and for another mode of it where that hangs (NVIDIA, Xid errors, collecting data).
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import os
import shutil
import signal
import subprocess
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from assay.model.reading import MAX_REPORT_BYTES, ReadingTree, absent, failed, value
from assay.node.probe.node_access import TimedQuestion

MAX_PACKED_BYTES = 2**20 * 3 // 2
"""Of a report in gzip. Four of them, in base64, are within what the probe answers of an area."""
KILL_S = 5.0
REPORT = "REPORT_FILE"
"""Stands for the file in a command that writes one."""


class DiagnosticReport(NamedTuple):
    """A report: the commands that make it, each with its time in seconds. The next one runs where one did not end."""

    commands: Sequence[tuple[Sequence[str], float]]

    @property
    def seconds(self) -> float:
        """The longest time that it takes."""
        return sum(seconds + KILL_S for _, seconds in self.commands)


REPORTS: Mapping[str, DiagnosticReport] = {
    "dcgmi-health.json": DiagnosticReport([(("dcgmi", "health", "--check", "--json"), 20)]),
    "nvidia-bug-report.log": DiagnosticReport(
        [
            (("nvidia-bug-report.sh", "--output-file", REPORT), 150),
            (("nvidia-bug-report.sh", "--safe-mode", "--output-file", REPORT), 60),
        ]
    ),
    "dcgmi-diag.json": DiagnosticReport([(("dcgmi", "diag", "-r", "1", "-j"), 90)]),
    "amd-smi.json": DiagnosticReport([(("amd-smi", "metric", "--json"), 30)]),
}
ALL_REPORTS_S = sum(report.seconds for report in REPORTS.values())


def ask_reports() -> Mapping[str, TimedQuestion]:
    """Return the question of each report. The answer has `gzip` (base64) and `note`, "" for a whole report."""
    return {name: TimedQuestion(each.seconds, partial(make_report, each)) for name, each in REPORTS.items()}


def make_report(report: DiagnosticReport) -> ReadingTree:
    """Run the commands of a report until one ends, and return the report of the last one."""
    notes, content = list[str](), b""
    with tempfile.TemporaryDirectory(prefix="assay-report-") as folder:
        for words, seconds in report.commands:
            if shutil.which(words[0]) is None:
                return absent(f"{words[0]} is not installed")
            written = f"{folder}/{len(notes)}.log"
            note = _run([written if word == REPORT else word for word in words], seconds, f"{folder}/output")
            content = max(content, _read_report(written if REPORT in words else f"{folder}/output"), key=len)
            notes += [note] if note else []
            if not note:
                break
    if not content:
        return failed("; ".join(notes) or "it is empty")
    packed = gzip.compress(content)
    while len(packed) > MAX_PACKED_BYTES:
        content = content[: len(content) // 2]
        packed = gzip.compress(content)
        notes = [*(note for note in notes if not note.startswith("cut")), f"cut to its first {len(content)} bytes"]
    document: dict[str, Any] = {"gzip": base64.b64encode(packed).decode(), "note": "; ".join(notes)}
    return value(document)


def _run(words: Sequence[str], seconds: float, output: str) -> str:
    """Run a command with its output in a file. Return why it did not end well, "" if it did."""
    with open(output, "wb") as out:  # noqa: PTH123 — pathlib costs a node 10 ms to import
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            return f"{words[0]} could not be started: {error.strerror}"
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(KILL_S)
            return f"{words[0]} did not end within {seconds:g} s"
    with open(output, "rb") as file:  # noqa: PTH123 — as above
        last = file.read(MAX_REPORT_BYTES).decode(errors="replace").strip().rpartition("\n")[2]
    return f"{words[0]} ended with {code}: {last[:200]}" if code else ""


def _read_report(path: str) -> bytes:
    """Return what a command wrote to a file, which it may have packed itself, also where it was killed meanwhile."""
    for name in (f"{path}.gz", path):
        if os.path.exists(name):  # noqa: PTH110 — as above
            with open(name, "rb") as file:  # noqa: PTH123 — as above
                content = file.read(MAX_REPORT_BYTES)
            if name == path:
                return content
            unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            unpacked, rest = b"", content
            with contextlib.suppress(zlib.error):  # what follows was cut short
                while rest and len(unpacked) < MAX_REPORT_BYTES:  # the script packs each part of its own
                    unpacked += unpacker.decompress(rest, MAX_REPORT_BYTES - len(unpacked))
                    rest, unpacker = unpacker.unused_data, zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            return unpacked
    return b""
