"""Recordings: evidence on which every check passes, and for every check the changes that must make it fail.

`python -m assay.validate.must_fail_recordings n0003 fabric-compute` stores the last evidence as recordings. The first
document of a node spec is what every check must pass on; `suites/recordings/*.yaml` says how each check is made to fail
on it. One pytest session judges them all. Record anew when the probe, the BMC reader or the specs learn something.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from assay.declare.fleet_cache import SHARED_PARSE_CACHE
from assay.declare.home import CONTEXT_VARIABLE, find_home
from assay.declare.loader import load_fleet
from assay.declare.yaml import ParseCache
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.outcome import CheckVerdict
from assay.model.outside_documents import describe_mistakes, find_evidence_mistakes
from assay.model.specs.spec_document import StrictModel
from assay.validate.judging.evidence_cache import EvidenceCache, ReadingUnavailable
from assay.validate.recorded_fleet import record_declarations

SESSION_PARSE_CACHE = ParseCache()
SESSION_VARIABLES = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", CONTEXT_VARIABLE: "lab"}
"""Recordings are of the lab: so the examples that vouch for its nodes vouch for them."""
UNUSED_PLUGINS = ("cacheprovider", "unraisableexception", "threadexception")
"""pytest's own plugins that are not needed; two of them collect garbage, which takes half of a session's time."""


def write_recording(fleet: Fleet, evidence: Path, name: str) -> Path:
    """Write the newest document of `name` to `suites/recordings`, a node's under its spec's name.

    What is declared for it is kept beside it. Raises AssayError where there is no such document.
    """
    try:
        document = EvidenceCache(evidence).read_latest(name).evidence.as_json()
    except ReadingUnavailable as silence:
        raise AssayError(silence.reason, where=silence.where) from None
    for tool in (document["channels"].get("discovery", {}), *document["channels"].get("ports", {}).values()):
        if isinstance(tool, dict):
            tool.pop("command", None)  # names the machine that it was recorded on
    known = fleet.nodes.get(name)
    path = fleet.root / "suites" / "recordings" / f"{known.spec if known else name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    record_declarations(fleet, name)
    return path


def main() -> None:
    """Record the named documents."""
    parser = argparse.ArgumentParser(
        "python -m assay.validate.must_fail_recordings", description="Keep evidence as recordings."
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="a node, fabric-DESIGN or week-DESIGN")
    parser.add_argument("--fleet", type=Path, default=Path(), help="the fleet repository")
    parser.add_argument("--evidence", type=Path, help="folder of documents (default: the fleet's latest)")
    asked = parser.parse_args()
    try:
        fleet = load_fleet(asked.fleet.resolve())
        latest = asked.evidence or find_home(fleet.root).folder / "evidence" / "latest"
        for name in asked.names:
            path = write_recording(fleet, latest, name)
            sys.stderr.write(f"{name} → {path}\n")
    except AssayError as error:
        sys.exit(f"assay: {error}")


class MustFailCase(StrictModel):
    """A case that must make a check fail: changes to a recording on which the check passes.

    `leaves` maps a path (`probe/gpu/count`, channel first) to the leaf or branch that is put there; null takes it
    away. `edits` are replacements in what the tools of a fabric's scan printed, each of which must apply exactly once.
    `subject` is the part that is judged, "" for the node, rack or fabric itself. `says` must be in the reason.
    `read_check_recording` names the recording to change: that of a node spec, or `fabric-DESIGN`.
    """

    name: str
    subject: str = ""
    recording: str = ""
    leaves: dict[str, Any] = Field(default={})
    edits: list[list[str]] = Field(default=[])
    verdict: Literal["fail", "error", "skip"] = "fail"
    says: str


MAX_JUDGED_RECORDINGS = 8
"""Texts that a process remembers as judged: one takes 0.1 CPU s."""
_FILE = TypeAdapter(dict[str, list[MustFailCase]])


def read_must_fail_cases(folder: Path) -> dict[str, list[MustFailCase]]:
    """Return the cases of `folder/*.yaml` by check. Raises AssayError for a wrong file, or a check in two files."""
    cases: dict[str, list[MustFailCase]] = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            of_file = _FILE.validate_python(yaml.load(path.read_text(), Loader=yaml.CSafeLoader))
        except yaml.YAMLError as error:
            raise AssayError(f"cannot be read: {error}", where=str(path)) from None
        except ValidationError as error:
            raise AssayError(f"cannot be read: {describe_mistakes(error, 'the file')}", where=str(path)) from None
        twice = sorted(set(of_file) & set(cases))
        if twice:
            raise AssayError(f"{twice[0]} stands in another file already", where=str(path))
        cases |= of_file
    return cases


def read_check_recording(folder: Path, name: str) -> dict[str, Any]:
    """Return the recorded evidence document of a node spec, or of `fabric-DESIGN`. Raises AssayError for no such."""
    file = folder / f"{name}.json"
    text = file.read_text()
    if mistakes := _find_recording_mistakes(text):
        fix = "copy the newest evidence of a good node: .assay/evidence/latest/NODE.json"
        raise AssayError(f"the recording is no evidence document: {mistakes}", where=str(file), fix=fix)
    document: dict[str, Any] = json.loads(text)
    return document


@lru_cache(maxsize=MAX_JUDGED_RECORDINGS)
def _find_recording_mistakes(text: str) -> str:
    try:
        return find_evidence_mistakes(json.loads(text))
    except ValueError as error:
        return f"the file is no JSON: {error}"


def apply_case(document: dict[str, Any], case: MustFailCase) -> dict[str, Any]:
    """Return the document with a case's changes. Raises AssayError for one that has no effect.

    What does not change is shared with the document, since copying a whole recording costs more than judging it.
    """
    channels = document["channels"]
    for path, leaf in case.leaves.items():
        channels = _put_leaf(channels, tuple(path.split("/")), leaf)
    for old, new in case.edits:
        texts = [(path, text) for path, text in _list_printed_texts(channels) if old in text]
        if len(texts) != 1 or texts[0][1].count(old) != 1:
            raise AssayError(f"{case.name}: {old!r} is not once in what the tools printed", fix="record it anew")
        [(path_of_text, text)] = texts
        channels = _put_leaf(channels, path_of_text, text.replace(old, new))
    return {**document, "channels": channels}


def _list_printed_texts(channels: dict[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    """Return path and content of what the tools of a fabric's scan printed."""
    branches: dict[tuple[str, ...], Any] = {("discovery",): channels.get("discovery", {})}
    branches |= {("ports", name): branch for name, branch in channels.get("ports", {}).items()}
    texts = {(*path, "text", "value"): branch.get("text", {}).get("value") for path, branch in branches.items()}
    return [(path, text) for path, text in texts.items() if text is not None]


