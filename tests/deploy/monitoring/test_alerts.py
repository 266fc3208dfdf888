"""The Prometheus rules in deploy/prometheus: each alert fires when it should and keeps quiet when it should."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from assay.cli.app import app
from tests.deploy.monitoring.monitored_families import list_unknown_names
from tests.support.places import ROOT

RULES = ROOT / "deploy" / "prometheus"
PAGE = ROOT / "docs" / "alerts.md"
SECTIONS = dict(re.findall(r"^## (Assay\w+)\n\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL))
"""The runbook of each alert."""
FILES = sorted(RULES.glob("*.yml"))
CASES: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "alert_cases.yaml").read_text())


def list_rules(kind: str) -> list[dict[str, Any]]:
    documents = [yaml.safe_load(file.read_text()) for file in FILES]
    return [rule for one in documents for group in one["groups"] for rule in group["rules"] if kind in rule]


ALERTS = {rule["alert"]: rule for rule in list_rules("alert")}


def promtool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    if shutil.which("promtool") is None:
        pytest.skip("not installed: promtool (Debian: prometheus); as root: sh tools/system-packages")
    return subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)


def make_test(name: str, case: dict[str, Any], *, fires: bool) -> dict[str, Any]:
    """Return promtool's form of one case."""
    rule, expected = ALERTS[name], []
    if fires:
        annotations = {"summary": case["says"], "runbook": rule["annotations"]["runbook"]}
        expected = [{"exp_labels": {**rule["labels"], **case["labels"]}, "exp_annotations": annotations}]
    return {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case["series"].items()],
        "alert_rule_test": [{"eval_time": case["at"], "alertname": name, "exp_alerts": expected}],
    }


def run_cases(folder: Path, tests: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    file = folder / "cases.yml"
    rules = sorted(map(str, FILES), key=lambda name: "alerts" in name)
    file.write_text(yaml.safe_dump({"rule_files": rules, "evaluation_interval": "1m", "tests": tests}))
    return promtool("test", "rules", file)


def test_the_rules_are_good() -> None:
    checked = promtool("check", "rules", "--lint=all", "--lint-fatal", *FILES)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.slow
def test_every_alert_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    assert CASES.keys() == ALERTS.keys(), "each alert has its cases"
    tests = [make_test(name, case["fires"], fires=True) for name, case in CASES.items()]
    tests += [make_test(name, case["quiet"], fires=False) for name, case in CASES.items()]
    told = run_cases(tmp_path, tests)
    assert told.returncode == 0, told.stdout + told.stderr


def test_a_case_that_is_wrong_is_noticed(tmp_path: Path) -> None:
    case = CASES["AssayBreakerOpen"]
    swapped = [make_test("AssayBreakerOpen", {**case["fires"], "series": case["quiet"]["series"]}, fires=True)]
    assert run_cases(tmp_path, swapped).returncode == 1
    swapped = [make_test("AssayBreakerOpen", {**case["quiet"], "series": case["fires"]["series"]}, fires=False)]
    assert run_cases(tmp_path, swapped).returncode == 1


def test_the_rules_read_metrics_that_assay_has() -> None:
    rules = [*ALERTS.values(), *list_rules("record")]
    recorded = {rule["record"] for rule in list_rules("record")}
    assert [name for rule in rules for name in list_unknown_names(rule["expr"], recorded)] == []


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_has_a_severity_an_owner_and_a_runbook(name: str) -> None:
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["labels"]["owner"] in yaml.safe_load((ROOT / "specs" / "owners.yaml").read_text())["teams"]
    assert rule["annotations"]["runbook"] == f"docs/alerts.md#{name.lower()}"
    section = SECTIONS[name]
    assert section.startswith("**First:** "), "who is woken reads first what to do"
    assert re.findall(r"^\*\*(\w+):\*\*", section, re.MULTILINE) == ["First", "Then", "Means"]


def test_the_page_begins_with_an_index_of_the_alerts_by_severity() -> None:
    index = PAGE.read_text().partition("\n## ")[0]
    _, critical, warnings = re.split(r"\*\*Critical alerts: look now\.\*\*|\*\*Warnings: look today\.\*\*", index)
    for severity, text in (("critical", critical), ("warning", warnings)):
        linked = re.findall(r"\[(Assay\w+)\]\(#(assay\w+)\)", text)
        assert {name for name, _ in linked} == {
            name for name, rule in ALERTS.items() if rule["labels"]["severity"] == severity
        }
        assert all(name.lower() == anchor for name, anchor in linked)


def test_every_runbook_belongs_to_an_alert() -> None:
    assert SECTIONS.keys() == ALERTS.keys()


def test_the_runbooks_name_commands_that_there_are() -> None:
    spans = re.findall(r"`assay ([^`]*)`", PAGE.read_text())
    assert len(spans) > 20
    assert [span for span in spans if not is_command(span.split())] == []


def is_command(words: list[str]) -> bool:
    """Whether the command line has these verbs, with these options."""
    command: Any = typer.main.get_command(app)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        found = command.get_command(None, words[0])
        if found is None:
            return getattr(command, "name", "") != "assay" and bool(command.params)
        command, words = found, words[1:]
    options = {option for parameter in command.params for option in parameter.opts}
    return all(word in options for word in words if word.startswith("-"))
