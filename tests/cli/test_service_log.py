"""A service logs lines for people, or JSON lines for a collector: its own, those of libraries, and what ends it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.cli.service_log import StderrHandler, open_service_log
from assay.model.text.safe_text import register_secret
from tests.support.forked_assay import run_assay


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    """Leave no handler behind."""
    yield
    root = logging.getLogger()
    for one in [one for one in root.handlers if isinstance(one, StderrHandler)]:
        root.removeHandler(one)


def read_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_people_read_lines_and_steps(capsys: pytest.CaptureFixture[str]) -> None:
    log = open_service_log("reconcile", "text")
    log.info("looks after 100 % of 4 nodes")
    log.debug("observing 4 nodes …")
    assert capsys.readouterr().err == "assay reconcile: looks after 100 % of 4 nodes\n· observing 4 nodes …\n"


def test_a_collector_reads_an_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    log = open_service_log("serve", "json")
    log.info("two\nlines \x1b[1m")
    logging.getLogger("a.library").warning("retrying %s", "once")
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("a request failed")
    first, library, failed = read_lines(capsys.readouterr().err)
    assert first.pop("at").endswith("+00:00")
    assert first == {"level": "info", "verb": "serve", "logger": "assay.serve", "message": "two\nlines \x1b[1m"}
    assert (library["logger"], library["level"], library["message"]) == ("a.library", "warning", "retrying once")
    assert failed["traceback"].endswith("ValueError: broken")


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_secret_is_logged(form: Any, capsys: pytest.CaptureFixture[str]) -> None:
    register_secret("CANARY-4711")
    open_service_log("serve", form).info("the BMC refused CANARY-4711")
    said = capsys.readouterr().err
    assert "the BMC refused" in said
    assert "CANARY" not in said


def test_opening_it_twice_says_nothing_twice(capsys: pytest.CaptureFixture[str]) -> None:
    open_service_log("serve", "text")
    open_service_log("serve", "json").info("once")
    assert len(read_lines(capsys.readouterr().err)) == 1


def test_what_ends_a_service_is_a_line_of_its_log(tmp_path: Path) -> None:
    done = run_assay("reconcile", "--once", "--log-format", "json", "--fleet", str(tmp_path))
    (line,) = read_lines(done.stderr)
    assert (done.returncode, line["level"], line["verb"]) == (2, "error", "reconcile")
    assert "this is no fleet repository" in line["message"]
    assert run_assay("reconcile", "--once", "--fleet", str(tmp_path)).stderr.startswith("assay: ")
