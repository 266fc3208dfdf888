"""One name for one thing, small modules, no import circle: what CONTRIBUTING promises of `src/assay`."""

from __future__ import annotations

import re
import sys
from collections import Counter

import networkx as nx

from assay.model.errors import EXTRA_OF_MODULE
from tests.architecture.distributions import CORE, EXTRAS, find_modules
from tests.architecture.source_tree import SourceModule, count_body_lines

MAX_MODULE_LINES, MAX_FUNCTION_LINES = 600, 60
FURNITURE = re.compile(
    r"(?:^|_)(again|asked|begun|beside|calm|desk|errand|far|given|kept|misc|owed|sitting|shelf|telltale|told"
    r"|unwatched|utils?|helpers?|whereabouts|wish|wishes)(?:$|_)"
)
"""Words that say nothing to a person who knows the field and not the project."""

STARTED = ("__main__", "pack")

GUARDED_EXTRAS = ("load",)
"""Extras whose users say themselves what to do without them."""
ONLY_WHERE_INSTALLED = {"compression", "xdist"}
"""Part of Python from 3.14 on, and a plugin of pytest whose hooks import it."""


def test_a_module_name_is_used_once_in_its_room(modules: list[SourceModule]) -> None:
    """Like adapters have like names of files, and what is started by its package's name is called so by Python."""
    names = Counter(
        (module.room, module.path.stem)
        for module in modules
        if not module.is_package and module.room not in ("", "adapters") and module.path.stem not in STARTED
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_names_of_modules_and_classes_are_words_of_the_field(modules: list[SourceModule]) -> None:
    names = {module.name for module in modules if FURNITURE.search(module.name.rpartition(".")[2])}
    classes = {
        f"{module.name}.{name}"
        for module in modules
        for name in module.public_classes()
        if FURNITURE.search(re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower())
    }
    assert names | classes == set()


def test_no_modules_import_each_other_in_a_circle(modules: list[SourceModule]) -> None:
    """Imports inside functions and for types only count as well: a circle of those is still one idea in two files."""
    names = frozenset(module.name for module in modules)
    packages = {module.name for module in modules if module.is_package}
    graph = nx.DiGraph()
    for module in modules:
        graph.add_edges_from(
            (module.name, target) for target in module.imported_modules(names) if target not in packages
        )
    circles = [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]
    assert circles == []


def test_modules_and_functions_stay_small(modules: list[SourceModule]) -> None:
    long_modules = {m.name: m.line_count for m in modules if m.line_count > MAX_MODULE_LINES}
    long_functions = {
        f"{module.name}.{function.name}": count_body_lines(function)
        for module in modules
        for function in module.functions()
        if count_body_lines(function) > MAX_FUNCTION_LINES
    }
    assert (long_modules, long_functions) == ({}, {})


def test_a_package_says_what_it_takes_does_and_gives(modules: list[SourceModule]) -> None:
    import ast

    silent = []
    for module in modules:
        text = ast.get_docstring(module.tree) or "" if module.is_package and module.name != "assay" else "Takes Gives"
        if not ("Takes" in text and "Gives" in text):
            silent.append(module.name)
    assert silent == []


def test_every_import_is_of_the_core_or_of_an_extra(modules: list[SourceModule]) -> None:
    guarded = [line for extra in GUARDED_EXTRAS for line in EXTRAS[extra]]
    known = find_modules([*CORE, *guarded]) | set(EXTRA_OF_MODULE) | ONLY_WHERE_INSTALLED
    known |= set(sys.stdlib_module_names) | {"assay"}
    unknown = [f"{one.name}: {name}" for one in modules for name in {*one.imported_names()} - known]
    assert not unknown, "add the distribution to `dependencies`, or to an extra and its module to EXTRA_OF_MODULE"


def test_only_these_modules_import_what_other_packages_keep_to_themselves(modules: list[SourceModule]) -> None:
    import ast

    private = re.compile(r"(?:^|\.)_[a-z]")
    found = set()
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] != "assay":
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found |= {module.path.stem for name in names if private.search(name)}
    assert found == {"pytest_internals", "log_patterns"}, "pytest's in one place; and the parser of `re`"
