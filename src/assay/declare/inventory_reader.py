"""Reads inventory sources in Ansible's YAML format, like `ansible-inventory -i SOURCE -i SOURCE`.

A host may stand for many, as in Ansible: `n[0001:0016]`, `rack[a:d]`, `n[01:16:2]`, `n1:2222`.
"""

from __future__ import annotations

import posixpath
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from assay.declare.group_variables import GROUP_PRIORITY_VARIABLE, AnsibleInventory, InventoryGroup, VariableLayer
from assay.declare.problems import FleetProblem
from assay.declare.repository.tree import RepositoryTree, WorkingFolder
from assay.declare.yaml import ParseCache, UnreadableYaml, YamlDocument, read_yaml_file

MAX_HOSTS = 1_000_000
_RANGE = re.compile(r"\[([0-9A-Za-z]*):([0-9A-Za-z]+)(?::([0-9]+))?\]")
_PORT = re.compile(r"^((?:[^:\[\]]|\[[^\[\]]*\])+):(\d+)$")
INVENTORY_EXTENSIONS = ("", ".yml", ".yaml", ".json")
_IGNORED_STEP = re.compile(
    r"^\.|^(host_vars|group_vars|vars_plugins)$|(\.pyc|\.pyo|\.swp|\.bak|~|\.rpm|\.md|\.txt|\.rst|\.orig|\.cfg|\.retry)$"
)
VARIABLES_FIX = "write one `name: value` a line"
GROUP_SECTIONS = ("vars", "children", "hosts")


@dataclass(frozen=True)
class InventorySource:
    """An inventory file, or a folder of them, in a tree. `group_vars/` and `host_vars/` are in `variables_folder`.

    `display_prefix` precedes its paths in messages.
    """

    tree: RepositoryTree
    path: str
    variables_folder: str
    display_prefix: str = ""

    def files(self) -> list[str]:
        """Return the inventory files of the source, in Ansible's order."""
        start = len(self.path) + 1 if self.path else 0
        paths = self.tree.files(self.path)
        below = [path for path in paths if not any(map(_IGNORED_STEP.search, path[start:].split("/")))]
        return below if self.variables_folder == self.path else [self.path]


def open_disk_source(path: Path, root: Path) -> InventorySource:
    """Return the source at `path`, which may be outside of the repository at `root`."""
    folder = path if path.is_dir() else path.parent
    prefix = f"{folder.relative_to(root).as_posix()}/" if folder.is_relative_to(root) else f"{folder.as_posix()}/"
    return InventorySource(WorkingFolder(folder), "" if path.is_dir() else path.name, "", prefix.removeprefix("./"))


def read_inventory(
    sources: Sequence[InventorySource], cache: ParseCache | None = None
) -> tuple[AnsibleInventory, list[FleetProblem]]:
    """Read the sources in order; later ones override earlier ones. Returns the inventory and all problems."""
    parser = _InventoryParser(cache)
    for source in sources:
        for path in source.files():
            parser.read_inventory_file(source, path)
    parser.resolve_parents()
    for source in sources:
        parser.read_variable_files(source)
    return parser.inventory, parser.problems


def expand_host_pattern(pattern: str) -> tuple[list[str], int | None]:
    """Return the host names of a pattern, and its port (None without one).

    Raises ValueError for a malformed range, or more than MAX_HOSTS names.
    """
    port = _PORT.match(pattern)
    if port:
        pattern = port[1]
    pieces = _RANGE.split(pattern)
    literals = pieces[::4]
    bounds = list(zip(pieces[1::4], pieces[2::4], pieces[3::4], strict=True))
    if any("[" in text or "]" in text for text in literals):
        raise ValueError(f"{pattern!r} holds a bracket that is no range; write ranges as n[0001:0016]")
    steps = [_expand_range(*bound) for bound in bounds]
    if prod(len(step) for step in steps) > MAX_HOSTS:
        raise ValueError(f"{pattern!r} stands for more than {MAX_HOSTS} hosts")
    names = [literals[0]]
    for step, literal in zip(steps, literals[1:], strict=True):
        names = [name + text + literal for name in names for text in step]
    return names, int(port[2]) if port else None