def _put_leaf(tree: dict[str, Any], path: tuple[str, ...], leaf: Any, above: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a tree with `leaf` at `path`, without that entry where `leaf` is None."""
    step = path[0]
    below = path[1:]
    so_far = (*above, path[0])
    if below:
        if step not in tree:
            raise AssayError(
                f"the recording has no {'/'.join((*above, *path))}", fix="record it anew, or correct the path"
            )
        return {**tree, step: _put_leaf(tree[step], below, leaf, so_far)}
    if tree.get(step) == leaf or (leaf is None and step not in tree):
        raise AssayError(f"{'/'.join(so_far)} is {leaf} in the recording already")
    return {key: value for key, value in tree.items() if key != step} if leaf is None else {**tree, step: leaf}


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
        heard, printed = ReportListener(), io.StringIO()
        with (
            _isolate_environment(),
            _share_parse_cache(),
            _unload_suites_after(sitting.suites),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            ended = pytest.main(_arguments(sitting, home, Path(folder)), plugins=[heard])
    lines = [line.strip() for line in printed.getvalue().splitlines() if line.strip()]
    silence = f"no outcome: pytest ended with {int(ended)}: {lines[-1] if lines else 'it said nothing'}"
    return [
        ObservedVerdict(expected, *heard.found.get((expected.check, expected.subject), ("", silence)))
        for expected in sitting.expected
    ]


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
            reason = getattr(report, "longrepr", None) or ""
            if isinstance(reason, tuple):  # pytest's own form of a skip: file, line, reason
                reason = str(reason[2]).removeprefix("Skipped: ")
            self.found[key] = (verdict, str(reason))


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
    ids = [f"{root / expected.check}[{expected.subject}]" for expected in sitting.expected]
    own = [
        "--import-mode=importlib",
        "-qs",
        "-p",
        "assay.validate.plugin",
        "-orequired_plugins=",
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


if __name__ == "__main__":
    main()
