"""Nothing that a device, a tenant or a file said reaches a terminal with control characters, by whichever verb."""

from __future__ import annotations

import gc
import io
import json
from pathlib import Path
from typing import Any

import pytest

from assay.cli.app import VERBS
from assay.cli.output import PrintableOutput
from assay.model.ledger_entry import LedgerEntry
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT

HOSTILE = "\x1b]0;owned\x07\x1b[2K\x1b[31mred\x9b1A\u202egnol\u2066\u2028\r\nFORGED n0001 is healthy"
RECORDED = json.loads((ROOT / "tests/data/recorded_entries.json").read_text())
FREE_TEXTS = {
    "reason",
    "detail",
    "why",
    "text",
    "title",
    "expected",
    "seen",
    "cause",
    "steps",
    "note",
    "alert",
    "error",
}
"""Fields of entries that hold what devices, tenants and people said."""
READS = [
    ("status",),
    ("status", "--format", "json"),
    *((verb, node) for verb in ("history", "explain") for node in ("n0001", "n0003")),
    ("history", "n0003", "--format", "json"),
    ("explain", "n0003", "--for", "customer"),
    ("tickets",),
    ("tickets", "--format", "json"),
    ("sync",),
    ("rollout",),
    ("breaker",),
    ("ledger", "verify"),
    ("ledger", "archive", "old.gz", "--older-than", "1"),
    ("schedules",),
    ("schedules", "--format", "json"),
    ("metrics",),
    ("trends",),
    ("trends", "rules"),
    ("discover",),
]
"""Every read-only verb that shows what is in the ledger."""
ELSEWHERE = {
    *(
        "init",
        "upgrade",
        "check",
        "doctor",
        "schema",
        "plan",
        "show",
        "specs",
        "images",
        "boot",
        "replay",
    ),  # read files
    *("observe", "faults", "console", "agent", "slurm", "lab", "context", "fabric"),  # read nodes, logs, fabrics
    *("suites", "validate", "results", "collectives", "rejudge", "gate", "report", "prune"),  # read runs
    *("serve", "reconcile", "hold", "release", "move", "operations", "zap", "certify", "approve", "decline"),  # act
}


def poison(content: Any, key: str = "") -> Any:
    """Return the body of an entry whose free texts are hostile."""
    if isinstance(content, dict):
        return {name: poison(part, name) for name, part in content.items()}
    if isinstance(content, list):
        return [poison(part, key) for part in content]
    return content + HOSTILE if isinstance(content, str) and key in FREE_TEXTS else content


def assert_printable(text: str) -> None:
    bad = sorted({character for character in text if not character.isprintable() and character not in "\n\t\u2060"})
    assert not bad, [hex(ord(character)) for character in bad]
    assert not [line for line in text.split("\n") if line.startswith("FORGED")]


def test_every_verb_reads_the_ledger_here_or_reads_something_else() -> None:
    read = {words[0] for words in READS}
    assert (read | ELSEWHERE, read & ELSEWHERE) == (set(VERBS), set())


def test_every_verb_reads_entries_of_every_kind_and_version_and_lets_no_hostile_text_through(ann: Any) -> None:
    entries = [
        LedgerEntry(f"h{number}", one["at"], one["kind"], one["node"], poison(one["body"]))
        for number, one in enumerate(RECORDED)
    ]
    ann.ledger().append(*entries)
    shown = ""
    for words in READS:
        done = run_assay(*words, "--fleet", ann.root)
        assert_printable(done.stdout)
        assert_printable(done.stderr)
        assert "internal error" not in done.stderr, (words, done.stderr)
        shown += done.stdout
    assert "\\u001b]0;owned" in shown, "the texts are shown, escaped"


def test_a_log_of_hostile_lines_is_told_without_its_control_characters(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    line = f"NVRM: Xid (PCI:0000:1b:00): 79, pid=1, name={HOSTILE.replace(chr(10), ' ')}"
    log.write_text(f"[ 12.0] {line}\n[ 13.0] {line}\n")
    for form in ("text", "json"):
        done = run_assay("faults", log, "--format", form)
        assert "gpu.xid.79" in done.stdout
        assert_printable(done.stdout)
        assert_printable(done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_repeats_a_hostile_argument(verb: str, tmp_path: Path) -> None:
    for words in ([HOSTILE], ["--fleet", HOSTILE], [f"--{HOSTILE}"]):
        done = run_assay(verb, *words, cwd=tmp_path, longest_s=60)
        assert_printable(done.stdout)
        assert_printable(done.stderr)


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def printed(text: str, raw: io.BytesIO) -> str:
    stream = PrintableOutput(raw, encoding="utf-8", newline="", write_through=True)
    stream.write(text)
    return raw.getvalue().decode()


def test_on_a_terminal_colours_pass_and_nothing_else() -> None:
    ours = "\x1b[31mred\x1b[0m \x1b[2mdim\x1b[22m \x1b[38;5;208morange\x1b[0m\n"
    assert printed(ours, Terminal()) == ours
    assert_printable(printed("\x1b[8mhidden\x1b[2J\x1b]8;;http://x\x07\x1b[1A\r\x9b2K", Terminal()))


def test_in_a_pipe_no_colour_passes_either() -> None:
    assert_printable(printed("\x1b[31mred\x1b[0m", io.BytesIO()))


def test_the_stream_below_outlives_the_one_that_escapes():
    below = io.BytesIO()
    escaping = PrintableOutput(below, encoding="utf-8", write_through=True)
    escaping.write("a\x1bb")
    del escaping
    gc.collect()
    assert below.getvalue() == b"a\\u001bb"
