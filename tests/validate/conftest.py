"""A copy of the example fleet whose suites and evidence a test may rewrite, judged by real pytest."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb  # noqa: F401 — its extension ends a process that loads it twice, as after pytester's clean-up
import pytest

import assay.validate.items.suite_hooks  # noqa: F401 — once for all sessions inside the tests
from assay.declare.fleet_cache import SHARED_PARSE_CACHE
from assay.declare.loader import load_fleet
from assay.declare.yaml import ParseCache
from assay.ledger.runs.reader import StoredRun
from assay.model.clock import SystemClock
from assay.model.outcome import Outcome
from assay.validate.judging.session_outcome_file import delete_run_file
from assay.validate.must_fail_recordings import read_check_recording
from assay.validate.runs.run_validation import RunResult, run_validation
from tests.support.places import ROOT

RECORDINGS = ROOT / "suites" / "recordings"
RECORDED_SERIAL = "A520112X4400003"


@dataclass
class Copy:
    """A fleet repository below `root` and a way to run its suites inside this process."""

    root: Path
    pytester: pytest.Pytester

    @property
    def evidence(self) -> Path:
        return self.root / ".assay" / "evidence" / "latest"

    def suite(self, text: str, name: str = "test_own.py") -> None:
        """Replace the suites by one module."""
        shutil.rmtree(self.root / "suites", ignore_errors=True)
        (self.root / "suites").mkdir()
        (self.root / "suites" / name).write_text(text)

    def declared(self, text: str, phase: str = "zap", **kinds: str) -> None:
        """Replace the suites by one module, and the catalogues by one that declares its checks: kind by name."""
        self.suite(text)
        self.declare({f"suites/test_own.py::{name}": kind for name, kind in kinds.items()}, phase)

    def declare(self, kinds: dict[str, str], phase: str = "zap") -> None:
        """Replace the catalogues by one with these checks, each with the kind of its subjects."""
        shutil.rmtree(self.root / "specs" / "checks")
        (self.root / "specs" / "checks").mkdir()
        checks = [{"id": name, "subject": kind, "phases": [phase]} for name, kind in kinds.items()]
        catalogue = {"kind": "CheckCatalog", "name": "own", "description": "Own.", "owner": "tests", "checks": checks}
        (self.root / "specs" / "checks" / "own.yaml").write_text(json.dumps(catalogue))

    def judge(self, *nodes: str, phases: Sequence[str] = ("zap",), **more: Any) -> RunResult:
        """Run `assay validate` on some nodes, in this process and its shards."""
        asked = {"reports": self.root / "reports", "ledger": None, "clock": SystemClock()} | more
        return run_validation(load_fleet(self.root), self.evidence, nodes=nodes, phases=phases, **asked)

    def collected(self, *nodes: str, channels: dict[str, Any] | None = None, at: str = "") -> None:
        """Lay down evidence of now or another time: the recording under these nodes' names, or other channels."""
        self.evidence.mkdir(parents=True, exist_ok=True)
        document = read_check_recording(RECORDINGS, "hgx-h100") | {"at": at or datetime.now(UTC).isoformat()}
        for node in nodes:
            about = {**document, "node": node} | ({"channels": channels} if channels is not None else {})
            text = json.dumps(about).replace(RECORDED_SERIAL, f"{RECORDED_SERIAL[:-2]}{node[-2:]}")
            (self.evidence / f"{node}.json").write_text(text)

    def pytest(self, *options: str) -> pytest.RunResult:
        """Run pytest over the suites, outcomes written to `written`."""
        delete_run_file(self.written)
        return self.again(*options)

    def again(self, *options: str) -> pytest.RunResult:
        """Run pytest over the suites, going on with what is written already."""
        fixed = ("--import-mode=importlib", "-p", "no:cacheprovider", "-p", "assay.validate.plugin")
        return self.pytester.runpytest_inprocess(
            *options, str(self.root / "suites"), *fixed, f"--rootdir={self.root}", f"--assay-store={self.written}"
        )

    @property
    def written(self) -> Path:
        return self.root / "own.sqlite"

    def outcomes(self, *options: str) -> list[Outcome]:
        """Run pytest over the suites and return what was written down."""
        self.pytest(*options)
        return self.kept()

    def kept(self) -> list[Outcome]:
        """Return what is written down."""
        if not self.written.exists():
            return []
        with StoredRun.open(self.written) as stored:
            return list(stored.outcomes())


@pytest.fixture(scope="session")
def read() -> ParseCache:
    """What copies of the example have in common; what reads a fleet is imported, once for all sessions inside tests."""
    cache = ParseCache()
    load_fleet(ROOT, cache=cache)
    return cache


@pytest.fixture
def read_once(read: ParseCache) -> Iterator[None]:
    """Let sessions inside a test read what is the same for all of them once."""
    before = SHARED_PARSE_CACHE.set(read)
    yield
    SHARED_PARSE_CACHE.reset(before)


@pytest.fixture
def fleet_copy(tmp_path: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, read_once: None) -> Copy:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    home = tmp_path / "fleet"
    for folder in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / folder, home / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return Copy(home, pytester)


@pytest.fixture
def verdicts() -> Callable[[list[Outcome]], dict[str, str]]:
    """Return how to read outcomes: the test's name → its verdict and reason."""
    return lambda outcomes: {one.check.split("::test_")[1]: f"{one.verdict}: {one.reason}" for one in outcomes}
