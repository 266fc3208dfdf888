"""`assay faults` as a person or a script calls it: one document, and an exit code that says what it means."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.model.errors import AssayError
from tests.support.places import ROOT

faults_app = load_verb("faults")

HERE = ROOT / "tests/observe/logs/recordings"
MINE = "[ 10.5] NVRM: Xid (PCI:0000:1b:00): 13, pid=1, name=train, Graphics Exception\n"


def run(*words: str, told: str | None = None):
    return CliRunner().invoke(faults_app, [*words], input=told)


def test_json_is_one_document_with_what_was_promised():
    result = run(str(HERE / "dmesg-T.log"), "--format", "json", "--fleet", str(ROOT))
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert document.keys() - {"context"} == {"faults", "lines", "unread", "not_judged", "uncounted", "broken"}
    (fault,) = document["faults"]
    assert (fault["fault"], fault["class"], fault["severity"]) == ("gpu.xid.79", "hardware", "catastrophic")
    assert (fault["subject"], fault["count"], fault["action"]) == ("0000:9b:00", 1, "reboot")
    assert "gpu.xid.74" in fault["because"]


def test_an_application_s_own_fault_asks_for_nothing(tmp_path):
    (tmp_path / "log").write_text(MINE)
    result = run(str(tmp_path / "log"), "--fleet", str(ROOT))
    assert result.exit_code == 0
    assert "gpu.xid.13 on 0000:1b:00: no action (application, informational)" in result.stdout


def test_what_is_counted_below_its_limit_is_no_health_and_is_told_by_number(tmp_path):
    late = "nvme nvme0: I/O 12 QID 3 timeout, completion polled\n"
    (tmp_path / "log").write_text(f"[ 1000.5] {late}[ 2000.5] {late}{MINE}")
    result = run(str(tmp_path / "log"), "--fleet", str(ROOT))
    assert result.exit_code == 0
    assert result.stdout.endswith("lines: 3; faults: 2, with an action: 0, counted but below their limit: 1\n")
    (tmp_path / "log").write_text(f"[ 1000.5] {late}[ 2000.5] {late}[ 2500.5] {late}")
    result = run(str(tmp_path / "log"), "--fleet", str(ROOT))
    assert result.exit_code == 1
    assert "below" not in result.stdout


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_log_says_nothing_of_a_node(content, tmp_path):
    (tmp_path / "log").write_text(content)
    result = run(str(tmp_path / "log"), "--fleet", str(ROOT))
    assert isinstance(result.exception, AssayError), "which the command prints, with exit code 2"
    assert "is empty" in str(result.exception)


def test_a_line_that_cannot_be_counted_ends_with_an_error_that_shows_it(tmp_path):
    (tmp_path / "log").write_text("[ 10.5] usb 1-1: new\n[ 11.5] NVRM: Xid (PCI:0000:1b\n")
    result = run(str(tmp_path / "log"), "--fleet", str(ROOT))
    assert isinstance(result.exception, AssayError), "which the command prints, with exit code 2"
    assert "NVRM: Xid (PCI:0000:1b" in str(result.exception)
    assert "a line that cannot be counted" in result.stdout
    (tmp_path / "log").write_text(f"[ 10.5] NVRM: Xid (PCI:0000:1b\n{MINE.replace('13', '79')}")
    assert run(str(tmp_path / "log"), "--fleet", str(ROOT)).exit_code == 1, "a fault with an action says more"


def test_the_page_shows_what_the_command_prints(tmp_path):
    (tmp_path / "kern.log").write_text("[ 1234.500000] NVRM: Xid (PCI:0000:9d:00): 79, GPU has fallen off the bus.\n")
    shown = (ROOT / "docs/faults.md").read_text().partition("$ assay faults kern.log\n")[2].partition("```")[0]
    assert run(str(tmp_path / "kern.log"), "--fleet", str(ROOT)).stdout == shown


def test_without_a_fleet_around_assay_s_own_catalogues_judge(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASSAY_FLEET", raising=False)
    assert run(str(HERE / "sel.log")).exit_code == 1


@pytest.mark.parametrize("name", ["nothing-there.log", "."])
def test_what_cannot_be_read_is_said_in_words(name, tmp_path):
    result = run(str(tmp_path / name), "--fleet", str(ROOT))
    assert isinstance(result.exception, AssayError), "which the command prints, with exit code 2"


def test_a_fleet_without_a_catalogue_is_said_in_words(tmp_path):
    result = run(str(HERE / "dmesg.log"), "--fleet", str(tmp_path))
    assert isinstance(result.exception, AssayError)
    assert "there is no fault catalogue" in str(result.exception)
