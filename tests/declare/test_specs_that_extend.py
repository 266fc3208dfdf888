"""A spec may be laid over one other: mappings merge, lists stand whole, null takes out, each value has its line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.declare.check import check_repository
from assay.declare.loader import load_fleet
from assay.declare.repository.tree import WorkingFolder
from assay.declare.spec_reader import UNSHARED_KINDS, list_merged_entries, merge_specs, read_specs
from assay.declare.yaml import ParseCache, YamlDocument, parse_yaml
from tests.declare.rules.cases.firmware_bundles import SHA256, TWO
from tests.support.places import ROOT, SMALLEST

Write = Callable[[Mapping[str, "str | None"]], Path]
LARGE = """kind: NodeSpec
name: large
extends: small
gpus: {pci: ["0000:1b:00.0", "0000:1c:00.0"]}
limits:
  gpu_temperature: {value: 80}
"""
DATA = st.recursive(
    st.integers(0, 3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
MAPPING = st.dictionaries(st.sampled_from("abc"), DATA, max_size=3)
PART = st.dictionaries(st.sampled_from(["version", "reset", "after"]), DATA, max_size=2)
PATCH = st.dictionaries(
    st.sampled_from("abc"),
    PART | st.none() | st.builds(lambda part, name: {**part, "name": name}, PART, st.sampled_from("de")),
    max_size=3,
)
NEWER = """kind: FirmwareBundle
name: newer
extends: bundle
components:
  bios: {version: "3", order: 3}
