"""Private API of pytest and xdist is used in one module each, and pyproject.toml limits the version of both."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.places import ROOT

SOURCE = ROOT / "src" / "assay"
INTERNALS = SOURCE / "validate" / "pytest_internals.py"
XDIST_SCHEDULER = SOURCE / "validate" / "xdist_scheduler.py"


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    """Return the modules that import pytest or xdist."""
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    parsed = {path: ast.parse(text) for path, text in texts.items() if "pytest" in text or "xdist" in text}
    return {path: tree for path, tree in parsed.items() if packages(tree) & {"pytest", "_pytest", "xdist"}}


def packages(tree: ast.Module) -> set[str]:
    """Return the packages that a module imports from."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = (node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports)
    return {name.partition(".")[0] for name in names}


def private_uses(tree: ast.Module) -> Iterator[str]:
    """Yield imports of `_pytest`, and underscored attributes of objects that are not the module's own."""
    yield from packages(tree) & {"_pytest"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            yield ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "setattr", "hasattr"):
            name = node.args[1]
            if isinstance(name, ast.Constant) and is_private(name.value):
                yield ast.unparse(node)


def is_own(owner: ast.expr) -> bool:
    return ast.unparse(owner) in ("self", "cls", "super()")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_one_module_uses_private_api_of_pytest(trees):
    users = {path: uses for path, tree in trees.items() if (uses := set(private_uses(tree)))}
    assert {path: uses for path, uses in users.items() if path != INTERNALS} == {}
    assert {"_pytest", "session._setupstate", "reporter._tests_ran"} <= users[INTERNALS]


def test_one_module_overrides_a_private_method_of_xdist(trees):
    assert [path for path, tree in trees.items() if "xdist" in packages(tree)] == [XDIST_SCHEDULER]


def test_the_versions_of_pytest_and_xdist_have_a_ceiling():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    requirements = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    limits = {one.name: str(one.specifier) for one in map(Requirement, requirements)}
    assert "<9.3" in limits["pytest"]
    assert "<4" in limits["pytest-xdist"]
