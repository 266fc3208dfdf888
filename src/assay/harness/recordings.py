"""Recordings: evidence that every check passes on, and for every check what must make it fail."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from assay.model.errors import Trouble
from assay.model.spec import Strict


class MustFail(Strict):
    """One thing that must make a check fail, as changes to the recording that it passes on.

    `leaves` maps a path (`probe/gpu/count`, channel first) to the leaf or branch that is put there; null takes it
    away. `edits` are replacements in what the tools of a fabric's scan printed, each of which must apply exactly once.
    `subject` is the part that is judged, "" for the node, rack or fabric itself. `says` must be in the reason.
    `recording` names the recording that is changed, where several could be: a node spec's, or `fabric-DESIGN`.
    """

    name: str
    subject: str = ""
    recording: str = ""
    leaves: dict[str, Any] = Field(default={})
    edits: list[list[str]] = Field(default=[])
    verdict: Literal["fail", "error", "skip"] = "fail"
    says: str


_FILE = TypeAdapter(dict[str, list[MustFail]])


def must_fail(folder: Path) -> dict[str, list[MustFail]]:
    """Return what `folder/*.yaml` say, by check. Raises Trouble for a file that does not fit or repeats a check."""
    found: dict[str, list[MustFail]] = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            said = _FILE.validate_python(yaml.safe_load(path.read_text()))
        except (yaml.YAMLError, ValidationError) as error:
            raise Trouble(f"cannot be read: {error}", where=str(path)) from None
        twice = sorted(set(said) & set(found))
        if twice:
            raise Trouble(f"{twice[0]} stands in another file already", where=str(path))
        found |= said
    return found


def recording(folder: Path, name: str) -> dict[str, Any]:
    """Return the evidence document that is recorded under a name: a node spec's or `fabric-DESIGN`."""
    document: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return document


def changed(document: dict[str, Any], case: MustFail) -> dict[str, Any]:
    """Return the document with a case's changes. Raises Trouble for a change that changes nothing."""
    changed_one = copy.deepcopy(document)
    for path, leaf in case.leaves.items():
        _put(changed_one["channels"], path, leaf)
    for old, new in case.edits:
        texts = [text for text in _texts(changed_one["channels"]) if old in text["value"]]
        if len(texts) != 1 or texts[0]["value"].count(old) != 1:
            raise Trouble(f"{case.name}: {old!r} is not once in what the tools printed", fix="record it anew")
        texts[0]["value"] = texts[0]["value"].replace(old, new)
    return changed_one


def _texts(channels: dict[str, Any]) -> list[dict[str, str]]:
    """Return what the tools of a fabric's scan printed."""
    said = [channels.get("discovery", {}), *channels.get("ports", {}).values()]
    return [branch["text"] for branch in said if "value" in branch.get("text", {})]


def _put(tree: dict[str, Any], path: str, leaf: Any) -> None:
    *above, last = path.split("/")
    for step in above:
        if step not in tree:
            raise Trouble(f"the recording has no {path}", fix="record it anew, or correct the path")
        tree = tree[step]
    if tree.get(last) == leaf or (leaf is None and last not in tree):
        raise Trouble(f"{path} is {leaf} in the recording already")
    if leaf is None:
        del tree[last]
    else:
        tree[last] = leaf
