"""A check on a part of a load is due where that part was asked for; the checks on parts say which they read."""

from __future__ import annotations

import ast

import pytest
import yaml
from pydantic import ValidationError

from assay.model.specs.check_catalog import CheckDeclaration
from tests.support.places import ROOT


def check(*parts: str, phase: str = "test") -> CheckDeclaration:
    return CheckDeclaration.model_validate(
        {"id": "suites/test/test_x.py::test_x", "subject": "node", "phases": [phase], "active": True, "parts": [*parts]}
    )


def test_what_no_load_was_asked_for_is_not_required() -> None:
    asked = ["gpu_burn", "memory"]
    assert check("gpu_burn").is_due("test", asked)
    assert check("ubergemm", "memory").is_due("test", asked)
    assert not check("ubergemm").is_due("test", asked)
    assert check().is_due("test", asked), "a check on what any load leaves behind"
    assert not check("gpu_burn", phase="production").is_due("test", asked)


def test_a_passive_check_reads_no_part() -> None:
    with pytest.raises(ValidationError, match="active: true"):
        CheckDeclaration.model_validate({**check().model_dump(), "active": False, "parts": ["memory"]})


def list_parts_read(function: ast.FunctionDef) -> set[str]:
    """Return X of every `node.active.X`."""
    reads = (one for one in ast.walk(function) if isinstance(one, ast.Attribute))
    return {one.attr for one in reads if isinstance(one.value, ast.Attribute) and one.value.attr == "active"}


def test_the_shipped_checks_declare_the_parts_that_they_read() -> None:
    declared = {
        one["id"]: set(one.get("parts", ()))
        for path in (ROOT / "specs/checks").glob("*.yaml")
        for one in yaml.safe_load(path.read_text())["checks"]
    }
    for path in (ROOT / "suites").glob("*/test_*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                ident = f"{path.relative_to(ROOT)}::{node.name}"
                assert declared[ident] >= list_parts_read(node), ident