class _NumberRange(Sequence[str]):
    """The numbers of a range as text, created on access, so that refusing a huge range costs nothing."""

    def __init__(self, numbers: range, width: int) -> None:
        self.numbers, self.width = numbers, width

    def __len__(self) -> int:
        return min(len(self.numbers), MAX_HOSTS + 1)

    def __getitem__(self, index: int) -> str:  # type: ignore[override]  # nobody slices a range of names
        return str(self.numbers[index]).zfill(self.width)


def _expand_range(first: str, last: str, step: str | None) -> Sequence[str]:
    width = int(step or 1)
    if not width:
        raise ValueError("the step of a range cannot be 0")
    if len(first) == len(last) == 1 and first.isalpha() and last.isalpha():
        letters = string.ascii_letters
        names: Sequence[str] = letters[letters.index(first) : letters.index(last) + 1 : width]
    else:
        names = _expand_numbers(first or "0", last, width)
    if not names:
        raise ValueError(f"the range [{first}:{last}] ends before it begins")
    return names


def _expand_numbers(first: str, last: str, step: int) -> Sequence[str]:
    if not (first.isdecimal() and last.isdecimal()) or max(len(first), len(last)) > 12:
        raise ValueError(f"the range [{first}:{last}] needs two numbers, or two letters")
    padded = first.startswith("0") and len(first) > 1
    if padded and len(first) != len(last):
        raise ValueError(f"the range [{first}:{last}] needs ends of the same length, as in [0001:0016]")
    return _NumberRange(range(int(first), int(last) + 1, step), len(first) if padded else 0)


def is_valid_name(name: Any) -> bool:
    """Whether this can be the name of a group or host, and so of a file below `group_vars/` or `host_vars/`."""
    return isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable() and "/" not in name


