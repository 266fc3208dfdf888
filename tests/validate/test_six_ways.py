"""Checks as users write them: each has one verdict and one reason, in whatever way pytest is called."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

HEAD = """
import contextlib
import random
import pytest

pytestmark = pytest.mark.phase("production")


@pytest.fixture
def own(node):
    return node.host.cpu_threads


@pytest.fixture
def raising():
    raise ValueError("boom")


@pytest.fixture
def ending():
    yield
    raise ValueError("late")


"""
JUDGED_AGAIN = "the check was judged twice in one run: two functions of its module have this name"
PARAMETRIZED = "has a parametrize of its own, but a check gives one outcome for each subject; "
CHECKS: dict[str, tuple[str, str, str]] = {
    # name: arguments and body, verdict, beginning of the reason
    "passes": ("node|assert node.host.cpu_threads", "pass", ""),
    "fails": ("node|assert node.host.cpu_threads < 0, 'too many'", "fail", "too many"),
    "fails_plain": ("node|assert node.host.cpu_threads < 0", "fail", "assert "),
    "multiline": ("node|assert node.host.cpu_threads < 0, 'first\\nsecond'", "fail", "first"),
    "hostile": ("node|assert not node.host.cpu_threads, '\\x1b[31m<b>\\x00'", "fail", "\\u001b[31m<b>"),
    "surrogate": ("node|assert not node.host.cpu_threads, 'a\\udc80'", "fail", "a\\udc80"),
    "long": ("node|assert not node.host.cpu_threads, 'x' * 9999", "fail", "x" * 499),
    "raises": ("node|raise ValueError('boom')", "error", "ValueError: boom"),
    "group": ("node|raise ExceptionGroup('many', [ValueError(1)])", "error", "ExceptionGroup: many"),
    "recursion": ("node|f = lambda: f(); f()", "error", "RecursionError: "),
    "exits": ("node|raise SystemExit(0)", "error", "SystemExit: 0"),
    "fixture_raises": ("node, raising|assert node.host.cpu_threads", "error", "ValueError: boom"),
    "teardown_raises": ("node, ending|assert node.host.cpu_threads", "error", "ValueError: late"),
    "own_fixture": ("node, own|assert own", "pass", ""),
    "own_default": ("node, limit=1|assert node.host.cpu_threads > limit", "pass", ""),
    "no_fixture": ("node, mesure|assert node", "error", "fixture 'mesure' not found. did you mean measure?"),
    "no_evidence": ("node|pass", "error", "passed without reading any evidence"),
    "no_reading": ("node|assert node.host.nosuch", "error", "n0003.probe.host has no 'nosuch'"),
    "getattr": ("node|assert getattr(node.host, 'nosuch', 0) == 0", "error", "n0003.probe.host has no 'nosuch'"),
    "hasattr": ("node|assert not hasattr(node.host, 'nosuch')", "error", "n0003.probe.host"),
    "suppress": ("node|with contextlib.suppress(BaseException): node.host.nosuch", "error", "n0003.probe.host"),
    "branch": ("node|assert node.host", "error", "n0003.probe.host: failed: is a branch"),
    "returns": ("node|return node.host.cpu_threads < 0", "error", "returned a value, which pytest ignores"),
    "returns_own": ("node, own|return own < 0", "error", "returned a value, which pytest ignores"),
    "skips": ("node|pytest.skip('not here')", "skip", "not here"),
    "skips_silently": ("node|pytest.skip()", "error", "skipped without a reason"),
    "importorskip": ("node|pytest.importorskip('no_such_module')", "skip", "could not import 'no_such_module'"),
    "xfails": ("node|pytest.xfail('known')", "error", "xfail does not exist here"),
    "pytest_fail": ("node|pytest.fail('no')", "fail", "no"),
    "approx": ("node|assert node.host.cpu_threads == pytest.approx(-1)", "fail", "assert "),
    "measures": ("node, measure|measure('threads', node.host.cpu_threads, at_least=1)", "pass", ""),
    "measures_low": ("node, measure|measure('threads', node.host.cpu_threads, at_most=1)", "fail", "threads "),
    "measures_nan": ("node, measure|node.host.cpu_threads; measure('x', float('nan'), at_most=1)", "error", "x cannot"),
    "measures_text": ("node, measure|measure('x', node.host.kernel, at_most=1)", "error", "x is "),
    "prints": ("node|print('hello'); assert node.host.cpu_threads", "pass", ""),
    "random": ("node|random.seed(1); assert node.host.cpu_threads", "pass", ""),
    "tmp_path": ("node, tmp_path|assert tmp_path.exists() and node.host.cpu_threads", "pass", ""),
    "monkeypatch": ("node, monkeypatch|monkeypatch.setenv('A', 'b'); assert node.host.cpu_threads", "pass", ""),
}
MARKED = {
    "marked_skip": ("@pytest.mark.skip(reason='later')", "skip", "later"),
    "marked_skipif": ("@pytest.mark.skipif(True, reason='old')", "skip", "old"),
    "marked_xfail": ("@pytest.mark.xfail", "error", "xfail does not exist here"),
    "marked_flaky": ("@pytest.mark.flaky(reruns=2)", "error", "no check runs again until it passes"),
    "marked_own": ("@pytest.mark.nightly", "pass", ""),
    "parametrized": ("@pytest.mark.parametrize('n', [1, 2])", "error", PARAMETRIZED),
    "filtered": ("@pytest.mark.filterwarnings('ignore')", "pass", ""),
    "using": ("@pytest.mark.usefixtures('own')", "pass", ""),
}
REST = """
async def test_coroutine(node):
    assert node.host.cpu_threads < 0


