"""A log form that another distribution brings: one module and an entry point, by the real `assay`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.support.plugin_distribution import PluginDistribution

LOKI = '''
"""Kernel lines as acme's log service exports them: TIME|LEVEL|MESSAGE."""

import re

from assay.fleetkit import KernelLogForm, parse_iso_time

ACME = KernelLogForm(
    "acme export",
    re.compile(rb"(?P<stamp>\\d{4}-[^|]*)\\|[a-z]+\\|(?P<text>[^\\r\\n]*)"),
    rb"\\|",
    rb"\\d",
    parse_iso_time,
)
'''
CONSOLE = '''
"""Events of a console server, which are a BMC's: lines that begin with `EVENT `."""

from assay.fleetkit import LogMessage


class ConsoleForm:
    name, is_bmc_log = "console events", True

    def rate(self, sample):
        return sum(line.startswith(b"EVENT ") for line in sample) / len(sample)

    def read(self, pieces, query):
        for line in b"".join(pieces).splitlines():
            query.tally.lines += 1
            yield LogMessage(line.decode().removeprefix("EVENT "), part="PSU 1")


CONSOLE = ConsoleForm()
'''
LOG = "".join(
    f"2026-11-21T18:00:0{second}+00:00|{level}|{text}\n"
    for second, level, text in (
        (1, "info", "usb 1-1: new device"),
        (2, "err", "NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', GPU has fallen off the bus."),
    )
)


def acme(folder: Path, target: str = "acme_log:ACME", source: str = LOKI) -> PluginDistribution:
    return PluginDistribution(folder / "site", "acme-log", {"assay.log_forms": {"acme": target}}, acme_log=source)


def classify(plugin: PluginDistribution, file: Path, exit_code: int = 1) -> str:
    return plugin.assay("faults", str(file), "--format", "json", fleet=ROOT, exit_code=exit_code)


def test_a_kernel_log_of_its_form_is_read_with_its_times(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    document = json.loads(classify(acme(tmp_path), tmp_path / "log"))
    (fault,) = document["faults"]
    assert (fault["fault"], fault["first"]) == ("gpu.xid.79", "2026-11-21T18:00:02+00:00")
    assert (document["lines"], document["unread"]) == (2, 0)


def test_a_log_of_a_bmc_s_events_too(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("EVENT Power Supply PS1, Failure detected\nEVENT all is well\n")
    document = json.loads(classify(acme(tmp_path, "acme_log:CONSOLE", CONSOLE), tmp_path / "log"))
    assert {fault["fault"] for fault in document["faults"]} == {"bmc.event.power-supply"}
    assert document["lines"] == 2


def test_the_forms_of_assay_are_read_as_before_beside_it(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("[    1.000000] usb 1-1: new device\n[    2.0] NVRM: Xid (PCI:0000:1b:00): 79, x\n")
    document = json.loads(classify(acme(tmp_path), tmp_path / "log"))
    assert [fault["first"] for fault in document["faults"]] == ["boot+2.0s"]


def test_it_is_named_among_the_forms_that_are_known(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("nothing that is a log\n")
    refused = classify(acme(tmp_path), tmp_path / "log", exit_code=2)
    assert "is no log that I can read" in refused
    assert "ipmitool sel list" in refused
    assert refused.rstrip().endswith("acme export")


@pytest.mark.parametrize("source", ["import no_such_module", "ACME = 7"])
def test_one_that_cannot_be_loaded_is_an_error_that_names_its_distribution(tmp_path: Path, source: str) -> None:
    (tmp_path / "log").write_text(LOG)
    refused = classify(acme(tmp_path, source=source), tmp_path / "log", exit_code=2)
    assert "the log form 'acme' of the distribution acme-log 1.2 cannot be loaded" in refused
