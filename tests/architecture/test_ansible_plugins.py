"""What the Ansible plugins import is there: Ansible loads them by their path, so no other test imports them."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from tests.support.places import ROOT

PLUGINS = sorted((ROOT / "playbooks").rglob("*.py"))


@pytest.mark.parametrize("plugin", PLUGINS, ids=[f"{path.parent.name}-{path.stem}" for path in PLUGINS])
def test_every_name_that_a_plugin_takes_from_assay_exists(plugin: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(plugin.read_text())) if isinstance(node, ast.ImportFrom)]
    for one in imports:
        if (one.module or "").startswith("assay."):
            module = importlib.import_module(str(one.module))
            assert [name.name for name in one.names if not hasattr(module, name.name)] == []


def test_there_are_plugins() -> None:
    assert PLUGINS
