"""Our plugin of pytest beside others: in other suites it changes nothing, in a fleet's they change no verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from assay.validate.judging.session_outcome_file import delete_run_file
from tests.support.places import ROOT

pytestmark = pytest.mark.slow(minutes=2)
pytest_plugins = ["pytester"]

PLUGINS = ROOT / ".venv-plugins/lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
IN_ORDER, SHUFFLED = ("-p", "no:randomly"), ("-p", "randomly", "--randomly-seed=7")
HTML = ("--html=report.html", "--self-contained-html")
ORDINARY = ("--assay-ordinary-items",)
"""pytest-html shows an item only after its teardown; a check that is no ordinary item has none."""
TOOLS = {
    "nothing else": IN_ORDER,
    "xdist": (*IN_ORDER, "-n2"),
    "xdist by groups": (*IN_ORDER, "-n2", "--dist=loadgroup"),
    "randomly": SHUFFLED,
    "html": (*IN_ORDER, *HTML),
    "all at once": (*SHUFFLED, "-n2", *HTML),
}
"""pytest-bdd, pytest-rerunfailures and anyio are there always."""
STRANGERS = {
    "conftest.py": """
import pytest

def pytest_addoption(parser):
    for name in ("node", "pool", "rack", "phase", "fleet", "store"):
        parser.addoption(f"--{name}", default="theirs")

@pytest.fixture
def node(request):
    return request.config.getoption("--node")

@pytest.fixture
def anyio_backend():
    return "asyncio"
""",
    "pytest.ini": "[pytest]\nstrict_markers = true\nmarkers =\n    phase(name): of theirs\n",
    "suites/test_own.py": """
import random, pytest
from pathlib import Path

def test_node(node): assert node == "mine"
def test_fails(): assert 1 == 2
@pytest.mark.phase("theirs")
def test_marked(): pass
@pytest.mark.xfail
def test_known(): assert False
@pytest.mark.skip(reason="theirs")
def test_skipped(): pass
@pytest.mark.parametrize("gpu", [0, 1])
def test_gpu(gpu): assert gpu < 2
@pytest.mark.anyio
async def test_awaits(): assert True
@pytest.mark.flaky(reruns=2)
def test_flaky(tmp_path_factory):
    mark = Path("tried")
    if not mark.exists():
        mark.touch()
        assert False, "the first time"
""",
    "suites/test_story.py": """
from pytest_bdd import given, scenarios, then

scenarios("story.feature")

@given("a node", target_fixture="limits")
def _(): return 8

@then("it has GPUs")
def _(limits): assert limits == 8
""",
    "suites/story.feature": "Feature: nodes\n  Scenario: GPUs\n    Given a node\n    Then it has GPUs\n",
}
SUITE = """
import pytest

pytestmark = pytest.mark.phase("production")

def test_count(node): assert node.gpu.count == 9, "too few"
def test_each(gpu): assert gpu.pcie.width
def test_passes(node): assert node.gpu.count
def test_cannot_tell(node): assert node.gpu.no_such_reading
"""


@pytest.fixture(autouse=True)
def _need_plugins() -> None:
    if not (PLUGINS / "pytest_randomly").is_dir():
        pytest.skip("other plugins of pytest are not installed: `make .venv-plugins/.ready`")


def run_pytest(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run pytest as a person does; it finds every plugin by itself."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *map(str, words)]
    env |= {"PYTHONPATH": str(PLUGINS)}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_suite_of_somebody_else_runs_as_if_we_were_not_installed(tmp_path: Path, tool: str) -> None:
    told = {}
    for side, ours in (("with", ()), ("without", ("-p", "no:assay"))):
        folder = tmp_path / side
        for name, text in STRANGERS.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        run = run_pytest(folder, *ours, *TOOLS[tool], "--node=mine", "--junitxml=junit.xml", "suites")
        told[side] = (run.returncode, read_junit(folder / "junit.xml"))
        assert (folder / "report.html").exists() == ("--html=report.html" in TOOLS[tool])
    assert told["with"] == told["without"]
    assert told["with"] == (
        1,
        {
            "test_node": "passed",
            "test_fails": "failure",
            "test_marked": "passed",
            "test_known": "skipped",
            "test_skipped": "skipped",
            "test_gpu[0]": "passed",
            "test_gpu[1]": "passed",
            "test_awaits": "passed",
            "test_flaky": "passed",
            "test_gpus": "passed",
        },
    )


def read_junit(file: Path) -> dict[str, str]:
    cases = ElementTree.parse(file).getroot().iter("testcase")
    return {case.get("name", ""): case[0].tag if len(case) else "passed" for case in cases}


@pytest.fixture
def judged(fleet_copy: Any) -> Any:
    fleet_copy.suite(SUITE)
    fleet_copy.collected("n0003", "n0004")
    return fleet_copy


def judge(fleet: Any, *words: object) -> tuple[subprocess.CompletedProcess[str], dict[tuple[str, str], str]]:
    """Run pytest over a fleet's suites; return how that went, and the verdict of each check on each subject."""
    delete_run_file(fleet.written)
    run = run_pytest(
        fleet.root,
        *words,
        "suites",
        "--import-mode=importlib",
        "--assay-node=n0003,n0004",
        f"--assay-store={fleet.written}",
    )
    return run, {(one.check, str(one.subject)): one.verdict for one in fleet.kept()}


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != "nothing else"])
def test_the_checks_of_a_fleet_have_the_same_verdicts(judged: Any, tool: str) -> None:
    alone, expected = judge(judged, *TOOLS["nothing else"])
    assert len(expected) == 2 * (8 + 3)
    assert set(expected.values()) == {"pass", "fail", "error"}
    beside, found = judge(judged, *TOOLS[tool], *(ORDINARY if HTML[0] in TOOLS[tool] else ()))
    assert set(found.items()) ^ set(expected.items()) == set(), beside.stdout + beside.stderr
    assert beside.returncode == alone.returncode
    if "--html=report.html" in TOOLS[tool]:
        assert "test_cannot_tell" in (judged.root / "report.html").read_text()


@pytest.mark.parametrize("how", ["option", "ini", "mark"])
def test_only_a_fleets_checks_refuse_to_run_again_until_they_pass(judged: Any, how: str) -> None:
    if how == "ini":
        (judged.root / "pytest.ini").write_text("[pytest]\nreruns = 2\n")
    if how == "mark":
        judged.suite(SUITE.replace("def test_count", "@pytest.mark.flaky(reruns=2)\ndef test_count"))
    run, found = judge(judged, *IN_ORDER, *(["--reruns=2"] if how == "option" else []))
    if how == "mark":
        assert {verdict for (check, _), verdict in found.items() if check.endswith("test_count")} == {"error"}
    else:
        assert "`reruns` is set: failed checks would run again until they pass" in run.stdout + run.stderr
        assert (run.returncode != 0, found) == (True, {})
