"""A class has every wording of its event: of kernels 5.2 to 6.17, and of the branches of a driver."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.support.places import ROOT

WORDINGS = yaml.safe_load((ROOT / "tests/data/wordings.yaml").read_text())
EACH = [(name, part, line) for name, parts in WORDINGS.items() for part, lines in parts.items() for line in lines]


@pytest.mark.parametrize(("name", "part", "line"), EACH)
def test_a_wording_is_of_its_class_and_part(name, part, line, tell):
    told = tell("[    0.500000] Linux version 6.8.0", f"[   12.500000] {line}", "[   13.000000] usb 1-1: new")
    assert list(told["by"]) == [(name, part or "node")]
    assert (told["not_judged"], told["uncounted"]) == ([], "")


@pytest.mark.parametrize(("name", "part", "line"), EACH)
def test_it_is_found_behind_a_host_too(name, part, line, tell):
    told = tell(*(f"Nov 21 18:00:0{n} n7 kernel: [   12.500000] {text}" for n, text in enumerate(["usb 1-1", line])))
    assert [(fault["fault"], fault["host"]) for fault in told["faults"]] == [(name, "n7")]


def test_each_wording_has_such_a_line(catalog):
    for name, patterns in catalog.wordings.items():
        lines = [line for of, _, line in EACH if of == name]
        assert [one for one in patterns if not any(re.search(one, line) for line in lines)] == [], name


def test_no_line_of_a_log_is_matched_with_every_pattern(catalog):
    """A wording that begins with any word is searched for by its longest text, not tried on each line."""
    assert catalog.kernel_log_matcher.patterns == ()
    assert "aer_uncor_severity: 0x" in catalog.kernel_log_matcher.holds


def test_the_kernel_s_own_count_counts(tell):
    line = "[   12.5] EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 OVERFLOW)"
    (fault,) = tell(line)["faults"]
    assert (fault["count"], fault["lines"], fault["action"]) == (262, 1, "ticket")
    (few,) = tell(line.replace("262", "3"), line.replace("262", "2"))["faults"]
    assert (few["count"], few["action"]) == (4, "none"), "a burst of lines begins once"


def test_corrected_records_have_a_limit(tell):
    lines = [f"[{at * 10:12.6f}] {{{at}}}[Hardware Error]: event severity: corrected" for at in range(1, 101)]
    (noted,) = tell(*lines[:99])["faults"]
    (fault,) = tell(*lines)["faults"]
    assert (noted["fault"], noted["action"]) == ("host.mce", "none")
    assert (fault["count"], fault["action"]) == (100, "ticket")
    assert "100 / 24h" in fault["because"]


def test_what_sums_up_a_failed_start_is_no_second_fault(tell):
    told = tell(
        "[   12.500000] NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:",
        "[   12.500100] NVRM: BAR1 is 0M @ 0x0 (PCI:0000:0a:00.0)",
        "[   12.500200] nvidia: probe of 0000:0a:00.0 failed with error -1",
        "[   12.500300] NVRM: The NVIDIA probe routine failed for 1 device(s).",
        "[   12.500400] NVRM: None of the NVIDIA devices were initialized.",
    )
    assert list(told["by"]) == [("gpu.init.failed", "0000:0a:00.0")]
