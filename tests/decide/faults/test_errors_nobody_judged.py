"""An error of a watched driver that no class has is neither a fault nor health; a site judges it in three lines."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from typer.testing import CliRunner

from assay.cli.app import app, load_verb
from assay.cli.workspace import load_surrounding_catalog
from assay.decide.faults.detection import detect_faults
from assay.decide.faults.unjudged import MOST_FORMS, UnjudgedCounter, count_evidence, count_fleet
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry, make_fault_entry
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.faults.fault_record import NOT_JUDGED
from assay.model.fleet import Fleet
from assay.model.log_message import find_message_form, name_form
from assay.model.reading import value
from assay.model.specs.fault_catalog import FaultCatalog, merge_catalogs
from assay.tell.views.fleet import build_fleet_view, list_cells
from tests.support.places import ROOT

faults_app = load_verb("faults")

LINES = yaml.safe_load((ROOT / "tests/data/errors_nobody_judged.yaml").read_text())
NOISE = LINES.pop("noise")
EACH = [(subsystem, line) for subsystem, lines in LINES.items() for line in lines]
ASSERTION = LINES["nvidia"][0]
SITE = """\
kind: FaultCatalog
name: site
owner: gpu-team
sources: ["the incident of May"]
"""


def with_noise(catalog: FaultCatalog, noise: dict[str, str]) -> FaultCatalog:
    other = catalog.model_copy(update={"noise": noise})
    vars(other).pop("kernel_log_matcher", None)  # which the copy took over
    return other


def test_every_watched_subsystem_has_such_a_line(catalog):
    assert catalog.watched.subsystems.keys() == LINES.keys()


@pytest.mark.parametrize(("subsystem", "line"), EACH)
def test_an_error_that_no_class_has_is_not_judged(subsystem, line, tell):
    (form,) = tell(f"[ 12.5] {line}", "[ 13.0] usb 1-1: new")["not_judged"]
    assert (form["subsystem"], form["count"], form["example"]) == (subsystem, 1, line)


@pytest.mark.parametrize("line", NOISE)
def test_an_error_of_a_healthy_boot_is_noise(line, tell, catalog):
    told = tell(f"[ 12.5] {line}")
    assert (told["faults"], told["not_judged"]) == ([], [])
    assert with_noise(catalog, {}).kernel_log_matcher.find_unjudged(line), "it would be an error"


@pytest.mark.parametrize(
    "envelope",
    ["Nov 21 18:00:00 n7 kernel: {}", "2026-11-21T18:00:00.1+00:00 n7 kernel: [ 12.5] {}", "n7: [   12.500000] {}"],
)
def test_it_is_found_in_any_envelope_with_its_host(envelope, tell):
    (form,) = tell(*(envelope.format(ASSERTION) for _ in range(3)))["not_judged"]
    assert (form["count"], form["hosts"]) == (3, ["n7"])


def test_a_record_of_json_tells_it_too(tell):
    (form,) = tell(json.dumps({"host": "n7", "time": "2026-11-21T18:00:00Z", "message": ASSERTION}))["not_judged"]
    assert form["hosts"] == ["n7"]


@pytest.mark.parametrize(
    "line",
    [
        "Nov 21 18:00:00 n7 trainer[12]: nvidia 0000:1b:00.0: cannot allocate",
        "Nov 21 18:00:00 n7 kernel: nvme nvme0: 8/0/0 default/read/poll queues",
        "Nov 21 18:00:00 n7 kernel: usb 1-1: device descriptor read/64, error -71",
    ],
    ids=["another program", "no error", "not watched"],
)
def test_what_nobody_watches_is_no_error(line, tell):
    assert tell(line)["not_judged"] == []


def test_what_a_class_has_is_judged(tell):
    told = tell("[ 12.5] NVRM: Xid (PCI:0000:1b:00): 13, pid=1, name=python3, Graphics Exception, error")
    assert ([fault["fault"] for fault in told["faults"]], told["not_judged"]) == (["gpu.xid.13"], [])


def test_the_level_of_the_kernel_makes_an_error_too(catalog):
    line = "mlx5_core 0000:5c:00.0: pages 12 left after the driver"
    assert catalog.kernel_log_matcher.find_unjudged(line, 3) == "hca"
    assert catalog.kernel_log_matcher.find_unjudged(line, 4) == catalog.kernel_log_matcher.find_unjudged(line) == ""


def test_messages_that_differ_in_numbers_are_of_one_form(tell):
    lines = [f"[ 12.{n}] mlx5_core 0000:0a:0{n % 8}.0: cmd_work:{n}: bad status 0x{n}" for n in (3, 44, 555)]
    (form,) = tell(*lines)["not_judged"]
    assert (form["form"], form["count"]) == ("mlx5_core #: cmd_work:#: bad status #", 3)
    assert find_message_form("I/O error, dev nvme1n1p2, sector 7") == "I/O error, dev nvme#n#p#, sector #"
    assert find_message_form("EXT4-fs (sda1): error -5") == "EXT4-fs (sda#): error -#"
    assert name_form("NVRM: RmInitAdapter failed! (0x26:0x56:1463)") == "nvrm-rminitadapter-failed"


def test_forms_are_counted_up_to_a_number():
    counter = UnjudgedCounter()
    for number in range(MOST_FORMS + 5):
        word = "".join("abcdefghij"[int(digit)] for digit in str(number))
        counter.add("nvme", f"nvme: failed {word}", "n1")
    forms = counter.list_forms()
    assert len(forms) == MOST_FORMS + 1
    assert max(form.count for form in forms) == 5


def run(*words: str, told: str):
    return CliRunner().invoke(faults_app, ["-", *words, "--fleet", str(ROOT)], input=told)


def test_the_command_says_it_on_a_line_of_its_own_with_exit_code_2():
    result = run(told=f"[ 12.5] {ASSERTION}\n")
    assert isinstance(result.exception, AssayError), "which the command prints, with exit code 2"
    assert "nobody has judged" in str(result.exception)
    assert "not judged: 1 error in 1 form" in result.stdout
    assert "1 × NVRM: nvAssertOkFailedNoLog: Assertion failed" in result.stdout
    assert "no fault" not in result.stdout
    worse = run(told=f"[ 12.5] {ASSERTION}\n[ 13.5] NVRM: Xid (PCI:0000:1b:00): 79, pid=1, gone\n")
    assert worse.exit_code == 1, "a fault with an action says more"


def site(text: str) -> FaultCatalog:
    ours = [FaultCatalog.model_validate(yaml.safe_load(path.read_text())) for path in (ROOT / "specs/faults").glob("*")]
    return merge_catalogs([*ours, FaultCatalog.model_validate(yaml.safe_load(SITE + text))])


def test_a_site_makes_a_class_of_it_in_three_lines(tell):
    words = "'^NVRM: nvAssertOkFailedNoLog: Assertion failed'"
    judge = site(f'wordings:\n  gpu.init.failed:\n    {words}: "runbook 12"\n')
    told = tell(f"[ 12.5] {ASSERTION}", judge=judge)
    assert ([fault["fault"] for fault in told["faults"]], told["not_judged"]) == (["gpu.init.failed"], [])


def test_or_noise(tell):
    judge = site("noise:\n  'nvAssertOkFailedNoLog': \"bug 4711 of the driver\"\n")
    told = tell(f"[ 12.5] {ASSERTION}", judge=judge)
    assert (told["faults"], told["not_judged"]) == ([], [])


def test_a_wording_of_no_class_is_refused():
    with pytest.raises(ValueError, match=r"site gives wordings of gpu\.gone, and no fault catalogue has that class"):
        site("wordings:\n  gpu.gone:\n    '^NVRM: gone': \"runbook 12\"\n")


@pytest.fixture
def seen(paper):
    """Return what the agent's records of one node become."""
    paper.add("n1")
    paper.later(minutes=10)
    spec = SimpleNamespace(gpus=SimpleNamespace(pci=[]), hcas=[], nvme=SimpleNamespace(count=0), usual_faults={})

    def look(*texts: str, **more: int | str):
        lines = [{"seq": seq, "t_s": 100.0 + 60 * seq, "text": text, **more} for seq, text in enumerate(texts)]
        host = {"boot_id": value("boot-a"), "uptime_s": value(3600.0)}
        tree = {"probe": {"host": host, "kernel_log": {"lines": value(lines)}}}
        document = EvidenceDocument("n1", paper.now, tree)
        return detect_faults(paper.catalog, paper.policy, paper.nodes["n1"], spec, paper.story("n1"), document)

    return look


