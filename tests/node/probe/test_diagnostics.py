"""The reports that vendors ask for: whole, cut, of a tool that hangs, fails, or is not there."""

from __future__ import annotations

import base64
import gzip
import os
import time
from pathlib import Path

import pytest

from assay.node.probe import diagnostics
from assay.node.probe.diagnostics import REPORT, REPORTS, DiagnosticReport, ask_reports, make_report
from assay.node.probe.isolated_reader import gather_isolated


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def install(name: str, script: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return install


def read(leaf) -> tuple[str, str]:
    return gzip.decompress(base64.b64decode(leaf["value"]["gzip"])).decode(), leaf["value"]["note"]


def test_the_parts_that_a_tool_packs_one_by_one_are_one_report(tools) -> None:
    tools("report", 'for part in one two; do echo $part | gzip -c >> "$2.gz"; done')
    assert read(make_report(DiagnosticReport([(("report", "-o", REPORT), 5)]))) == ("one\ntwo\n", "")


def test_a_tool_that_hangs_is_killed_with_its_children_and_asked_in_another_mode(tools, tmp_path: Path) -> None:
    hangs = f'echo begun > "$3"; (sleep 60; touch {tmp_path}/alive) & sleep 60'
    tools("report", f'[ "$1" = --safe ] && echo safe mode, and longer > "$3" && exit; {hangs}')
    begun = time.monotonic()
    commands = [(("report", "--whole", "-o", REPORT), 0.5), (("report", "--safe", "-o", REPORT), 5)]
    assert read(make_report(DiagnosticReport(commands))) == (
        "safe mode, and longer\n",
        "report did not end within 0.5 s",
    )
    assert time.monotonic() - begun < 5


def test_what_a_tool_had_written_when_it_was_killed_is_kept(tools) -> None:
    tools("report", 'echo half | gzip -c > "$2.gz"; printf broken >> "$2.gz"; sleep 60')
    leaf = make_report(DiagnosticReport([(("report", "-o", REPORT), 0.5)]))
    assert read(leaf) == ("half\n", "report did not end within 0.5 s")


def test_a_failure_is_said_with_the_last_words_of_the_tool(tools) -> None:
    tools("report", "echo first; echo 'no such GPU' >&2; exit 3")
    text, note = read(make_report(DiagnosticReport([(("report",), 5)])))
    assert (text, note) == ("first\nno such GPU\n", "report ended with 3: no such GPU")
    tools("report", "exit 3")
    assert make_report(DiagnosticReport([(("report",), 5)])) == {"failed": "report ended with 3: "}
    assert make_report(DiagnosticReport([(("no-such-tool",), 5)])) == {"absent": "no-such-tool is not installed"}


def test_a_report_that_is_too_large_is_cut_and_says_so(tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics, "MAX_PACKED_BYTES", 4096)
    tools("report", "head -c 65536 /dev/urandom | base64")
    text, note = read(make_report(DiagnosticReport([(("report",), 5)])))
    assert note == f"cut to its first {len(text)} bytes"
    assert 0 < len(gzip.compress(text.encode())) <= 4096


def test_each_report_is_a_question_of_its_own_and_all_fit_into_an_area(tools) -> None:
    tools("dcgmi", "sleep 60")
    tools("nvidia-bug-report.sh", 'echo whole > "$2"')
    questions = {name: question for name, question in ask_reports().items() if name != "dcgmi-diag.json"}
    questions["dcgmi-health.json"] = questions["dcgmi-health.json"]._replace(seconds=0.5)
    answers = gather_isolated({"diagnostics": lambda: questions}, 20)["diagnostics"]
    assert answers["dcgmi-health.json"]["failed"].startswith("no answer within 0.5 s")
    assert read(answers["nvidia-bug-report.log"]) == ("whole\n", "")
    assert len(REPORTS) * diagnostics.MAX_PACKED_BYTES * 4 / 3 <= 8 * 2**20
