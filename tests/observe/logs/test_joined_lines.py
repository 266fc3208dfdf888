"""Lines that became one line are told as the lines that they were: no message is lost, each keeps time and host."""

from __future__ import annotations

import os

import pytest
import yaml

from assay.cli.verbs.faults import classify_log
from assay.model.facts import to_json
from assay.observe.logs.records import MessageSearch
from tests.support.log_spellings.envelopes import ENVELOPES
from tests.support.log_spellings.events import LINES, TOLD, WRITTEN, expected
from tests.support.log_spellings.joins import JOINS
from tests.support.places import ROOT

JOINED = ("dmesg", "dmesg-x", "dmesg-T", "journal-short", "rfc3164-printk", "journal-iso-precise", "pdsh", "dmesg-t")
WITHOUT_A_SIGN = ("blanks", "nothing")
"""Joins that leave no sign of the line's end: each message counts, with the time and host of the first."""
BY_NAME = {one.name: one for one in ENVELOPES}
ONE_LINE_EACH = yaml.safe_load((ROOT / "tests/data/one_line_each.yaml").read_text())
X13 = "NVRM: Xid (PCI:0000:1b:00): 13, pid=1, name=a, Graphics Exception"
X79 = "NVRM: Xid (PCI:0000:3d:00): 79, pid=1, name=a, GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("form", "join"),
    [(form, join) for form in JOINED for join in JOINS if join not in WITHOUT_A_SIGN],
)
def test_joined_lines_give_the_same_answer(form, join, tmp_path, catalog):
    envelope = BY_NAME[form]
    file = tmp_path / "log"
    file.write_text(JOINS[join](envelope.write(LINES).splitlines()), newline="")
    os.utime(file, (WRITTEN.timestamp(),) * 2)
    document = to_json(classify_log(str(file), catalog))
    told = {
        one["fault"]: (one["subject"], one["first"] or "", one["last"] or "", one["count"], one["lines"])
        for one in document["faults"]
    }
    assert told == expected(envelope.clock, envelope.resolution)
    assert {one["host"] for one in document["faults"]} == {envelope.host}
    assert document["uncounted"] == ""


@pytest.mark.parametrize("join", WITHOUT_A_SIGN)
def test_a_shell_that_joins_lines_hides_no_fault(join, tell):
    for form in ("dmesg", "dmesg-T", "journal-short", "rfc3164-printk"):
        document = tell(JOINS[join](BY_NAME[form].write(LINES).splitlines()))
        assert {fault["fault"] for fault in document["faults"]} == set(TOLD), form


@pytest.mark.parametrize("join", JOINS)
def test_two_gpus_in_one_line_are_two_faults(join, tell):
    document = tell(JOINS[join]([f"[ 5210.700000] {X79}", f"[ 5211.700000] {X79.replace('3d', '4d')}"]))
    assert {subject for _, subject in document["by"]} == {"0000:3d:00", "0000:4d:00"}


def test_an_xid_that_is_one_word_with_what_stands_before_it_is_told(tell):
    assert {number for number, _ in tell(f"{X13}{X79}")["by"]} == {"gpu.xid.13", "gpu.xid.79"}


def test_a_joined_message_that_breaks_off_is_never_no_fault(tell):
    assert "NVRM: Xid" in tell(f"[  100.000000] {X13} [  101.000000] NVRM: Xid (PCI:0000")["uncounted"]


def test_no_message_of_the_kernel_is_taken_for_two(catalog):
    search = MessageSearch(catalog.kernel_log_matcher, WRITTEN)
    for line in [*ONE_LINE_EACH.values(), "Kernel panic - not syncing: Out of memory: compulsory panic_on_oom"]:
        assert [one.text for one in search.find_messages(f"[  100.000000] {line}")] == [line]


def test_a_line_of_many_heads_is_read_in_time_that_grows_with_it(catalog):
    search = MessageSearch(catalog.kernel_log_matcher, WRITTEN)
    assert len(search.find_messages(f"{X79} " * 2000)) == 2000
