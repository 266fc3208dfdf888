"""What fleets copy imports `assay.fleetkit` and nothing else of assay; what earlier fleets imported is served."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from assay import fleetkit, old_imports
from assay.declare.starter.new_repository import render_starter
from assay.declare.starter.upgrade_plan import CarriedImports, carry_imports
from assay.model.errors import AssayError
from tests.support.places import ROOT

IMPORT = re.compile(r"^\s*(?:from|import)\s+(assay\b[\w.]*)", re.M)
OUTSIDE = sorted(ROOT.glob("tests/**/test_*_from_outside.py"))
"""The plug-ins that CONTRIBUTING says to copy. They are texts in these tests."""


def list_offered() -> dict[str, str]:
    """Return the module of each name, as the lazy table has it."""
    return {name: module for module, names in fleetkit.NAMES_OF_MODULES.items() for name in names}


def list_texts(path: Path) -> list[str]:
    return [
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_no_python_that_a_fleet_copies_imports_another_module() -> None:
    files = {path: text for path, text in render_starter("both")[1].items() if path.endswith(".py")}
    assert len(files) > 50
    assert sum(b"assay.fleetkit" in text for text in files.values()) >= 7
    assert [path for path, text in files.items() if carry_imports(text) != CarriedImports(text)] == []


def test_no_page_that_a_fleet_copies_shows_another_module() -> None:
    files = render_starter("both")[1]
    pages = {path: text.decode() for path, text in files.items() if path.endswith((".md", ".yml", ".yaml", ".j2"))}
    shown = {path: [name for name in IMPORT.findall(text) if name != "assay.fleetkit"] for path, text in pages.items()}
    assert {path: names for path, names in shown.items() if names} == {}


@pytest.mark.parametrize("path", OUTSIDE, ids=[path.stem for path in OUTSIDE])
def test_no_plug_in_that_people_copy_imports_another_module(path: Path) -> None:
    assert {name for text in list_texts(path) for name in IMPORT.findall(text)} <= {"assay.fleetkit"}


def test_the_page_on_plug_ins_shows_no_other_module() -> None:
    _, _, section = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## Add a transport, a scheduler")
    assert set(IMPORT.findall(section.partition("\n## ")[0])) == {"assay.fleetkit"}


def test_to_import_it_loads_nothing() -> None:
    told = "import sys, assay.fleetkit; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True)
    loaded = {name for name in done.stdout.split() if name.partition(".")[0] in ("assay", "pydantic", "yaml")}
    assert loaded == {"assay", "assay.fleetkit"}


def test_types_and_table_agree() -> None:
    tree = ast.parse(Path(str(fleetkit.__file__)).read_text())
    typed = next(node for node in tree.body if isinstance(node, ast.If)).body
    imports = [node for node in typed if isinstance(node, ast.ImportFrom)]
    assert len(imports) == len(typed)
    assert all(alias.asname == alias.name for node in imports for alias in node.names)
    assert {alias.name: node.module for node in imports for alias in node.names} == list_offered()


@pytest.mark.parametrize("name", sorted(list_offered()))
def test_each_name_is_there(name: str) -> None:
    assert getattr(fleetkit, name) is getattr(importlib.import_module(list_offered()[name]), name)
    assert name in dir(fleetkit)


def test_no_other_name_is_there() -> None:
    with pytest.raises(ImportError, match="load_fleet"):
        exec("from assay.fleetkit import load_fleet")


@pytest.mark.parametrize("module", sorted(old_imports.list_old_modules()))
def test_each_name_is_where_earlier_fleets_import_it(module: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old = importlib.import_module(module)
    for name in old_imports.list_old_modules()[module]:
        assert getattr(old, name) is getattr(fleetkit, name)


def test_the_table_of_old_names_is_of_earlier_fleets() -> None:
    assert min(old_imports.list_old_modules()) == "assay" + ".actions.allowed_effects", "a move renamed old modules"
    assert {name for names in old_imports.list_old_modules().values() for name in names} <= set(list_offered())


GONE = r"is gone: write `from assay\.fleetkit import AssayError`, as `assay upgrade` does"


class TestAModuleThatIsGone:
    @pytest.fixture(autouse=True)
    def _gone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        table = {"assay.former_room.inner.errors": ("AssayError",), "assay.model.former_errors": ("AssayError",)}
        monkeypatch.setattr(old_imports, "list_old_modules", lambda: table)
        for name in list(sys.modules):
            if "former_" in name:
                monkeypatch.delitem(sys.modules, name)

    def test_it_serves_the_names_and_says_what_to_write(self) -> None:
        with pytest.warns(DeprecationWarning, match=GONE) as told:
            exec("from assay.former_room.inner.errors import AssayError as old", found := {})
        assert found["old"] is AssayError
        (warning,) = told
        assert warning.filename == "<string>", "it names who imports"

    def test_it_is_served_in_a_package_that_is_still_there(self) -> None:
        with pytest.warns(DeprecationWarning, match=GONE):
            former = importlib.import_module("assay.model.former_errors")
        assert former.AssayError is AssayError

    def test_it_serves_no_other_name_and_no_other_module(self) -> None:
        with pytest.warns(DeprecationWarning, match=GONE), pytest.raises(ImportError, match="find_missing_extra"):
            exec("from assay.former_room.inner.errors import find_missing_extra")
        for module in ("assay.former_room.other", "assay.nothing", "assay.model.nothing"):
            with pytest.raises(ModuleNotFoundError, match=module):
                importlib.import_module(module)
