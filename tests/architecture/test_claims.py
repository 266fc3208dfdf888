"""Claims are tests: each promise of a page is in claims.yaml beside the test that holds it, and the list is whole."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.declare.check import RULE_MODULES
from assay.declare.loader import load_fleet
from assay.model.specs.credential_reference import CredentialReference
from tests.architecture.claims import PROMISE, find_promises, list_customer_texts, read_words, split_page
from tests.architecture.test_documentation import list_written_pages
from tests.architecture.test_numbers_in_words import NUMBERS
from tests.support.places import ROOT

LIST: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("claims.yaml").read_text())
CLAIMS = [(file, words, test) for file, rows in LIST["claims"].items() for words, test in rows.items()]
REFUSED = [(file, words) for rows in LIST["refused"].values() for file, said in rows.items() for words in said]
LEAST_QUOTED = 12
"""Fewer characters quote only a whole sentence or cell."""
MOST_REFUSED = 50
"""May fall. A promise belongs into the list, with its test; a sentence that is none can say so."""
PROMISES = find_promises()


def quoted(file: str) -> list[str]:
    """Return all words of a file that the list, or the table of numbers, has."""
    rows = [*((name, words) for name, words, _ in CLAIMS), *REFUSED, *((name, words) for name, words, _, _ in NUMBERS)]
    return [words for name, words in rows if name == file]


@pytest.mark.parametrize(("file", "words"), [row[:2] for row in CLAIMS] + REFUSED)
def test_the_words_stand_there(file: str, words: str) -> None:
    assert words in read_words(file), (
        f"{file} no longer says so: take the row out of claims.yaml, or quote what it says"
    )


@pytest.mark.parametrize("test", sorted({test for _, _, test in CLAIMS}))
def test_the_test_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert (ROOT / file).is_file(), test
    assert not name or name in list_test_names(ROOT / file), test


@cache
def list_test_names(file: Path) -> set[str]:
    tree = ast.walk(ast.parse(file.read_text()))
    return {node.name for node in tree if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("file", sorted({file for file, _ in PROMISES}))
def test_each_promise_is_in_the_list_or_refused(file: str) -> None:
    known = quoted(file)
    missing = [text for name, text in PROMISES if name == file and not any(is_quoted(text, words) for words in known)]
    assert missing == [], "write each into claims.yaml with its test, say less, or refuse it there with the reason"


def is_quoted(sentence: str, words: str) -> bool:
    """Whether words quote a sentence, or some sentences of which it is one."""
    plain = sentence.replace("**", "")
    return plain == words or (len(words) >= LEAST_QUOTED and (words in plain or plain in words))


def test_no_row_says_the_same_twice_and_few_are_refused() -> None:
    rows = Counter([*(row[:2] for row in CLAIMS), *REFUSED])
    assert [row for row, count in rows.items() if count > 1] == []
    assert len(REFUSED) <= MOST_REFUSED


@pytest.mark.parametrize(
    "text",
    ["It waits 5 minutes.", "It takes 64 MiB.", "At most three are lost.", "By default, it acts.", "It never acts.",
     "It ends within a second.", "93 % pass.", "Keep it for 3d.", "Loaded for a day.",
     "Then assay cordons the node.", "Its drives are wiped.", "A tag is refused.", "Its order is withdrawn.",
     "What you wrote stays.", "It does not act."],
)  # fmt: skip
def test_a_planted_promise_is_found(text: str) -> None:
    assert PROMISE.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "It has two nodes.",
        "See page 3.",
        "The week's work.",
        "The fleet of 20 nodes is virtual.",
        "Delete it.",
        "A person cordons the node.",
        "who stays on call",
    ],
)
def test_what_promises_nothing_is_not_found(text: str) -> None:
    assert not PROMISE.search(text)


def test_what_customers_read_of_a_fault_is_looked_at() -> None:
    fault = {"gpu.x": {"summary": "It never ends.", "for_customers": {"happened": "Its jobs are told. All is well."}}}
    assert list(list_customer_texts({"classes": fault})) == ["Its jobs are told.", "All is well."]


def test_a_page_is_cut_into_sentences_and_cells() -> None:
    page = "# Head\n\nOne runs\non. `Two` follows.\n\n- three\n\n```sh\nnot 5 s\n```\n\n| four | 5 s |\n|---|---|\n"
    assert [text for text in split_page(page) if text.strip("-")] == [
        "Head",
        "One runs on.",
        "`Two` follows.",
        "three",
        "four",
        "5 s",
    ]


def test_a_code_that_a_page_names_is_a_rule() -> None:
    pages = [page for page in list_written_pages() if page.name != "CONTRIBUTING.md"]  # it invents one
    named = {code for page in pages for code in re.findall(r"ASY\d{4}", page.read_text())}
    source = "".join(path.read_text() for path in (ROOT / "src/assay/declare").rglob("*.py"))
    assert RULE_MODULES
    assert named - set(re.findall(r"ASY\d{4}", source)) == set()


def test_scheduled_work_runs_every_six_hours() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/scheduled.yml").read_text())
    assert workflow[True]["schedule"][0]["cron"] == "17 */6 * * *"  # YAML reads the key `on` as true
    assert "`17 */6 * * *`" in (ROOT / "docs/ci.md").read_text()


def test_the_workflows_pass_the_secrets_that_the_specs_name() -> None:
    fleet = load_fleet(ROOT)
    names = {node.spec for node in fleet.nodes.values()}
    wanted = {one.env for name in names for one in find_references(fleet.node_specs[name]) if one.env} | {"ASSAY_BMC"}
    for name in ("merge", "scheduled"):
        workflow = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text())
        steps = [
            step for job in workflow["jobs"].values() for step in job["steps"] if "reconcile" in step.get("run", "")
        ]
        assert steps
        for step in steps:
            assert step["env"] | {one: f"${{{{ secrets.{one} }}}}" for one in wanted} == step["env"]


def find_references(part: Any) -> Iterator[CredentialReference]:
    if isinstance(part, CredentialReference):
        yield part
    elif isinstance(part, dict | list | tuple):
        for below in part.values() if isinstance(part, dict) else part:
            yield from find_references(below)
    elif hasattr(part, "model_fields_set"):
        for name in type(part).model_fields:
            yield from find_references(getattr(part, name))


def test_the_commands_for_packages_are_ubuntus() -> None:
    roles = ROOT / "playbooks/collections/ansible_collections/assay/fleet/roles"
    shipped = {
        name: command
        for role in ("kernel_version", "kernel_command_line", "module_options", "gpu_driver", "fabric_manager")
        for name, command in yaml.safe_load((roles / role / "defaults/main.yml").read_text()).items()
    }
    assert str(shipped["kernel_version_install"]).startswith("apt-get install")
    assert {shipped["kernel_command_line_update"], shipped["kernel_version_update"]} == {"update-grub"}
    assert not shipped["gpu_driver_install"]
    assert not shipped["fabric_manager_install"]


def test_the_manifest_pulls_and_keeps_what_the_page_says() -> None:
    manifest = (ROOT / "deploy/assay-controller.yaml").read_text()
    assert "sleep 30 & wait $!; git pull --quiet --ff-only" in manifest
    assert "requests: {storage: 20Gi}" in manifest


def test_the_unit_restarts_a_loop_that_hangs() -> None:
    unit = (ROOT / "deploy/assay-reconcile.service").read_text()
    assert "\nWatchdogSec=15min\n" in unit
    assert "\nRestart=always\n" in unit


def test_the_table_of_the_day_is_the_specs() -> None:
    phases = yaml.safe_load((ROOT / "specs/burnin/day.yaml").read_text())["phases"]
    assert sum(phase["hours"] for phase in phases) == 24
    table = re.findall(r"(?m)^\| (\d+)–(\d+) \| ([a-z-, ]+) \|", (ROOT / "docs/burn-in.md").read_text())
    begin = 0.0
    for first, last, names in table:
        hours = sum(phase["hours"] for phase in phases if phase["name"] in names.split(", "))
        assert (float(first), float(last)) == (begin, begin + hours)
        begin += hours
    assert begin == 24


def test_no_state_asks_for_the_checks_of_a_week() -> None:
    policy = yaml.safe_load((ROOT / "specs/lifecycle/default.yaml").read_text())
    asked = [need["phase"] for state in policy["states"].values() for need in state.get("requires", [])]
    watched = [phase for state in policy["states"].values() for phase in state.get("watch", [])]
    assert "production" in {*asked, *watched}
    assert "weekly" not in {*asked, *watched}


def test_a_thousand_looks_find_one_in_a_thousand_in_63_percent() -> None:
    assert math.isclose(1 - (1 - 1 / 1000) ** 1000, 0.63, abs_tol=0.005)
