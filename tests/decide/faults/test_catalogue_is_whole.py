"""The shipped catalogues: every published code, every pattern with a line that it finds, and a site's own judgement."""

from __future__ import annotations

import json
import os
import shutil
from itertools import product
from pathlib import Path

import pytest
import yaml

from assay.cli.verbs.faults import classify_log
from assay.cli.workspace import load_surrounding_catalog
from assay.declare.check import check_repository
from assay.model.facts import to_json
from assay.model.specs.nvlink_codes import decode_nvlink_xid
from tests.support.places import ROOT

LINES = yaml.safe_load((ROOT / "tests/data/one_line_each.yaml").read_text())


@pytest.mark.parametrize("name", LINES)
def test_a_kernel_line_is_found_and_means_one_thing(name, catalog):
    assert [found.name for found in catalog.kernel_log_matcher.find_faults(LINES[name])] == [name]


def test_every_class_that_the_kernel_tells_of_has_such_a_line(catalog):
    assert {name for name, fault in catalog.classes.items() if fault.kernel_log} == set(LINES)


def test_all_172_published_xids_and_92_sxids_are_judged(catalog):
    xids = {xid for fault in catalog.classes.values() for xid in fault.xid}
    assert xids == set(range(1, 173))
    assert len({sxid for fault in catalog.classes.values() for sxid in fault.sxid}) >= 92
    assert len(catalog.classes["gpu.xid.reserved"].xid) == 63


def test_six_codes_are_judged_as_all_public_tables_do(catalog):
    assert {catalog.find_treatment(f"gpu.xid.{xid}").severity for xid in (13, 43, 45)} == {"informational"}
    assert {catalog.find_treatment(f"gpu.xid.{xid}").severity for xid in (48, 64, 79)} == {"catastrophic"}


def test_each_class_that_somebody_or_something_answers_says_what_a_person_does(catalog):
    lacking = [name for name, fault in catalog.classes.items() if fault.remedy != "none" and not fault.investigate]
    assert lacking == []


def test_no_fault_of_an_application_asks_for_anything(catalog):
    assert {fault.remedy for fault in catalog.classes.values() if fault.blame == "application"} == {"none"}


@pytest.mark.parametrize(
    ("words", "resolution"),
    [
        ("145, RLW_REMAP Fatal XC1 i0 Link 10 (0x00000082 0x00000040 0x00000000)", "reset"),
        ("145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000004 0x00000040 0x00000000)", "reset"),
        ("145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000004 0x00000001 0x00000000)", "wait"),
        ("145, RLW_CTRL Nonfatal XC0 i0 Link 00 (0x00000003 0x80000000 0x00000000)", "ignore"),
        ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x00000000)", "reset"),
        ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000 0x00000000)", "ignore"),
        ("147, TREX Nonfatal XC0 i0 Link 01 (0x00000184 0x00000001 0x00000000)", "ignore"),
        ("146, TLW_RX_PIPE1 Fatal XC0 i0 Link 01 (0x0000000b 0x00000004)", "reset"),
        ("144, SAW_MVB Fatal XC0 i0 Link 00 (0x00000001 0x00000002 0x00000000)", "reset"),
        ("150, MSE Fatal XC0 i0 Link -1 (0x00000000 0xffffffff 0x00000000)", "reset"),
        ("145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000004 0x08000000 0x00000000)", None),
    ],
)
def test_sub_codes_of_nvlink_are_decoded(words, resolution, catalog):
    units = catalog.find_class(f"gpu.xid.{words[:3]}").units
    code = decode_nvlink_xid(f"NVRM: Xid (PCI:0008:01:00): {words}", units)
    assert code is not None
    assert code.resolution == resolution


def test_a_sub_code_that_needs_nothing_asks_for_nothing_however_often_it_comes(tell):
    line = "[{:>12.6f}] NVRM: Xid (PCI:0008:01:00): 145, RLW_CTRL Nonfatal XC0 i0 Link 00 (0x00000003 {} 0x0)"
    (noted,) = tell(*(line.format(1000 + at * 10, "0x80000000") for at in range(9)))["faults"]
    assert (noted["action"], noted["count"]) == ("none", 9)
    assert "RLW_CTRL, link 00, status 0x80000000: needs nothing" in noted["because"]


@pytest.mark.parametrize(("word", "action"), [("Fatal", "reset"), ("Nonfatal", "none")])
def test_a_sub_code_that_no_catalogue_has_is_believed_what_it_says_of_itself(word, action, tell):
    for words in ("", " (0x00000004 0x08000000 0x0)"):
        line = f"[ 1000.5] NVRM: Xid (PCI:0000:5f:00): 145, RLW_REMAP {word} XC0 i0 Link 02{words}"
        assert [one["action"] for one in tell(line)["faults"]] == [action]


SITE = """kind: FaultCatalog
name: site
extends: xid
owner: gpu-team
sources: ["what we have seen here"]
classes:
  gpu.xid.63: {severity: degraded, remedy: reset}
  gpu.xid.163: null
"""


def test_a_site_judges_otherwise_in_three_lines(tmp_path):
    for part in ("specs", "inventory", "suites"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / "specs/faults/site.yaml").write_text(SITE)
    assert [
        one
        for one in check_repository(tmp_path).problems
        if one.file.startswith("specs/faults") and one.severity == "error"
    ] == []
    judged = load_surrounding_catalog(tmp_path)
    log = tmp_path / "log"
    log.write_text("[ 10.5] NVRM: Xid (PCI:0000:1b:00): 63, pid=1\n[ 99.5] NVRM: Xid (PCI:0000:1b:00): 163, x\n")
    asked = {one["fault"]: one["action"] for one in to_json(classify_log(str(log), judged))["faults"]}
    assert asked == {"gpu.xid.63": "reset", "gpu.xid.unknown": "ticket"}
    asked = {
        one["fault"]: one["action"] for one in to_json(classify_log(str(log), load_surrounding_catalog(ROOT)))["faults"]
    }
    assert asked == {"gpu.xid.63": "none", "gpu.xid.163": "ticket"}
    assert judged.find_treatment("gpu.xid.79") == load_surrounding_catalog(ROOT).find_treatment("gpu.xid.79")


@pytest.mark.skipif(not os.environ.get("ASSAY_SAMPLES"), reason="set ASSAY_SAMPLES to the folder of public samples")
def test_the_public_catalogue_knows_no_code_and_no_sub_code_that_ours_lacks(catalog):
    public = json.loads((Path(os.environ["ASSAY_SAMPLES"]) / "xid" / "xid_catalog.json").read_text())
    assert {int(xid) for xid in public["xid_error_catalog"]} <= {
        xid for one in catalog.classes.values() for xid in one.xid
    }
    meant = {"IGNORE": "ignore", "RESET_GPU": "reset", "XID_154_EVAL": "wait"}
    for xid, rules in public["nvl5_decoding_rules"].items():
        units = catalog.find_class(f"gpu.xid.{xid}").units
        for rule in rules:
            for status, bits in product(rule["error_status_hex"] or ["0x00000000"], ("pre_r575", "r575")):
                info = int(rule[f"intr_info_binary_{bits}"].replace("-", "0"), 2)
                unit = rule["mnemonic"].split()[0]
                line = f"NVRM: Xid (PCI:0:1:0): {xid}, {unit} Fatal XC0 i0 Link 00 ({info:#010x} {status})"
                code = decode_nvlink_xid(line, units)
                assert code is not None, line
                assert code.resolution == meant[rule["resolution"]], line
