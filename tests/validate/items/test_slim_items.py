"""Slim items feel like pytest's own: every option does what a user expects, and both kinds live in one session."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import groupby

import pytest

from assay.ledger.runs.reader import StoredRun
from tests.support.forked_python import ForkingPopen

pytest_plugins = ["pytester"]

SUITE = '''
"""Three checks that only judge evidence, and two that ask for more."""
import pytest

pytestmark = pytest.mark.phase("production")

def test_fine(node):
    assert node.host.cpu_threads > 0

@pytest.mark.passive
def test_gpu(gpu):
    assert gpu.pcie.width == (4 if gpu.slot == "gpu5" else 16)

def test_host(node, limits, measure):
    print("looked")
    measure("threads", node.host.cpu_threads, at_most=limits.nvlink_links)
'''
ORDINARY = """
import pytest

@pytest.fixture(scope="module")
def bench():
    yield []

def test_with_a_fixture(node, bench):
    bench.append(node.host.cpu_threads)
    assert len(bench) > 0

@pytest.mark.parametrize("least", [1, 1000])
def test_repeated(node, least):
    assert node.host.cpu_threads >= least
"""
IDS = [
    "test_fine[h100-a/n0003]",
    *(f"test_gpu[h100-a/n0003/gpu{slot}]" for slot in range(8)),
    "test_host[h100-a/n0003]",
]
FAILING = ["test_gpu[h100-a/n0003/gpu5]", "test_host[h100-a/n0003]"]


@pytest.fixture
def one(fleet_copy):
    """One module of slim items, and evidence of one node that fails two of ten."""
    fleet_copy.suite(SUITE)
    fleet_copy.collected("n0003", "n0004")
    return fleet_copy


@pytest.fixture
def kinds(one):
    """Slim and ordinary modules by turns, in one folder and in another."""
    suites = one.root / "suites"
    for name, text in (("test_a.py", ORDINARY), ("test_b.py", SUITE), ("test_c.py", SUITE + ORDINARY)):
        (suites / name).write_text(text)
    (suites / "deeper").mkdir()
    (suites / "deeper" / "test_d.py").write_text(ORDINARY)
    (suites / "deeper" / "test_e.py").write_text(SUITE)
    return one


def run(fleet, *options: str, cache: bool = False):
    """Run pytest as a user does, over n0003."""
    fixed = [
        "--import-mode=importlib",
        "-p",
        "assay.validate.plugin",
        f"--rootdir={fleet.root}",
        "--assay-node",
        "n0003",
    ]
    paths = [] if any("::" in option for option in options) else [str(fleet.root / "suites")]
    return fleet.pytester.runpytest_inprocess(*fixed, *([] if cache else ["-p", "no:cacheprovider"]), *paths, *options)


class Listener:
    """Hears every report, as pytest's recorder does only of what somebody listens to."""

    def pytest_runtest_logreport(self, report):
        pass


def with_plugin(fleet, plugin):
    """Run pytest over n0003 with a plugin of a test's own, and return all its reports."""
    fixed = [
        "--import-mode=importlib",
        "-p",
        "assay.validate.plugin",
        "-p",
        "no:cacheprovider",
        "--assay-node",
        "n0003",
    ]
    return fleet.pytester.inline_run(
        str(fleet.root / "suites"), *fixed, f"--rootdir={fleet.root}", plugins=[plugin, Listener()]
    )


def judged(result) -> list[str]:
    """Return the ids that a verbose or collecting session named."""
    return [line.split("::", 1)[1].split(" ")[0] for line in result.outlines if "::test_" in line]


def test_a_check_of_evidence_is_slim_and_any_other_is_pytests_own(kinds):
    shown = Counter(line.strip().split(" ")[0] for line in run(kinds, "--collect-only").outlines if "test_" in line)
    assert shown["<SlimItem"] == 4 * 10
    assert shown["<Function"] == 3 * 3


@pytest.mark.parametrize(
    "more",
    [
        "import pytest\n@pytest.fixture\ndef node(check_context): return 1\n",
        "import pytest\n@pytest.fixture(autouse=True)\ndef before(): pass\n",
        "import pytest\npytestmark = pytest.mark.usefixtures('tmp_path')\n",
        "def setup_module(): pass\n",
        "def pytest_generate_tests(metafunc): pass\n",
    ],
    ids=["overrides a fixture", "has an automatic fixture", "uses fixtures", "is set up", "generates"],
)
def test_a_module_that_asks_pytest_for_more_gets_ordinary_items(one, more):
    (one.root / "suites" / "test_own.py").write_text(more + "def test_x(node):\n    assert node\n")
    assert "<Function test_x[h100-a/n0003]>" in run(one, "--collect-only").stdout.str()


@pytest.mark.parametrize(
    "function",
    [
        "async def test_x(node): pass",
        "def test_x(node, of=1): pass",
        "@pytest.mark.skipif(False, reason='never')\ndef test_x(node): pass",
        "@pytest.mark.timeout(5)\ndef test_x(node): pass",
    ],
)
def test_a_function_that_is_more_than_a_call_gets_ordinary_items(one, function):
    (one.root / "suites" / "test_own.py").write_text(f"import pytest\n{function}\n")
    assert "<SlimItem" not in run(one, "--collect-only", "-W", "ignore").stdout.str()