"""


def test_a_spec_says_only_what_differs(fleet_with: Write) -> None:
    specs = load_fleet(fleet_with({"specs/large.yaml": LARGE})).node_specs
    large, small = specs["large"], specs["small"]
    assert (large.gpus.model, large.gpus.count) == (small.gpus.model, 2)
    assert (large.limits["gpu_temperature"].value, large.limits["gpu_temperature"].source) == (80, "datasheet")
    assert large.psus == small.psus


def test_each_value_is_found_in_the_file_that_says_it(fleet_with: Write) -> None:
    lines = load_fleet(fleet_with({"specs/large.yaml": LARGE})).lines
    assert lines["NodeSpec/large", "gpus.pci"] == "specs/large.yaml:4"
    assert lines["NodeSpec/large", "gpus.model"] == "specs/node.yaml:5"
    assert lines["NodeSpec/large", "limits.gpu_temperature.value"] == "specs/large.yaml:6"
    assert lines["NodeSpec/large", "limits.gpu_temperature.source"] == "specs/node.yaml:17"
    assert lines["NodeSpec/large", "gpus.pci.1"] == "specs/large.yaml:4"


def test_null_takes_an_entry_out(fleet_with: Write) -> None:
    text = LARGE.replace("{value: 80}", "null")
    fleet = load_fleet(fleet_with({"specs/large.yaml": text}))
    assert "gpu_temperature" not in fleet.node_specs["large"].limits
    assert ("NodeSpec/large", "limits.gpu_temperature") not in fleet.lines


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("{value: 80}", "{value: hot}", "specs/large.yaml:6:21"),
        ("{value: 80}", "{valu: 80}", "specs/large.yaml:6:21"),
        ("gpus: {", "nvme: {size_gb: null}\ngpus: {", "specs/large.yaml"),
        ("limits:\n  gpu_temperature", "limits:\n  nothing: null\n  gpu_temperature", "specs/large.yaml:6:3"),
    ],
)
def test_a_mistake_in_either_file_is_told_where_it_stands(fleet_with: Write, old: str, new: str, where: str) -> None:
    found = check_repository(fleet_with({"specs/large.yaml": LARGE.replace(old, new)})).problems
    assert [problem.where.startswith(where) for problem in found] == [True]
    assert found[0].code == "ASY0003"


def test_a_mistake_of_the_base_is_told_once(fleet_with: Write) -> None:
    node = (SMALLEST / "specs/node.yaml").read_text().replace("fans: 1", "fans: one")
    found = check_repository(fleet_with({"specs/large.yaml": LARGE, "specs/node.yaml": node})).problems
    assert [(problem.where, problem.code) for problem in found] == [("specs/node.yaml:10:1", "ASY0003")]


def test_a_base_that_is_no_yaml_is_all_that_is_told(fleet_with: Write) -> None:
    found = check_repository(fleet_with({"specs/large.yaml": LARGE, "specs/node.yaml": "a: 1\na: 2\n"})).problems
    assert [problem.code for problem in found] == ["ASY0001"]


def test_a_chain_of_three_takes_the_nearest_word(fleet_with: Write) -> None:
    huge = "kind: NodeSpec\nname: huge\nextends: large\nfans: 4\n"
    fleet = load_fleet(fleet_with({"specs/large.yaml": LARGE, "specs/huge.yaml": huge}))
    spec = fleet.node_specs["huge"]
    assert (spec.fans, spec.gpus.count, spec.cpu_threads) == (4, 2, 2)
    assert fleet.lines["NodeSpec/huge", "cpu_threads"] == "specs/node.yaml:12"


@given(MAPPING, MAPPING)
def test_a_layer_s_own_words_always_count(under: dict[str, Any], over: dict[str, Any]) -> None:
    documents = [_document(over, "over"), _document(under, "under")]
    result = merge_specs(documents)
    assert set(result) == {*under, *over}
    for key, value in over.items():
        if not isinstance(value, dict):
            assert result[key] == value


@given(MAPPING, MAPPING)
def test_the_entries_are_those_of_the_result(under: dict[str, Any], over: dict[str, Any]) -> None:
    documents = [_document(over, "over"), _document(under, "under")]
    found = {path: where for path, _, where in list_merged_entries(documents)}
    assert set(found) == set(_paths((), merge_specs(documents)))
    assert all(found[(key,)].startswith("over:") for key in over)


@given(MAPPING)
def test_nothing_laid_over_a_spec_leaves_it_as_it_is(under: dict[str, Any]) -> None:
    assert merge_specs([_document({}, "over"), _document(under, "under")]) == under


@pytest.fixture
def newer(fleet_with: Write) -> Path:
    """A fleet with a bundle that changes one component of another one."""
    return fleet_with({"specs/bundle.yaml": TWO, "specs/newer.yaml": NEWER})


def test_one_component_of_a_bundle_is_changed_by_its_name(newer: Path) -> None:
    bundles = load_fleet(newer).bundles
    old, new = bundles["bundle"].components, bundles["newer"].components
    assert [(part.name, part.version, part.order) for part in new] == [("bmc", "1", 1), ("bios", "3", 3)]
    assert new[0] == old[0]
    assert new[1].model_copy(update={"version": "2", "order": 2}) == old[1]


def test_each_value_of_a_changed_component_is_found_in_its_file(newer: Path) -> None:
    lines = load_fleet(newer).lines
    assert lines["FirmwareBundle/newer", "components.1.version"] == "specs/newer.yaml:5"
    assert lines["FirmwareBundle/newer", "components.1.reset"] == "specs/bundle.yaml:19"
    assert lines["FirmwareBundle/newer", "components.0.version"] == "specs/bundle.yaml:6"


BY_NAME: dict[str, tuple[str, list[str]]] = {
    "null takes a component out": ("  bios: null\n", ["bmc"]),
    "a new name adds one at the end": (
        (
            f"  fpga: {{version: '1', inventory: [F], artifact: {{url: a, sha256: {SHA256}}},\n"
            "    push: simple, reset: ac, order: 9}\n"
        ),
        ["bmc", "bios", "fpga"],
    ),
    "a new name of an old one": ("  bios: {name: uefi}\n", ["bmc", "uefi"]),
    "nothing": ("  {}\n", ["bmc", "bios"]),
}


@pytest.mark.parametrize("name", BY_NAME)
def test_components_come_and_go_by_name(name: str, fleet_with: Write) -> None:
    text, expected = BY_NAME[name]
    layer = f"kind: FirmwareBundle\nname: newer\nextends: bundle\ncomponents:\n{text}"
    root = fleet_with({"specs/bundle.yaml": TWO, "specs/newer.yaml": layer})
    assert [part.name for part in load_fleet(root).bundles["newer"].components] == expected


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('"3"', "3", "specs/newer.yaml:5:10"),
        ("bios:", "bioz:", "specs/newer.yaml:5:3"),
        ("bios: {", "cpld: null\n  bios: {", "specs/newer.yaml:5:3"),
        ("version:", "versio:", "specs/newer.yaml:5:10"),
    ],
)
def test_a_mistake_in_a_changed_component_is_told_where_it_stands(newer: Path, old: str, new: str, where: str) -> None:
    (newer / "specs/newer.yaml").write_text(NEWER.replace(old, new, 1))
    found = [problem for problem in check_repository(newer).problems if problem.code == "ASY0003"]
    assert found[0].where.startswith(where)


def test_a_list_over_a_list_still_stands_whole(newer: Path) -> None:
    (newer / "specs/newer.yaml").write_text(
        TWO.replace("name: bundle", "name: newer\nextends: bundle").split("  - name: bios")[0]
    )
    assert [part.name for part in load_fleet(newer).bundles["newer"].components] == ["bmc"]


@given(st.lists(PART, max_size=3), PATCH, PATCH)
def test_the_entries_of_named_parts_are_those_of_the_result(
    parts: list[dict[str, Any]], first: dict[str, Any], second: dict[str, Any]
) -> None:
    documents = [_bundle([{**part, "name": name} for part, name in zip(parts, "abc", strict=False)], 0)]
    for number, patch in enumerate((first, second), 1):
        names = [part["name"] for part in merge_specs(documents)["components"]]
        assume(len(set(names)) == len(names))
        documents.insert(
            0, _bundle({key: one for key, one in patch.items() if one is not None or key in names}, number)
        )
    merged = merge_specs(documents)
    assert {path for path, _, _ in list_merged_entries(documents)} == set(_paths((), merged))


def _bundle(components: Any, number: int) -> YamlDocument:
    return _document({"kind": "FirmwareBundle", "components": components}, f"file{number}")


def _document(data: dict[str, Any], name: str) -> YamlDocument:
    import json

    return parse_yaml(json.dumps(data).encode(), name)


def _paths(path: tuple[Any, ...], data: Any) -> list[tuple[Any, ...]]:
    steps = data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    return [path, *(below for step in steps for below in _paths((*path, step), data[step]))]


def test_fleets_that_share_what_was_read_find_the_lines_of_a_spec_once() -> None:
    shared = ParseCache()
    first, second = (read_specs(WorkingFolder(ROOT), shared)[0] for _ in range(2))
    kept = [(one, other) for one, other in zip(first, second, strict=True) if one.spec.kind not in UNSHARED_KINDS]
    assert len(kept) > 20
    assert all(one.lines is other.lines for one, other in kept)
