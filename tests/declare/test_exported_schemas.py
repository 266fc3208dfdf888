"""Editors check by the exported schemas: they must be fresh, named in every file, and agree with us."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from assay.declare.schemas import build_schemas, format_schema, to_kebab_case, write_schemas
from tests.support.places import ROOT

SPECS = sorted((ROOT / "specs").rglob("*.yaml"))
INVENTORIES = sorted((ROOT / "inventory").glob("*.yml"))
SCHEMAS = build_schemas()


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_committed_schema_is_the_one_that_the_models_give(name: str) -> None:
    committed = ROOT / "specs" / "schemas" / name
    assert committed.read_text(encoding="utf-8") == format_schema(SCHEMAS[name]), (
        "run `python -m assay.declare.schemas`"
    )


def test_no_schema_is_left_over() -> None:
    assert {path.name for path in (ROOT / "specs" / "schemas").iterdir()} == set(SCHEMAS)


@pytest.mark.parametrize("path", SPECS + INVENTORIES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_file_names_its_schema_in_its_first_line_and_fits_it(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    schema = (path.parent / first.partition("=")[2]).resolve()
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert schema.name == _expected(path, document)
    validator = jsonschema.Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))
    assert jsonschema.exceptions.best_match(validator.iter_errors(document)) is None


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_every_schema_is_a_valid_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])


@pytest.mark.parametrize(
    ("group", "right"),
    [
        ({"vars": {"node_spec": "a", "our_own": 1}, "hosts": {"n1": {"u": 3}, "n2": None}}, True),
        ({"children": {"inner": {"hosts": {"n1": {"bmc_credentials": {"env": "X"}}}}, "empty": None}}, True),
        ({"vars": {"bmc_credentials": {"command": ["pass", "show", "bmc"]}}}, True),
        ({"vars": {"bmc_credentials": {"vault": {"__ansible_vault": "$ANSIBLE_VAULT;1.1;AES256\n3031"}}}}, True),
        ({"vars": {"bmc_credentials": {"vault": "watcher:x"}}}, False),
        ({"vars": {"bmc_credentials": {"env": "A", "file": "b"}}}, False),
        ({"vars": {"bmc_credentials": {}}}, False),
        (None, True),
        ({"host": {"n1": None}}, False),
        ({"hosts": {"n1": {"u": "three"}}}, False),
        ({"children": {"inner": {"vars": {"hca_guids": ["a088c203009a0106"]}}}}, False),
    ],
)
def test_the_inventory_schema_knows_groups_at_any_depth(group: Any, right: bool) -> None:
    assert jsonschema.Draft202012Validator(SCHEMAS["inventory.json"]).is_valid({"pool": group}) is right


def test_schemas_are_written_below_the_root_that_is_named(tmp_path: Path) -> None:
    assert {path.relative_to(tmp_path).as_posix() for path in write_schemas(tmp_path)} == {
        f"specs/schemas/{name}" for name in SCHEMAS
    }


def _expected(path: Path, document: dict[str, Any]) -> str:
    return "inventory.json" if path in INVENTORIES else f"{to_kebab_case(document['kind'])}.json"