def test_both_kinds_come_to_the_same_outcomes(kinds):
    slim, ordinary = (kinds.outcomes("--assay-node", "n0003", *more) for more in ([], ["--assay-ordinary-items"]))
    facts = [
        {(one.check, one.subject, one.verdict, one.reason, one.measurements, one.evidence) for one in outcomes}
        for outcomes in (slim, ordinary)
    ]
    assert facts[0] == facts[1]
    assert len(slim) == len(ordinary) == 4 * 10 + 3 * 2
    assert {one.verdict for one in slim if one.check.endswith("test_repeated")} == {"error"}  # refused


class Order:
    """Puts items in another order than ours, as plugins that shuffle do."""

    def __init__(self, key) -> None:
        self.key = key

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        yield
        items.sort(key=self.key)


@pytest.mark.parametrize(
    "key",
    [lambda item: item.nodeid, lambda item: item.name, lambda item: hash(item.nodeid[::-1]) % 97],
    ids=["by module", "by name", "at random"],
)
def test_both_kinds_run_in_any_order(kinds, key):
    result = with_plugin(kinds, Order(key))
    passed, skipped, failed = result.listoutcomes()
    assert (len(passed), len(skipped), len(failed)) == (4 * 8 + 3, 0, 4 * 2 + 6)


def test_what_a_neighbours_teardown_does_wrong_is_an_error_and_no_crash(kinds):
    text = ORDINARY.replace("yield []", "yield []\n    raise OSError('left a mess')")
    (kinds.root / "suites" / "test_a.py").write_text(text)
    by_name = Order(lambda item: (item.path.name not in ("test_a.py", "test_b.py"), item.path.name))
    result = with_plugin(kinds, by_name)
    assert any("left a mess" in str(report.longrepr) for report in result.getreports() if report.failed)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_ids_are_those_of_ordinary_items(one):
    assert judged(run(one, "--collect-only", "-q")) == IDS
    assert judged(run(one, "--collect-only", "-q", "--assay-ordinary-items")) == IDS


def test_lf_runs_what_failed_and_nothing_else(one):
    assert run(one, cache=True).parseoutcomes() == {"passed": 8, "failed": 2}
    again = run(one, "--lf", cache=True)
    assert again.parseoutcomes()["failed"] == 2
    assert "passed" not in again.parseoutcomes()
    assert judged(run(one, "--lf", "--collect-only", "-q", cache=True)) == FAILING


def test_ff_runs_what_failed_first(one):
    run(one, cache=True)
    assert judged(run(one, "--ff", "--collect-only", "-q", cache=True))[:2] == FAILING


def test_x_and_maxfail_stop(one):
    assert run(one, "-x").parseoutcomes() == {"passed": 6, "failed": 1}
    assert run(one, "--maxfail=1").parseoutcomes() == {"passed": 6, "failed": 1}
    assert run(one, "--maxfail=2").parseoutcomes()["failed"] == 2


@pytest.mark.slow
def test_workers_judge_slim_items_too(kinds):
    shared = run(kinds, "-p", "xdist", "-n", "2")
    assert {word: shared.parseoutcomes()[word] for word in ("passed", "failed")} == {"passed": 35, "failed": 8}
    assert "specs/nodes/hgx-h100.yaml:" in shared.stdout.str()


def test_durations_name_the_slowest(one):
    told = run(one, "--durations=3", "--durations-min=0").stdout.str()
    assert "slowest 3 durations" in told
    assert "s call     suites/test_own.py::test_" in told


