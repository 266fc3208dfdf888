"""Runs one pytest session over recorded documents, and returns the verdicts of the checks."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from assay.declare.fleet_cache import SHARED_PARSE_CACHE
from assay.declare.home import CONTEXT_VARIABLE
from assay.declare.yaml_document import ParseCache
from assay.model.outcome import CheckVerdict
from assay.validate.must_fail_recordings import MustFailCase, apply_case, read_check_recording

SESSION_PARSE_CACHE = ParseCache()
SESSION_VARIABLES = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", CONTEXT_VARIABLE: "lab"}
"""Recordings are of the lab: so the examples that vouch for its nodes vouch for them."""

UNUSED_PLUGINS = ("cacheprovider", "unraisableexception", "threadexception")
"""pytest's own plugins that are not needed; two of them collect garbage, which takes half of a session's time."""


class RecordedDocument(NamedTuple):
    """A document called `name`, made from a recording, with the changes of a case (None: unchanged)."""

    name: str
    recording: str
    case: MustFailCase | None = None


class ExpectedVerdict(NamedTuple):
    """The expected verdict of a check on a subject. `case` is the case's name, "" for the good recording."""

    check: str
    subject: str
    case: str = ""
    verdict: CheckVerdict = "pass"
    says: str = ""


class ObservedVerdict(NamedTuple):
    """The actual verdict; "" where there is no outcome, and `reason` then says how the session ended."""

    expected: ExpectedVerdict
    verdict: str
    reason: str

    @property
    def is_as_expected(self) -> bool:
        """Whether verdict and reason are as expected."""
        return self.verdict == self.expected.verdict and self.expected.says in self.reason


@dataclass(frozen=True)
class RecordingSession:
    """One session. `suites` holds the checks; `fleet` is the repository with their inventory and specs.

    `nodes`, where there are any, replace the inventory: one group, in Ansible's form.
    """

    suites: Path
    fleet: Path
    documents: tuple[RecordedDocument, ...]
    expected: tuple[ExpectedVerdict, ...]
    nodes: dict[str, object] = field(default_factory=dict)


def run_recording_session(sitting: RecordingSession) -> list[ObservedVerdict]:
    """Run a session in this process, and return the verdict for everything that it expects."""
    import pytest

    with tempfile.TemporaryDirectory(prefix="assay-proof-") as folder:
        home = _prepare_fleet(sitting, Path(folder))
        heard, said = ReportListener(), io.StringIO()
        with (
            _isolate_environment(),
            _share_parse_cache(),
            _unload_suites_after(sitting.suites),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            ended = pytest.main(_arguments(sitting, home, Path(folder)), plugins=[heard])
    lines = [line.strip() for line in said.getvalue().splitlines() if line.strip()]
    why = f"no outcome: pytest ended with {int(ended)}: {lines[-1] if lines else 'it said nothing'}"
    return [ObservedVerdict(one, *heard.found.get((one.check, one.subject), ("", why))) for one in sitting.expected]


class ReportListener:
    """Collects verdict and reason from a session's reports, by check and subject."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: object) -> None:
        """Record a check's verdict. A later phase of an ordinary item replaces only a pass."""
        verdict = getattr(report, "verdict", "")
        check, _, subject = str(getattr(report, "nodeid", "")).partition("[")
        key = (f"suites/{check.rpartition('suites/')[2]}", subject.removesuffix("]"))
        if verdict and self.found.get(key, ("pass", ""))[0] == "pass":
            self.found[key] = (verdict, _reason(getattr(report, "longrepr", None)))


def _reason(told: object) -> str:
    if isinstance(told, tuple):
        return str(told[2]).removeprefix("Skipped: ")
    return str(told) if told else ""


def _prepare_fleet(sitting: RecordingSession, folder: Path) -> Path:
    """Write the documents, and return the fleet repository to judge by: the given one, or one with other nodes."""
    latest = folder / "evidence" / "latest"
    latest.mkdir(parents=True)
    recordings = sitting.suites / "recordings"
    documents = {
        name: read_check_recording(recordings, name) for name in {laid.recording for laid in sitting.documents}
    }
    for document in documents.values():
        document.pop("node", None)
    unchanged = {name: json.dumps(document) for name, document in documents.items()}
    for laid in sitting.documents:
        document = documents[laid.recording]
        text = json.dumps(apply_case(document, laid.case)) if laid.case else unchanged[laid.recording]
        (latest / f"{laid.name}.json").write_text(f'{text[:-1]}, "node": {json.dumps(laid.name)}}}')
    if not sitting.nodes:
        return sitting.fleet
    home = folder / "fleet"
    (home / "inventory").mkdir(parents=True)
    (home / "specs").symlink_to(sitting.fleet / "specs")
    (home / "inventory" / "proof.yml").write_text(json.dumps(sitting.nodes))
    return home


def _arguments(sitting: RecordingSession, home: Path, folder: Path) -> list[str]:
    root = sitting.suites.parent
    ids = [f"{root / one.check}[{one.subject}]" for one in sitting.expected]
    own = [
        "--import-mode=importlib",
        "-qs",
        "-p",
        "assay.validate.plugin",
        *(f"-pno:{name}" for name in UNUSED_PLUGINS),
    ]
    return [
        *ids,
        *own,
        f"--rootdir={root}",
        f"--assay-fleet={home}",
        f"--assay-evidence={folder / 'evidence' / 'latest'}",
    ]


@contextlib.contextmanager
def _unload_suites_after(suites: Path) -> Iterator[None]:
    """Unload the suites that the block imports: those of another fleet may have the same names."""
    try:
        yield
    finally:
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None)).startswith(f"{suites}{os.sep}"):
                del sys.modules[name]


@contextlib.contextmanager
def _share_parse_cache() -> Iterator[None]:
    """Share parsed documents of the fleet between all sessions of this process."""
    before = SHARED_PARSE_CACHE.set(SESSION_PARSE_CACHE)
    try:
        yield
    finally:
        SHARED_PARSE_CACHE.reset(before)


@contextlib.contextmanager
def _isolate_environment() -> Iterator[None]:
    """Keep installed plugins and PYTEST_ADDOPTS from affecting the session."""
    before = {name: os.environ.get(name) for name in SESSION_VARIABLES}
    os.environ.update(SESSION_VARIABLES)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
