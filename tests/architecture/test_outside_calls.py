"""No call that was never made: every place that calls something outside is run by a test, with the real partner.

Where the real one cannot be had, its stand-in is as strict, and the reason stands in `outside_calls.yaml`. A new place
fails here until somebody has written down which test makes its call.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.outside_calls import find_in_code, find_in_spec, find_in_tasks, find_places
from tests.support.places import ROOT, TESTS

PARTNERS: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("outside_calls.yaml").read_text())
NEEDED = {"real": {"program", "tests"}, "stand-in": {"why", "strict", "tests"}, "nothing": {"why"}, "none": {"why"}}
LEFT = 2
"""Places that nothing runs yet. It may fall, and never rise."""


@pytest.fixture(scope="module")
def places() -> list[str]:
    return find_places()


def test_each_place_has_one_row_and_each_row_a_place(places: list[str]) -> None:
    listed = Counter(place for row in PARTNERS.values() for place in row["places"])
    assert {place for place, count in listed.items() if count > 1} == set()
    assert set(places) - set(listed) == set(), "write into outside_calls.yaml which test makes each of these calls"
    assert set(listed) - set(places) == set(), "they call nothing any more: take their rows out"


@pytest.mark.parametrize("partner", PARTNERS)
def test_each_row_says_what_runs_it(partner: str) -> None:
    row = PARTNERS[partner]
    assert NEEDED[row["by"]] <= row.keys()
    for test in row.get("tests", ()):
        file, _, name = test.partition("::")
        assert (ROOT / file).is_file(), test
        assert not name or name.rpartition("::")[2] in _read_test_names(ROOT / file), test
    if row["by"] == "real":
        told = "".join(_read_with_helpers(ROOT / test.partition("::")[0]) for test in row["tests"])
        named = re.search(rf"(?<![a-z]){re.escape(row['program'])}(?![a-z])", told, re.IGNORECASE)
        assert named, f"no test of the row names {row['program']}"
    if row["by"] == "stand-in":
        assert (ROOT / row["strict"]).exists()


def test_what_nothing_runs_grows_no_more() -> None:
    assert sum(len(row["places"]) for row in PARTNERS.values() if row["by"] == "nothing") <= LEFT


@cache
def _read_test_names(file: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)}


@cache
def _read_with_helpers(file: Path) -> str:
    """Return the text of a test's module, of its conftests, and of the modules of tests that it imports."""
    text = file.read_text()
    imports = re.findall(r"^from tests\.([.\w]+) import (\w+)", text, re.MULTILINE)
    names = {name for module, part in imports for name in (module, f"{module}.{part}")}
    helpers = [folder / "conftest.py" for folder in file.parents if folder.is_relative_to(TESTS)]
    helpers += [TESTS / f"{name.replace('.', '/')}.py" for name in sorted(names)]
    return text + "".join(helper.read_text() for helper in helpers if helper.exists())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f():\n    subprocess.run(['newtool', '--at', 'x'])", ["f: runs newtool"]),
        ("def f():\n    run_tool(['newtool'], 5, parse)", ["f: runs newtool"]),
        ("TOOL = 'newtool'\ndef f():\n    subprocess.Popen([TOOL, 'x'])", ["f: runs TOOL"]),
        ("ASK = ('newtool', 'show', '-q')", [" runs newtool show"]),
        ("def f(words):\n    words = ['newtool', *words, '--json']\n    call_tool(words, order)", ["f: runs newtool"]),
        ("def f(words):\n    os.execvp(words[0], words)", ["f: starts what it is given"]),
        ("async def f(words):\n    await asyncio.create_subprocess_exec(*words)", ["f: starts what it is given"]),
        ("def f(tool):\n    words = [tool, 'run', '--rm']", ["f: runs tool"]),
        ("ASK = ['systemctl', 'restart', name]", [" runs systemctl restart"]),
        ("def f():\n    from requests import Session", [" uses requests"]),
        ("import kubernetes.client", [" uses kubernetes"]),
        ("def f():\n    ctypes.CDLL(None)", ["f: connects by ctypes.CDLL"]),
        ("class A:\n    def f(self):\n        return '#!ipxe\\n'", ["A.f: writes an iPXE script"]),
        ("def f(name):\n    return f'[Unit]\\nDescription={name}'", ["f: writes a unit of systemd"]),
        ("def f():\n    return {'apiVersion': 'v1'}", ["f: writes an object of Kubernetes"]),
    ],
)
def test_a_planted_call_is_found(text: str, found: list[str]) -> None:
    assert [place.removeprefix("planted.py:") for place in find_in_code("planted.py", ast.parse(text))] == found


@pytest.mark.parametrize(
    "text",
    ['"""Run `newtool --all`."""', "NAMES = ('nvme', 'count')", "def f(run):\n    run.start(1)", "x = ['-a', '-b']"],
)
def test_what_calls_nothing_is_not_found(text: str) -> None:
    assert find_in_code("planted.py", ast.parse(text)) == []


def test_a_request_that_changes_a_bmc_is_found() -> None:
    tree = ast.parse("def f(client):\n    client.post('/x')\n    client.get('/y')")
    assert find_in_code("adapters/bmc/new.py", tree) == ["adapters/bmc/new.py:f: sends POST"]


def test_tasks_that_act_are_found_in_blocks_too() -> None:
    act = {"name": "Do", "ansible.builtin.command": "newtool"}
    tell = {"name": "Say", "ansible.builtin.debug": {"msg": "x"}}
    tasks = [{"name": "Both", "block": [tell], "rescue": [act]}]
    assert find_in_tasks("t.yml", tasks) == ["t.yml: Do (command)"]


def test_a_command_of_a_spec_is_found() -> None:
    assert find_in_spec("s.yaml", "kind: X\npair: {command: [newtool, -a]}\n") == ["s.yaml: the command"]
    assert find_in_spec("s.yaml", "kind: X\ncommand: words\n") == []
