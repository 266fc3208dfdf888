"""Recordings: evidence on which every check passes, and for every check the changes that must make it fail.

`python -m assay.validate.must_fail_recordings n0003 fabric-compute` stores the last evidence as
recordings.

The first document of a node spec is what every check must pass on; `suites/recordings/*.yaml` says how each check is
made to fail on it. Record anew when the probe, the BMC reader or the specs learn something.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from assay.declare.fleet_loader import load_fleet
from assay.declare.home import find_home
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.spec_document import StrictModel
from assay.validate.judging.evidence_cache import EvidenceCache, ReadingUnavailable


def write_recording(fleet: Fleet, evidence: Path, name: str) -> Path:
    """Write the newest document of `name` to `suites/recordings`, a node's under its spec's name. Raises AssayError."""
    try:
        document = EvidenceCache(evidence).read_latest(name).evidence.as_json()
    except ReadingUnavailable as silence:
        raise AssayError(silence.reason, where=silence.where) from None
    for said in (document["channels"].get("discovery", {}), *document["channels"].get("ports", {}).values()):
        if isinstance(said, dict):
            said.pop("command", None)  # names the machine that it was recorded on
    known = fleet.nodes.get(name)
    path = fleet.root / "suites" / "recordings" / f"{known.spec if known else name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
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


_FILE = TypeAdapter(dict[str, list[MustFailCase]])


def read_must_fail_cases(folder: Path) -> dict[str, list[MustFailCase]]:
    """Return the cases of `folder/*.yaml` by check. Raises AssayError for a wrong file, or a check in two files."""
    found: dict[str, list[MustFailCase]] = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            said = _FILE.validate_python(yaml.load(path.read_text(), Loader=yaml.CSafeLoader))
        except (yaml.YAMLError, ValidationError) as error:
            raise AssayError(f"cannot be read: {error}", where=str(path)) from None
        twice = sorted(set(said) & set(found))
        if twice:
            raise AssayError(f"{twice[0]} stands in another file already", where=str(path))
        found |= said
    return found


def read_check_recording(folder: Path, name: str) -> dict[str, Any]:
    """Return the recorded evidence document of a node spec, or of `fabric-DESIGN`."""
    document: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return document


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
    said: dict[tuple[str, ...], Any] = {("discovery",): channels.get("discovery", {})}
    said |= {("ports", name): branch for name, branch in channels.get("ports", {}).items()}
    texts = {(*path, "text", "value"): branch.get("text", {}).get("value") for path, branch in said.items()}
    return [(path, text) for path, text in texts.items() if text is not None]


def _put_leaf(tree: dict[str, Any], path: tuple[str, ...], leaf: Any, above: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a tree with `leaf` at `path`, without that entry where `leaf` is None."""
    step, below, so_far = path[0], path[1:], (*above, path[0])
    if below:
        if step not in tree:
            raise AssayError(
                f"the recording has no {'/'.join((*above, *path))}", fix="record it anew, or correct the path"
            )
        return {**tree, step: _put_leaf(tree[step], below, leaf, so_far)}
    if tree.get(step) == leaf or (leaf is None and step not in tree):
        raise AssayError(f"{'/'.join(so_far)} is {leaf} in the recording already")
    return {key: value for key, value in tree.items() if key != step} if leaf is None else {**tree, step: leaf}


if __name__ == "__main__":
    main()