class TestOne:
    def test_method(self, node):
        assert node.host.cpu_threads < 0, "in a class"

    def test_twice(self, node):
        assert node.host.cpu_threads


class TestTwo:
    def test_twice(self, node):
        assert node.host.cpu_threads


def test_no_subject():
    assert True
"""
EXPECTED = {name: expected for name, (_, *expected) in (CHECKS | MARKED).items()} | {
    "coroutine": ["error", "is `async def`, which pytest does not await"],
    "method": ["fail", "in a class"],
    "twice": ["error", JUDGED_AGAIN],
    "no_subject": ["error", "has no argument that is a subject"],
}
XDIST = ("-p", "xdist", "-n", "2")
QUICK_WAYS = {"quiet": ("-q",), "verbose": ("-v",), "ordinary": ("--assay-ordinary-items",)}
SLOW_WAYS = {
    "workers": XDIST,
    "workers by node": (*XDIST, "--dist", "loadgroup"),
    "allure": ("--tb=short", "-p", "allure_pytest.plugin", "--alluredir=allure"),
}


@pytest.fixture
def fleet(fleet_copy):
    text = HEAD
    for name, (source, *_) in CHECKS.items():
        arguments, _, body = source.partition("|")
        text += f"def test_{name}({arguments}):\n    {body}\n\n\n"
    for name, (mark, *_) in MARKED.items():
        argument = "node, n" if "parametrize" in mark else "node"
        text += f"{mark}\ndef test_{name}({argument}):\n    assert node.host.cpu_threads\n\n\n"
    fleet_copy.suite(text + REST)
    fleet_copy.collected("n0003", "n0004")
    return fleet_copy


def judged(fleet, *options: str) -> dict[tuple[str, str], tuple[str, str]]:
    """Return verdict and reason of each outcome, by the check's name and the subject."""
    found = fleet.outcomes("--assay-node", "n0003,n0004", *options)
    return {(one.check.split("::test_")[1], one.subject): (one.verdict, one.reason) for one in found}


@pytest.mark.parametrize("way", QUICK_WAYS)
def test_every_check_has_the_verdict_and_the_reason_that_its_author_would_expect(fleet, way):
    found = judged(fleet, *QUICK_WAYS[way])
    of_one = {name: outcome for (name, subject), outcome in found.items() if subject in ("h100-a/n0003", "fleet/all")}
    assert of_one.keys() == EXPECTED.keys()
    wrong = {
        name: outcome
        for name, outcome in of_one.items()
        if outcome[0] != EXPECTED[name][0] or not outcome[1].startswith(EXPECTED[name][1])
    }
    assert wrong == {}


@pytest.mark.slow
def test_six_ways_come_to_the_same(fleet):
    first, *others = (judged(fleet, *options) for options in (QUICK_WAYS | SLOW_WAYS).values())
    assert len(first) >= 2 * len(EXPECTED) - 1
    for other in others:
        assert other == first


def test_what_pytest_warns_of_is_shown(fleet_copy):
    marked = "import pytest\n@pytest.mark.nightlyy\ndef test_x(node):\n    assert (node.host.cpu_threads, 'never')\n"
    fleet_copy.suite(marked)
    fleet_copy.collected("n0003")
    said = fleet_copy.pytest("--assay-node", "n0003").stdout.str()
    assert "PytestUnknownMarkWarning: Unknown pytest.mark.nightlyy" in said
    assert "assertion is always true" in said
