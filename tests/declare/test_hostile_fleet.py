"""Whatever stands in a fleet's files, `check` lists problems: it never raises, and never takes long."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from assay.declare.check import check_repository
from assay.declare.loader import load_fleet
from assay.model.errors import AssayError
from assay.model.specs.spec_document import SPEC_KINDS
from tests.support.places import SMALLEST

WORDS = [
    "all",
    "vars",
    "hosts",
    "children",
    "n1",
    "n[1:3]",
    "n[1:",
    "../n",
    "pool-a",
    "kind",
    "name",
    "states",
    "classes",
    "components",
    "node_spec",
    "serial_number",
    "u",
    "hca_guids",
    "ansible_group_priority",
    "bmc_credentials",
]
NAMES = st.sampled_from(["", *WORDS])
LEAVES = (
    st.sampled_from([None, True, 0, -1, 10**30, 1.5, "", "x", "small", "production", "\0", *SPEC_KINDS]) | st.dates()
)
DATA = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.integers(0, 3), inner, max_size=5),
    max_leaves=25,
)


@contextmanager
def fleet_with(name: str, content: bytes) -> Iterator[Path]:
    """Give the smallest fleet with one file replaced; hypothesis needs a new one for each example."""
    with TemporaryDirectory() as folder:
        root = Path(folder) / "fleet"
        shutil.copytree(SMALLEST, root)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
        yield root


@given(DATA)
def test_any_data_in_an_inventory_gives_problems_or_nodes(data: object) -> None:
    with fleet_with("inventory/pool.yml", yaml.safe_dump(data).encode()) as root:
        _judge(root)


@given(st.sampled_from(["node", "bundle", "policy", "faults", "checks", "profile"]), st.data())
def test_any_data_in_a_spec_gives_problems_or_a_spec(name: str, draw: st.DataObject) -> None:
    document = yaml.safe_load((SMALLEST / f"specs/{name}.yaml").read_text())
    key = draw.draw(st.sampled_from(sorted(document)))
    document[key] = draw.draw(DATA)
    with fleet_with(f"specs/{name}.yaml", yaml.safe_dump(document).encode()) as root:
        _judge(root)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("inventory/pool.yml", b"a:\n  hosts:\n    n[0:9999999][0:9999999]: {}\n"),
        ("inventory/pool.yml", b"a:\n  hosts:\n    " + b"n" * 5000 + b": {}\n"),
        ("inventory/pool.yml", b"../../etc:\n  hosts:\n    ../../../etc/passwd: {}\n"),
        ("inventory/group_vars/pool-a.yml", b"- 1\n"),
        ("inventory/host_vars/n1.yml", b"{1: 2, null: 3}\n"),
        ("specs/x.yaml", b"\x00\x01\x02"),
        ("specs/x.yaml", b"kind: [NodeSpec]\n"),
        ("specs/bundle.yaml", (SMALLEST / "specs/bundle.yaml").read_bytes().replace(b"firmware/bmc.bin", b"../../x")),
        ("specs/bundle.yaml", (SMALLEST / "specs/bundle.yaml").read_bytes().replace(b"firmware/bmc.bin", b'"a\\0b"')),
        ("suites/test_deep.py", b"x = " + b"(" * 5000),
        ("suites/test_deep.py", b"x = " + b"-" * 100_000 + b"1"),
        ("suites/test_bytes.py", b"\xff\xfe"),
    ],
)
def test_each_hostile_file_is_a_problem_within_a_second(name: str, content: bytes) -> None:
    with fleet_with(name, content) as root:
        begun = time.process_time()
        found = check_repository(root).problems
        assert time.process_time() - begun < 1
    assert found
    assert all(problem.message for problem in found)


def test_a_link_that_leads_in_a_circle_and_a_pipe_are_passed_over(tmp_path: Path) -> None:
    import os

    root = tmp_path / "fleet"
    shutil.copytree(SMALLEST, root)
    os.mkfifo(root / "inventory" / "pipe.yml")
    os.mkfifo(root / "specs" / "pipe.yaml")
    (root / "specs" / "loop.yaml").symlink_to("loop.yaml")
    assert load_fleet(root).nodes
    assert [problem.code for problem in check_repository(root).problems] == ["ASY0231"] * 3


def _judge(root: Path) -> None:
    found = check_repository(root).problems
    assert all(problem.line >= 0 and problem.message and problem.code.startswith("ASY") for problem in found)
    try:
        load_fleet(root)
    except AssayError:
        assert found
