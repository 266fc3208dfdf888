"""What rules say of racks, of hosts in several places and of images: more than the smallest cases show."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from assay.declare.check import check_repository
from assay.declare.rules.firmware_bundles import hash_artifact
from tests.declare.rules.cases.case import BUNDLE, FABRIC, NODE, POOL, pool
from tests.declare.rules.cases.provisioning_rules import delivery

Write = Callable[[Mapping[str, "str | None"]], Path]
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 3\n"
ABC = hashlib.sha256(b"abc").hexdigest()


def told(root: Path) -> list[str]:
    return [f"{problem.code} {problem.message}" for problem in check_repository(root).problems]


def test_a_pointer_to_the_qualified_image_is_as_good_as_the_image(fleet_with: Write) -> None:
    assert told(fleet_with({"firmware/bmc.bin": POINTER.format(ABC)})) == []


def test_a_pointer_to_another_image_is_not(fleet_with: Write) -> None:
    (found,) = told(fleet_with({"firmware/bmc.bin": POINTER.format("0" * 64)}))
    assert found == f"ASY0041 bmc: firmware/bmc.bin has the sha256 {'0' * 64}"


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        (POINTER, True),
        (POINTER.replace("oid", "ext-0-gzip sha256:1\noid"), True),
        (POINTER.replace("git-lfs", "hawser"), False),
        (POINTER + "more", False),
        (POINTER.replace("size 3", "size x"), False),
        ("\n" + POINTER, False),
        (POINTER.replace("size", "x " + "y" * 1024 + "\nsize"), False),
    ],
)
def test_only_what_git_lfs_writes_is_a_pointer(text: str, pointer: bool, tmp_path: Path) -> None:
    file = tmp_path / "image"
    file.write_text(text.format(ABC))
    assert (hash_artifact(file) == ABC) is pointer


@pytest.mark.parametrize("empty", ["null", '""'])
def test_a_digest_that_says_nothing_is_a_missing_one(empty: str, fleet_with: Write) -> None:
    (found,) = told(fleet_with({"specs/bundle.yaml": BUNDLE.replace(ABC, empty)}))
    assert found.startswith("ASY0048 an artifact without its sha256")


def test_a_missing_digest_hides_no_other_mistake(fleet_with: Write) -> None:
    text = BUNDLE.replace(f", sha256: {ABC}", "").replace("order: 1", "order: one")
    assert [said[:7] for said in told(fleet_with({"specs/bundle.yaml": text}))] == ["ASY0048", "ASY0003"]


def test_a_node_in_the_unit_of_a_switch_overlaps_it(fleet_with: Write) -> None:
    design = FABRIC.replace("rails: 1", "site: lab\nrails: 1").replace("rack: n1, u: 2", "rack: r1, u: 2")
    said = "ASY0039 the switch 0x0000000000000002 stands in U2 of lab r1, but n2 fills U2"
    assert said in told(fleet_with({"specs/fabric.yaml": design}))


def test_a_tall_node_overlaps_every_node_that_it_reaches(fleet_with: Write) -> None:
    third = "    n3: {node_spec: small, profile: managed, site: lab, rack: r1, u: 3, serial_number: S3}\n"
    tall = NODE.replace("name: small", "name: tall").replace("fans:", "height_u: 4\nfans:")
    root = fleet_with({"inventory/pool.yml": POOL.replace("small", "tall", 1) + third, "specs/tall.yaml": tall})
    assert told(root) == [
        "ASY0039 n2 stands in U2 of lab r1, but n1 fills U1 to U4",
        "ASY0039 n3 stands in U3 of lab r1, but n1 fills U1 to U4",
    ]


def test_two_nodes_in_one_unit_are_told_of_once(fleet_with: Write) -> None:
    assert [said[:7] for said in told(fleet_with(pool("u: 2", "u: 1")))] == ["ASY0033"]


def test_overlapping_ranges_are_told_of_once_for_all_their_nodes(fleet_with: Write) -> None:
    ranges = "pool-b:\n  hosts:\n    m[1:9]: {rack: r2}\n    m[5:9]: {rack: r3}\n"
    root = fleet_with({"inventory/ranges.yml": ranges})
    (found,) = [said for said in told(root) if said.startswith("ASY0037")]
    assert found == "ASY0037 m5, m6, m7 and 2 more: rack is given in inventory/ranges.yml:3 too"


def test_a_host_listed_again_without_variables_is_no_duplicate(fleet_with: Write) -> None:
    root = fleet_with({"inventory/more.yml": "racks:\n  hosts: {n2: }\npool-a:\n  vars: {pool: pool-a}\n"})
    assert told(root) == []


@pytest.mark.parametrize(("top_u", "wrong"), [(1, False), (2, True), (None, False)])
def test_a_delivered_machine_fills_as_many_units_as_its_node_spec(
    top_u: int | None, wrong: bool, fleet_with: Write
) -> None:
    ((file, text),) = delivery().items()
    listed = str(text).replace("u: 1}", f"u: 1, top_u: {top_u}}}" if top_u else "u: 1}")
    assert told(fleet_with({file: listed})) == ["ASY0363 n9 fills 2 units, U1 to U2, not 1"] * wrong
