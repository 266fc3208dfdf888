"""Editors judge by the exported JSON Schemas, assay by its models: on a corpus of files they say the same.

A file that fits its schema and contradicts itself (ASY0004 and the other codes of meaning) is for the reader alone.
The corpus: the example fleet's specs, each good; and each of them spoilt at every entry in every way below.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from assay.declare.inventory_reader import open_disk_source, read_inventory
from assay.declare.repository.tree import WorkingFolder
from assay.declare.schemas import build_schemas, to_kebab_case
from assay.declare.spec_reader import RefusedSpec, read_specs
from assay.declare.yaml import ParseCache, YamlDocument, parse_yaml
from assay.model.specs.node_settings import NodeVariables
from assay.model.specs.spec_document import SPEC_KINDS
from tests.support.places import ROOT

EXAMPLES = sorted((ROOT / "specs").rglob("*.yaml"))
SHAPE = {"ASY0002", "ASY0003"}
HEAD = ("kind", "name", "extends")
SCHEMAS = cache(build_schemas)
SPOILERS: dict[str, Callable[[Any], Any]] = {
    "text": lambda _: "text!",
    "number": lambda _: -7,
    "large": lambda _: 10**9,
    "fraction": lambda _: 0.5,
    "truth": lambda _: True,
    "nothing": lambda _: None,
    "list": lambda _: [],
    "mapping": lambda _: {"strange": 1},
}

RICHER = {
    "GoldenDigests": {
        "kind": "GoldenDigests",
        "name": "h100",
        "owner": "us",
        "sources": ["recorded"],
        "computed_by": {
            "gpu": "H100",
            "driver": "580.65.06",
            "engine": "jax 0.10.2",
            "backend": "cuda",
            "runtime": "12.9",
            "program": "ab12",
        },
        "nodes": ["n1", "n2"],
        "digests": {"sort": {"0": ["0123abcd", "89abcdef"], "7": ["01234567"]}, "cast": {"0": ["fedcba98"]}},
    },
    "KnownIssues": {
        "kind": "KnownIssues",
        "name": "known",
        "issues": [
            {
                "issue": "https://git.example/issues/1",
                "match": {"check": "suites/*", "subject": "a/n1/*", "node": "n1", "pool": "a", "rack": "r01"},
                "reason": "it is counted twice",
                "owner": "us",
                "expires": "2027-02-01",
            }
        ],
    },
    "TicketRoute": {
        "kind": "TicketRoute",
        "name": "all-at-once",
        "markdown": {"folder": "tickets"},
        "github": {
            "repository": "acme/fabric",
            "credentials": {"env": "TOKEN"},
            "api": "https://git/api",
            "label": "x",
        },
        "jira": {
            "url": "http://localhost:8080",
            "project": "DC1",
            "credentials": {"file": "/etc/assay/jira"},
            "version": 3,
            "issue_type": "Task",
            "close_by": "Done",
        },
        "webhook": {"url": "https://hooks.example/assay", "credentials": {"command": ["pass", "assay"]}},
    },
}
"""Kinds whose first example shows a part of them only."""


class Memory:
    """A tree of some specs, held in memory. `parsed` is what its files hold: their content is only their names."""

    def __init__(self, *documents: Any) -> None:
        self.content = [f"specs/{number}.yaml" for number in range(len(documents))]
        read = map(YamlDocument, self.content, documents)
        self.parsed = {hashlib.sha256(one.file.encode()).digest(): one for one in read}

    def files(self, folder: str) -> list[str]:
        return [path for path in self.content if path.startswith(folder)]

    def read(self, path: str, most: int) -> bytes:
        return path.encode()


@cache
def validator(kind: str) -> Any:
    """Return a validator that judges a part only once: a spoilt document shares all but one part with its original."""
    fitting: dict[tuple[str, int], Any] = {}  # holds the parts too, so that no other gets the id of one

    def judge_once(judge: Any, ref: str, part: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
        if (ref, id(part)) not in fitting:
            errors = [*jsonschema.Draft202012Validator.VALIDATORS["$ref"](judge, ref, part, schema)]
            if not errors:
                fitting[ref, id(part)] = part
            yield from errors

    kept = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"$ref": judge_once})
    return kept(SCHEMAS()[f"{to_kebab_case(kind)}.json"])


def agree(*documents: Any, fit: bool | None = None, read: ParseCache | None = None) -> bool:
    """Whether schema (`fit`) and reader say the same of the last document's shape; `read` holds the others."""
    tree, specs = Memory(*documents), dict(read.specs) if read else {}
    _, refused = read_specs(tree, ParseCache(tree.parsed | (read.documents if read else {}), specs=specs))
    last = f"specs/{len(documents) - 1}.yaml"
    codes = {problem.code for one in refused for problem in one.problems if problem.file == last}
    return not codes & SHAPE if (fits(documents[-1]) if fit is None else fit) else bool(codes)


def fits(document: Any) -> bool:
    """Whether a document fits its schema."""
    fit: bool = validator(document["kind"]).is_valid(document)
    return fit