def test_junit_xml_holds_every_outcome(one):
    run(one, "--junitxml", str(one.root / "junit.xml"))
    suite = ET.parse(one.root / "junit.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("10", "2", "0")
    assert {case.get("name") for case in suite} == set(IDS)
    (message,) = [case.find("failure").get("message") for case in suite if case.get("name") == FAILING[1]]
    assert message.startswith("threads 224 links, expected at most 18 (specs/nodes/hgx-h100.yaml:")


def test_q_prints_dots_and_a_line_for_each_failure_and_nothing_that_a_check_prints(one):
    result = run(one, "-q")
    assert result.outlines[0].split() == ["......F..F", "[100%]"]
    assert sum("h100-a/n0003" in line for line in result.outlines) == 2
    assert "100%" in result.stdout.str()


def test_v_names_every_item_and_shows_tracebacks(one):
    result = run(one, "-v")
    assert sum(" PASSED" in line for line in result.outlines) == 8
    assert "def test_host(node, limits, measure):" in result.stdout.str()


@pytest.fixture
def forked_pytest(monkeypatch):
    """Let `python -m pytest` be a fork, in which `assay.validate.plugin` is imported anew."""
    monkeypatch.setattr(ForkingPopen, "more_modules", ("pytest",))


def test_tb_long_shows_the_source_and_what_was_printed(one):
    told = run(one, "--tb=long").stdout.str()
    assert "def test_gpu(gpu):" in told
    assert "Captured stdout call" in told
    assert "looked" in told


def test_a_bare_assert_is_taken_apart(one):
    assert "assert 16 == 4 where 16 = <n0003.probe.gpu.devices" in run(one).stdout.str()


@pytest.mark.slow
def test_pdb_stops_in_the_check(one, forked_pytest):
    words = ["-m", "pytest", "--pdb", "--assay-node", "n0003", "-k", "host", "-p", "assay.validate.plugin"]
    result = one.pytester.run(sys.executable, *words, "--rootdir", str(one.root), "--assay-fleet", str(one.root),
                              str(one.root / "suites"), stdin=b"p 'stopped', node\nq\n")  # fmt: skip
    assert "('stopped', <h100-a/n0003>)" in result.stdout.str()


def test_one_id_and_one_functions_ids_can_be_asked_for(one):
    own = one.root / "suites" / "test_own.py"
    assert judged(run(one, f"{own}::test_gpu[h100-a/n0003/gpu5]", "--collect-only", "-q")) == [FAILING[0]]
    assert judged(run(one, f"{own}::test_gpu", "--collect-only", "-q")) == IDS[1:9]
    two = [f"{own}::test_gpu[h100-a/n0003/gpu{slot}]" for slot in (1, 2)]
    assert judged(run(one, *two, "--collect-only", "-q")) == IDS[2:4]


def test_an_id_that_does_not_exist_is_a_usage_error(one):
    result = run(one, f"{one.root / 'suites' / 'test_own.py'}::test_gpu[h100-a/n0003/gpu9]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "test_gpu" in result.stderr.str()


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["pytest.exit('enough')", "raise KeyboardInterrupt"])
def test_pytest_exit_and_ctrl_c_end_the_session(one, forked_pytest, ending):
    (one.root / "suites" / "test_own.py").write_text(f"import pytest\ndef test_x(node):\n    {ending}\n")
    words = [
        "--assay-node",
        "n0003",
        "-p",
        "assay.validate.plugin",
        "--assay-store",
        str(one.written),
        "--rootdir",
        str(one.root),
    ]
    result = one.pytester.run(sys.executable, "-m", "pytest", *words, str(one.root / "suites"))
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert one.kept() == []


def test_options_with_values_that_exist_as_paths_are_no_test_paths(one, forked_pytest):
    """Registered in a conftest, the second run would take the value for a path and know the option no more."""
    for _ in range(2):
        words = [
            "-m",
            "pytest",
            "--assay-store",
            str(one.written),
            "--assay-node",
            "n0003",
            "-p",
            "assay.validate.plugin",
            "-q",
        ]
        result = one.pytester.run(sys.executable, *words, "--rootdir", str(one.root), str(one.root / "suites"))
        assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len(one.kept()) == len(IDS)


def test_the_terminal_keeps_no_teardown_reports_to_look_through_for_each_failure(one):
    class Reporter:
        def pytest_terminal_summary(self, terminalreporter):
            self.stats = {key: len(found) for key, found in terminalreporter.stats.items()}

    kept = Reporter()
    with_plugin(one, kept)
    assert kept.stats == {"passed": 8, "failed": 2}


def test_a_node_is_judged_whole_before_the_next(one):
    words = ["--collect-only", "-q", "--import-mode=importlib", "-p", "assay.validate.plugin", "-p", "no:cacheprovider"]
    result = one.pytester.runpytest_inprocess(*words, f"--rootdir={one.root}", str(one.root / "suites"))
    nodes = [line.split("/")[2].rstrip("]") for line in result.outlines if "::test_" in line]
    assert [len(list(together)) for _, together in groupby(nodes)] == 20 * [10]


def test_left_out_is_written_for_what_no_item_was_made_of(one):
    one.outcomes("--assay-node", "n0003", "-k", "gpu5 or host")
    with StoredRun.open(one.written) as stored:
        left_out = stored.left_out()
    assert sorted(f"{check.split('::')[1]}[{subject}]" for check, subject in left_out) == sorted(
        set(IDS) - set(FAILING)
    )


def test_outcomes_that_cannot_be_kept_are_a_usage_error_before_anything_is_judged(one):
    result = run(one, "--assay-store", str(one.root / "no" / "such" / "folder.sqlite"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "the outcomes cannot be stored: unable to open database file" in result.stderr.str()


def test_a_mark_that_a_conftest_puts_on_one_item_is_not_on_its_neighbours_and_never_ignored(one):
    class Marking:
        def pytest_collection_modifyitems(self, items):
            items[0].add_marker(pytest.mark.skip(reason="not today"))
            items[1].add_marker("passive")

    result = with_plugin(one, Marking())
    passed, skipped, failed = result.listoutcomes()
    assert (len(passed), len(skipped), len(failed)) == (7, 0, 3)
    assert any("was marked skip after it was collected" in str(report.longrepr) for report in failed)