def test_an_agent_s_line_becomes_a_fault_that_asks_for_nothing(seen, paper):
    (fault,) = seen(ASSERTION, ASSERTION.replace("0x65", "0x66"))
    assert (fault.fault_class, fault.severity, fault.remedy, fault.count) == (NOT_JUDGED, "informational", "none", 2)
    assert fault.subject.endswith("/nvrm-nvassertokfailednolog-assertion-failed-gene")
    paper.write(make_fault_entry(fault, paper.now))
    paper.step()
    assert paper.story("n1").state == "production", "it never closes a node"
    (form,) = count_fleet(paper.catalog, [paper.story("n1")])
    assert (form.subsystem, form.count, form.hosts) == ("nvidia", 2, ["n1"])
    judged = with_noise(paper.catalog, {"nvAssertOk": "bug 4711"})
    assert count_fleet(judged, [paper.story("n1")]) == [], "a site's judgement counts at once"


def test_the_level_of_a_record_counts(seen):
    assert [fault.fault_class for fault in seen("mlx5_core 0000:5c:00.0: pages 12 left", level=3)] == [NOT_JUDGED]
    assert seen("mlx5_core 0000:5c:00.0: pages 12 left", level=6) == []


def test_the_fleet_s_errors_are_listed_by_how_many_nodes_they_came_from(seen, paper, tmp_path):
    for part in ("inventory", "specs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    ask = ["faults", "--unknown", "--fleet", str(tmp_path)]
    ledger = Ledger.open(tmp_path / ".assay" / "ledger.sqlite")
    for node in ("n0001", "n0002"):
        ledger.append(make_enrolled_entry(node, "h100-a", "triage", paper.now))
    assert CliRunner().invoke(app, ask).exit_code == 0
    for node, texts in (("n0001", [ASSERTION, LINES["nvme"][0]]), ("n0002", [ASSERTION])):
        for fault in seen(*texts):
            ledger.append(make_fault_entry(replace(fault, node=node, id=f"{fault.id}-{node}"), paper.now))
    ledger.close()
    result = CliRunner().invoke(app, ask)
    assert result.exit_code == 2
    assert "not judged: 3 errors in 2 forms" in result.stdout
    first, second = [line for line in result.stdout.splitlines() if "×" in line]
    assert "2 × NVRM: nvAssert" in first
    assert "2 nodes such as n0001" in first
    assert "1 × nvme nvme#: Identify Controller failed (-#) (nvme, n0001)" in second
    (form, _) = json.loads(CliRunner().invoke(app, [*ask, "--format", "json"]).stdout)["not_judged"]
    assert form["hosts"] == ["n0001", "n0002"]


def test_neither_a_log_nor_the_fleet_is_refused():
    with pytest.raises(AssayError, match="name a log, or ask for the fleet"):
        CliRunner().invoke(faults_app, [], catch_exceptions=False)


QUIET = "mlx5_core 0000:5c:00.0: pages 12 left after the driver"
"""It has none of the words of an error."""


@pytest.mark.parametrize(
    "line",
    [
        f"<{{}}>[   12.500000] {QUIET}",
        f"<{{}}>Nov 21 18:00:00 n7 kernel: {QUIET}",
        f"<{{}}>1 2026-11-21T18:00:00Z n7 kernel - - - {QUIET}",
        f"{{}},812,12500000,-;{QUIET}",
        f'{{{{"PRIORITY": "{{}}", "_HOSTNAME": "n7", "_TRANSPORT": "kernel", "MESSAGE": "{QUIET}"}}}}',
        f'{{{{"pri": {{}}, "time": 12.5, "msg": "{QUIET}"}}}}',
    ],
    ids=["dmesg -r", "syslog", "RFC 5424", "kmsg", "journal", "dmesg -J"],
)
def test_the_level_that_a_log_tells_makes_an_error(line, tell):
    assert [form["subsystem"] for form in tell(line.format(3), line.format(6))["not_judged"]] == ["hca"]
    assert tell(line.format(4), line.format(6))["not_judged"] == []


def test_so_does_its_name(tell):
    lines = [f"kern  :{name} : [   12.500000] {QUIET}" for name in ("err", "crit", "warn", "info")]
    assert [form["count"] for form in tell(*lines)["not_judged"]] == [2]


def test_a_level_that_is_no_number_is_no_line(seen):
    assert seen("mlx5_core 0000:5c:00.0: pages 12 left", level="3") == []


def test_evidence_says_what_nobody_judged():
    catalog = load_surrounding_catalog(ROOT)
    lines = [{"seq": at, "t_s": 1.0 * at, "text": ASSERTION} for at in range(3)]
    lines.append({"seq": 9, "t_s": 9.0, "text": QUIET, "level": 3})
    document = EvidenceDocument("n1", datetime.now(UTC), {"probe": {"kernel_log": {"lines": value(lines)}}})
    assert [(form.subsystem, form.count) for form in count_evidence(catalog, document)] == [("nvidia", 3), ("hca", 1)]


def test_a_page_counts_them_and_explain_says_each(seen, paper):
    for fault in seen(ASSERTION, LINES["nvme"][0]):
        paper.write(make_fault_entry(fault, paper.now))
    state = paper.story("n1")
    assert state.unjudged == 2
    (cell,) = [cell for cell in list_cells(paper_fleet(paper), [state]) if cell.name == "n1"]
    assert build_fleet_view(paper_fleet(paper), [cell]).unjudged == (2, 1)


def paper_fleet(paper) -> Fleet:
    spec = SimpleNamespace(gpus=SimpleNamespace(count=8))
    spec.without_bmc = lambda: spec
    specs = {node.spec: spec for node in paper.nodes.values()}
    return Fleet(Path("paper"), paper.nodes, node_specs=specs, policies={paper.policy.name: paper.policy})