def spoilt(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield the document with one entry replaced, left out or added, once for each entry and each way.

    Of entries that stand at the same place of their schema beside the same others, the first stands for all.
    """
    for path in {place: path for path, place in reversed([*paths(document)])}.values():
        if path in ((), ("kind",)):
            continue
        for name, spoil in SPOILERS.items():
            yield f"{'.'.join(map(str, path))} = {name}", changed(document, path, spoil)
        yield f"without {'.'.join(map(str, path))}", without(document, path)
    yield "with a strange key", {**document, "strange": 1}


def paths(data: Any, above: tuple[Any, ...] = (), place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Yield every path, and its place: each entry with those beside it, whatever the number or name of alike ones."""
    yield above, (*place, type(data))
    if isinstance(data, dict):
        beside = "any name" if is_alike(data) else tuple(data)
        for step, below in data.items():
            yield from paths(below, (*above, step), (*place, beside, "" if is_alike(data) else step))
    elif isinstance(data, list):
        for step, below in enumerate(data):
            yield from paths(below, (*above, step), (*place, "any number"))


def is_alike(data: Any) -> bool:
    """Whether a mapping names entries of one form."""
    return isinstance(data, dict) and len(data) > 2 and all(isinstance(one, dict) for one in data.values())


def example(kind: str, most: int = 4) -> Any:
    """Return the first example of a kind, its lists and mappings of alike entries cut to `most`."""
    return RICHER.get(kind) or short(next(data for data in map(loaded, EXAMPLES) if data["kind"] == kind), most)


def short(data: Any, most: int) -> Any:
    if isinstance(data, list):
        return [short(one, most) for one in data[: max(1, most // 2)]]
    keys = list(data)[: most if is_alike(data) else None] if isinstance(data, dict) else []
    return {key: short(data[key], most) for key in keys} if isinstance(data, dict) else data


def changed(document: Any, path: tuple[Any, ...], spoil: Callable[[Any], Any]) -> Any:
    """Return a copy of a document with one entry replaced, whose other parts are the document's own."""
    if not path:
        return spoil(document)
    twin = copy.copy(document)
    twin[path[0]] = changed(document[path[0]], path[1:], spoil)
    return twin


def without(document: Any, path: tuple[Any, ...]) -> Any:
    return changed(document, path[:-1], lambda holder: left_out(holder, path[-1]))


def left_out(holder: Any, step: Any) -> Any:
    twin = copy.copy(holder)
    del twin[step]
    return twin


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_both_accept_every_example(path: Path) -> None:
    document = loaded(path)
    assert fits(document)
    assert agree(document)


@pytest.mark.parametrize("kind", sorted(SPEC_KINDS))
def test_both_refuse_the_same_spoilt_files(kind: str) -> None:
    document = example(kind)
    bad = dict(spoilt(document))
    fit = {name: fits(one) for name, one in bad.items()}
    assert [name for name, one in bad.items() if not agree(one, fit=fit[name])] == []
    assert sum(not one for one in fit.values()) > 40  # the corpus is no list of good files


@pytest.mark.parametrize("kind", sorted(SPEC_KINDS))
def test_what_a_spec_lays_over_another_is_judged_alike(kind: str) -> None:
    base = example(kind, 3)
    layer = {**base, "name": "layer", "extends": base["name"]}
    assert fits(layer)
    bad = {name: one for name, one in spoilt(layer) if one.get("extends") == base["name"]}
    read_specs(tree := Memory(base), read := ParseCache(tree.parsed))
    assert [name for name, one in bad.items() if not agree(base, own_part(one, layer), read=read)] == []


def own_part(changed: Any, layer: Any) -> Any:
    """Return what a layer says itself: its head, and what is not as in the spec below it."""
    return {key: one for key, one in changed.items() if key in HEAD or one is not layer.get(key)}


def test_parts_that_a_spec_changes_by_name_are_judged_alike() -> None:
    base = example("FirmwareBundle")
    parts = {part["name"]: {key: part[key] for key in part if key != "name"} for part in base["components"][:2]}
    layer = {**base, "name": "layer", "extends": base["name"], "components": parts}
    assert fits(layer)
    bad = {name: one for name, one in spoilt(layer) if one.get("extends") == base["name"]}
    read_specs(tree := Memory(base), read := ParseCache(tree.parsed))
    assert [name for name, one in bad.items() if not agree(base, one, read=read)] == []
    assert sum(not fits(one) for one in bad.values()) > 40


@pytest.mark.parametrize("name", ["h100-a.yml", "byo-b.yml"])
def test_an_inventory_s_hosts_are_judged_alike(name: str, tmp_path: Path) -> None:
    document = yaml.safe_load((ROOT / "inventory" / name).read_text())
    pool, host = next(iter(document)), next(iter(document[next(iter(document))]["hosts"]))
    check = jsonschema.Draft202012Validator(SCHEMAS()["inventory.json"])
    assert check.is_valid(document)
    for label, bad in spoilt({"kind": "", **document[pool]["hosts"][host]}):
        if label.startswith(("without", "with")):
            continue  # a variable may stand in another layer, and others are Ansible's own business
        del bad["kind"]
        twin = {pool: {"hosts": {host: bad}}}
        variables = {**document[pool]["vars"], **bad}
        assert check.is_valid(twin) == reads(variables, bad), label


def reads(variables: dict[str, Any], changed: dict[str, Any]) -> bool:
    """Whether the reader takes a host's variables."""
    from pydantic import ValidationError

    try:
        NodeVariables.model_validate(variables)
    except ValidationError as error:
        return all(found["type"] == "value_error" for found in error.errors())
    return True


@cache
def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_both_read_the_same_yaml() -> None:
    for path in EXAMPLES:
        assert parse_yaml(path.read_bytes(), path.name).data == loaded(path)
    for document in (example(kind) for kind in SPEC_KINDS):
        assert parse_yaml(json.dumps(document).encode(), "").data == document
    for name, spoil in SPOILERS.items():
        assert parse_yaml(json.dumps({name: spoil("")}).encode(), "").data == {name: spoil("")}
    inventory, problems = read_inventory([open_disk_source(ROOT / "inventory", ROOT)])
    assert (len(inventory.hosts), problems) == (20, [])
    specs, refused = read_specs(WorkingFolder(ROOT))
    assert (len(specs), refused) == (len(EXAMPLES), list[RefusedSpec]())
