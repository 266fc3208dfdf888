"""What the house may weigh. A number may fall at any time; it rises only in a commit whose body says for what."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
from collections import Counter
from datetime import date

import pytest

from tests.architecture.source_tree import SourceModule, count_body_lines
from tests.support.places import ROOT

MAX_LINES = 154_783
MAX_MODULES = 848
MAX_SCRAPS = 47
MAX_SKIPPED_FORMATS = 3
MAX_EMPTY_NAMES = 42
MAX_TYPED_DICTS = 4
"""What an answer holds is a fact. A TypedDict is for data of others, and for data whose keys differ each time."""
MAX_LOADED = {"import assay.act.loop.reconcile_loop": 1_030, "from assay.cli import app": 195}
"""Modules that Python has loaded after the import: the loop takes 1.0 CPU s with them, `assay --version` 0.07."""
OPTIONAL = {
    "allure",
    "ansible",
    "apprise",
    "boto3",
    "duckdb",
    "jax",
    "kubernetes",
    "numpy",
    "opentelemetry",
    "starlette",
}
OPTIONAL_ROOMS = {"assay.lab", "assay.decide.replay", "assay.node.load"}
MAX_COMMIT_LINES_WITHOUT_BODY = 100
BODIES_SINCE = date(2026, 11, 30)
SCRAP_LINES = 3
EMPTY_NAMES = frozenset({"one", "found", "told", "said", "what", "why"})
"""Names of variables that say nothing to a reader."""


def list_scraps(module: SourceModule) -> list[str]:
    """Private functions of a few lines that are called once: they name an expression, and cost a reader a jump.

    One that is handed over as a value, such as a sort key or an entry of a table, cannot go inline.
    """
    uses = Counter(node.id for node in module.nodes if isinstance(node, ast.Name))
    uses += Counter(node.attr for node in module.nodes if isinstance(node, ast.Attribute))
    called = {
        node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    }
    return [
        function.name
        for function in module.functions()
        if function.name.startswith("_")
        and not function.name.startswith("__")
        and not function.decorator_list
        and count_body_lines(function) <= SCRAP_LINES
        and uses[function.name] == 1
        and function.name in called
    ]


def count_empty_names(module: SourceModule) -> int:
    stored = (node.id for node in module.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    arguments = (node.arg for node in module.nodes if isinstance(node, ast.arg))
    return sum(name in EMPTY_NAMES for name in (*stored, *arguments))


def test_all_of_src_is_no_longer(modules: list[SourceModule]) -> None:
    assert sum(module.line_count for module in modules) <= MAX_LINES


def test_there_are_no_more_modules(modules: list[SourceModule]) -> None:
    assert len(modules) <= MAX_MODULES


def test_there_are_no_more_scraps(modules: list[SourceModule]) -> None:
    assert sum(len(list_scraps(module)) for module in modules) <= MAX_SCRAPS


def test_the_formatter_is_not_told_to_look_away_more_often(modules: list[SourceModule]) -> None:
    skips = 0
    for module in modules:
        if "fmt: skip" in module.text:
            with module.path.open("rb") as file:
                skips += sum(
                    token.type == tokenize.COMMENT and "fmt: skip" in token.string
                    for token in tokenize.tokenize(file.readline)
                )
    assert skips <= MAX_SKIPPED_FORMATS


def test_no_more_variables_have_names_that_say_nothing(modules: list[SourceModule]) -> None:
    assert sum(map(count_empty_names, modules)) <= MAX_EMPTY_NAMES


def test_there_are_no_more_typed_dicts(modules: list[SourceModule]) -> None:
    made = 0
    for module in modules:
        for node in module.nodes:
            named = node.bases if isinstance(node, ast.ClassDef) else [node.func] if isinstance(node, ast.Call) else []
            made += any(isinstance(name, ast.Name) and name.id == "TypedDict" for name in named)
    assert made <= MAX_TYPED_DICTS


@pytest.mark.parametrize("statement", MAX_LOADED)
def test_a_start_loads_no_more_and_nothing_optional(statement: str) -> None:
    """CPU seconds differ from machine to machine; what they are spent on does not."""
    program = f"{statement}; import sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert len(loaded) <= MAX_LOADED[statement]
    assert not {name.partition(".")[0] for name in loaded} & OPTIONAL
    assert not {name for name in loaded if any(f"{name}.".startswith(f"{room}.") for room in OPTIONAL_ROOMS)}


def test_a_large_commit_says_why() -> None:
    """A clone without history, such as a release's archive, has no commits to look at."""
    form = ["--no-merges", f"--since={BODIES_SINCE}T00:00:00Z", "--shortstat", "--format=%x00%h %s%x01%b%x01"]
    log = subprocess.run(["git", "log", *form], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    silent = []
    for commit in log.split("\0")[1:]:
        subject, body, stat = commit.split("\x01")
        lines = sum(int(number) for number in re.findall(r"(\d+) (?:insertion|deletion)", stat))
        if lines > MAX_COMMIT_LINES_WITHOUT_BODY and not body.strip():
            silent.append(subject)
    assert silent == []