@dataclass
class _InventoryParser:
    """The inventory and the problems that were read so far."""

    cache: ParseCache | None = None
    inventory: AnsibleInventory = field(default_factory=AnsibleInventory)
    problems: list[FleetProblem] = field(default_factory=list)

    def add_problem(self, document: YamlDocument, path: tuple[Any, ...], message: str, fix: str) -> None:
        """Add a problem: an entry that does not fit Ansible's format."""
        line, column = document.place(path)
        self.problems.append(FleetProblem(document.file, line, column, "ASY0010", "error", message, fix))

    def read(self, source: InventorySource, path: str) -> YamlDocument | None:
        """Read one YAML file; None, and a problem, if it cannot be read."""
        try:
            return read_yaml_file(source.tree, path, source.display_prefix + path, cache=self.cache)
        except UnreadableYaml as error:
            self.problems.append(error.as_problem())
            return None

    def read_inventory_file(self, source: InventorySource, path: str) -> None:
        """Read one inventory file."""
        extension = posixpath.splitext(path)[1]
        if extension not in INVENTORY_EXTENSIONS:
            message = f"{extension} is no inventory format that assay reads"
            self.problems.append(
                FleetProblem(source.display_prefix + path, 0, 0, "ASY0010", "error", message, "write it as YAML")
            )
            return
        document = self.read(source, path)
        if document is None or document.data is None:
            return
        if not isinstance(document.data, dict) or "plugin" in document.data:
            message = "an inventory file is a mapping of group names to groups"
            self.add_problem(document, (), message, "begin with a pool's name")
            return
        for name, content in document.data.items():
            self.read_group(document, (name,), name, content)

    def read_group(
        self, document: YamlDocument, path: tuple[Any, ...], name: Any, content: Any
    ) -> InventoryGroup | None:
        """Read one group and everything below it."""
        if not is_valid_name(name) or not isinstance(content, dict | None):
            fix = "give it a name, and vars, hosts or children below it"
            self.add_problem(document, path, f"{name!r} is no group", fix)
            return None
        group = self.inventory.group(name)
        for section, entries in (content or {}).items():
            self.read_section(document, (*path, section), group, entries)
        return group

    def read_section(self, document: YamlDocument, path: tuple[Any, ...], group: InventoryGroup, entries: Any) -> None:
        """Read `vars`, `children` or `hosts` of a group."""
        section = path[-1]
        if section not in GROUP_SECTIONS:
            fix = f"use one of {', '.join(GROUP_SECTIONS)}"
            self.add_problem(document, path, f"{section!r} is no part of a group", fix)
        elif isinstance(entries, str) and section != "vars":
            self.read_entries(document, path, group, {entries: None})
        elif isinstance(entries, dict):
            self.read_entries(document, path, group, entries)
        elif entries is not None:
            message = f"{section} of {group.name} must be a mapping"
            self.add_problem(document, path, message, "end each name with a colon")

    def read_entries(
        self, document: YamlDocument, path: tuple[Any, ...], group: InventoryGroup, entries: dict[Any, Any]
    ) -> None:
        """Read the entries of one section."""
        if path[-1] == "vars":
            self.add_layer(group.inline, VariableLayer(entries, document, path), group)
            return
        for name, content in entries.items():
            if path[-1] == "hosts":
                self.read_hosts(document, (*path, name), group, content)
            else:
                child = self.read_group(document, (*path, name), name, content)
                if child is not None and group.name not in child.parents:
                    child.parents.append(group.name)

    def add_layer(self, into: list[VariableLayer], layer: VariableLayer, group: InventoryGroup | None = None) -> None:
        """Add one layer of variables to those of a group or host."""
        for name in layer.variables:
            if not isinstance(name, str):
                self.add_problem(layer.document, (*layer.path, name), f"{name!r} is no variable name", "quote it")
        priority = str(layer.variables.get(GROUP_PRIORITY_VARIABLE, ""))
        if group is not None and priority.isdecimal() and len(priority) < 10:
            group.priority = int(priority)
        into.append(layer)

    def read_hosts(self, document: YamlDocument, path: tuple[Any, ...], group: InventoryGroup, content: Any) -> None:
        """Read one entry of `hosts`, which may be a pattern for many hosts."""
        if not is_valid_name(path[-1]) or not isinstance(content, dict | None):
            fix = "give it a name, a colon, and variables below it"
            self.add_problem(document, path, f"{path[-1]!r} is no host", fix)
            return
        try:
            names, port = expand_host_pattern(path[-1])
        except ValueError as error:
            self.add_problem(document, path, str(error), "write a name, or a range as n[0001:0016]")
            return
        layer = VariableLayer(content or {}, document, path)
        for name in names:
            host = self.inventory.host(name)
            if group.name not in host.groups:
                host.groups.append(group.name)
            self.add_layer(host.inline, layer)
            if port is not None:
                host.inline.append(VariableLayer({"ansible_port": port}, document, path))

    def resolve_parents(self) -> None:
        """Resolve how groups contain each other; add a problem for each circle."""
        for circle in self.inventory.resolve_parents():
            message = f"groups contain themselves: {' → '.join(circle)}"
            self.problems.append(FleetProblem("inventory", 0, 0, "ASY0010", "error", message, "take one of them out"))

    def read_variable_files(self, source: InventorySource) -> None:
        """Read the `group_vars/` and `host_vars/` of a source."""
        for kind, owners in (("group_vars", self.inventory.groups), ("host_vars", self.inventory.hosts)):
            folder = posixpath.join(source.variables_folder, kind)
            files = find_variable_files(folder, source.tree.files(folder))
            for name in owners if files else ():
                for path in files.get(name, ()):
                    document = self.read(source, path)
                    if document is not None and isinstance(document.data, dict):
                        self.add_layer(owners[name].files, VariableLayer(document.data, document))
                    elif document is not None and document.data is not None:
                        message = "a file of variables is a mapping of names to values"
                        self.add_problem(document, (), message, VARIABLES_FIX)


def find_variable_files(folder: str, paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the variable files of each group or host: `NAME`, `NAME.yml` … or all files below `NAME/`.

    Of several, the first of INVENTORY_EXTENSIONS counts, as in Ansible.
    """
    by_name: dict[str, dict[str, list[str]]] = {}
    for path in paths:
        first, *deeper = path[len(folder) + 1 :].split("/")
        if not deeper or _holds_variables(deeper):
            stem, extension = posixpath.splitext(first)
            name, kind = (stem, extension) if extension in INVENTORY_EXTENSIONS else (first, "")
            by_name.setdefault(name, {}).setdefault(kind, []).append(path)
    return {name: kinds[min(kinds, key=INVENTORY_EXTENSIONS.index)] for name, kinds in by_name.items()}


def _holds_variables(steps: Sequence[str]) -> bool:
    """Whether Ansible reads the file at this path below a folder of variables."""
    hidden = any(step.startswith(".") or step.endswith("~") for step in steps)
    return (
        not hidden
        and not any("." in step for step in steps[:-1])
        and posixpath.splitext(steps[-1])[1] in INVENTORY_EXTENSIONS
    )
