"""Reads inventory sources in Ansible's YAML format, as `ansible-inventory -i SOURCE -i SOURCE` would."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.fleet.document import Document, read_file
from assay.fleet.groups import PRIORITY, Group, Inventory, Layer
from assay.fleet.marks import Unreadable
from assay.fleet.problem import Problem
from assay.fleet.ranges import expand

EXTENSIONS = ("", ".yml", ".yaml", ".json")
_IGNORED = re.compile(
    r"^\.|^(host_vars|group_vars|vars_plugins)$|(\.pyc|\.pyo|\.swp|\.bak|~|\.rpm|\.md|\.txt|\.rst|\.orig|\.cfg|\.retry)$"
)
MEND = "write one `name: value` a line"
SECTIONS = ("vars", "children", "hosts")


def read_inventory(root: Path, sources: Sequence[Path]) -> tuple[Inventory, list[Problem]]:
    """Read the sources in order, later ones over earlier ones. Files are named relative to `root`."""
    reading = _Reading(root)
    for source in sources:
        for path in _files(source):
            reading.take_file(path)
    reading.connect()
    for source in sources:
        reading.take_variables(source if source.is_dir() else source.parent)
    return reading.inventory, reading.problems


def named(path: Path, root: Path) -> str:
    """Return how a file is called in messages: relative to the fleet repository where it lies inside."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def is_name(name: Any) -> bool:
    """Whether this can name a group or host, and so a file below `group_vars/` or `host_vars/`."""
    return isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable() and "/" not in name


def _files(source: Path) -> Iterator[Path]:
    if source.is_file():
        yield source
    if not source.is_dir():
        return
    for entry in sorted(source.iterdir(), key=lambda path: os.fsencode(path.name)):
        if not _IGNORED.search(entry.name):
            yield from _files(entry)


@dataclass
class _Reading:
    """What has been read so far."""

    root: Path
    inventory: Inventory = field(default_factory=Inventory)
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, document: Document, path: tuple[Any, ...], message: str, fix: str) -> None:
        """Note that an entry is not what Ansible's format has there."""
        line, column = document.place(path)
        self.problems.append(Problem(document.file, line, column, "ASY0010", "error", message, fix))

    def read(self, path: Path) -> Document | None:
        """Read one file; a file that is no YAML is a problem of its own."""
        try:
            return read_file(path, named(path, self.root))
        except Unreadable as wrong:
            self.problems.append(wrong.as_problem())
            return None

    def take_file(self, path: Path) -> None:
        """Read one inventory file."""
        if path.suffix not in EXTENSIONS:
            message = f"{path.suffix} is no inventory format that assay reads"
            self.problems.append(Problem(named(path, self.root), 0, 0, "ASY0010", "error", message, "write it as YAML"))
            return
        document = self.read(path)
        if document is None or document.data is None:
            return
        if not isinstance(document.data, dict) or "plugin" in document.data:
            self.wrong(
                document, (), "an inventory file is a mapping of group names to groups", "begin with a pool's name"
            )
            return
        for name, content in document.data.items():
            self.take_group(document, (name,), name, content)

    def take_group(self, document: Document, path: tuple[Any, ...], name: Any, content: Any) -> Group | None:
        """Read one group and what is below it."""
        if not is_name(name) or not isinstance(content, dict | None):
            self.wrong(document, path, f"{name!r} is no group", "give it a name, and vars, hosts or children below it")
            return None
        group = self.inventory.group(name)
        for section, entries in (content or {}).items():
            self.take_section(document, (*path, section), group, entries)
        return group

    def take_section(self, document: Document, path: tuple[Any, ...], group: Group, entries: Any) -> None:
        """Read `vars`, `children` or `hosts` of a group."""
        section = path[-1]
        if section not in SECTIONS:
            self.wrong(document, path, f"{section!r} is no part of a group", f"use one of {', '.join(SECTIONS)}")
        elif isinstance(entries, str) and section != "vars":
            self.take_entries(document, path, group, {entries: None})
        elif isinstance(entries, dict):
            self.take_entries(document, path, group, entries)
        elif entries is not None:
            self.wrong(document, path, f"{section} of {group.name} must be a mapping", "end each name with a colon")

    def take_entries(self, document: Document, path: tuple[Any, ...], group: Group, entries: dict[Any, Any]) -> None:
        """Read the entries of one section."""
        if path[-1] == "vars":
            self.take_vars(group.inline, Layer(entries, document, path), group)
            return
        for name, content in entries.items():
            if path[-1] == "hosts":
                self.take_hosts(document, (*path, name), group, content)
            else:
                child = self.take_group(document, (*path, name), name, content)
                if child is not None and group.name not in child.parents:
                    child.parents.append(group.name)

    def take_vars(self, into: list[Layer], layer: Layer, group: Group | None = None) -> None:
        """Keep one layer of variables."""
        for name in layer.variables:
            if not isinstance(name, str):
                self.wrong(layer.document, (*layer.path, name), f"{name!r} is no variable name", "quote it")
        priority = str(layer.variables.get(PRIORITY, ""))
        if group is not None and priority.isdigit():
            group.priority = int(priority)
        into.append(layer)

    def take_hosts(self, document: Document, path: tuple[Any, ...], group: Group, content: Any) -> None:
        """Read one entry of `hosts`, which may stand for many."""
        if not is_name(path[-1]) or not isinstance(content, dict | None):
            self.wrong(document, path, f"{path[-1]!r} is no host", "give it a name, a colon, and variables below it")
            return
        try:
            names, port = expand(path[-1])
        except ValueError as wrong:
            self.wrong(document, path, str(wrong), "write a name, or a range as n[0001:0016]")
            return
        layer = Layer(content or {}, document, path)
        for name in names:
            host = self.inventory.host(name)
            if group.name not in host.groups:
                host.groups.append(group.name)
            self.take_vars(host.inline, layer)
            if port is not None:
                host.inline.append(Layer({"ansible_port": port}, document, path))

    def connect(self) -> None:
        """Settle how the groups contain each other."""
        for circle in self.inventory.settle():
            said = f"groups contain themselves: {' → '.join(circle)}"
            self.problems.append(Problem("inventory", 0, 0, "ASY0010", "error", said, "take one of them out"))

    def take_variables(self, folder: Path) -> None:
        """Read `group_vars/` and `host_vars/` beside a source."""
        for kind, owners in (("group_vars", self.inventory.groups), ("host_vars", self.inventory.hosts)):
            if not (folder / kind).is_dir():
                continue
            for name, owner in owners.items():
                for path in variable_files(folder / kind, name):
                    document = self.read(path)
                    if document is not None and isinstance(document.data, dict):
                        self.take_vars(owner.files, Layer(document.data, document))
                    elif document is not None and document.data is not None:
                        self.wrong(document, (), "a file of variables is a mapping of names to values", MEND)


def variable_files(folder: Path, name: str) -> list[Path]:
    """Return the files that hold the variables of a group or host: `NAME`, `NAME.yml` … or all below `NAME/`."""
    for extension in EXTENSIONS:
        path = folder / f"{name}{extension}"
        if path.is_dir():
            return list(_all_below(path))
        if path.exists():
            return [path]
    return []


def _all_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name.endswith("~"):
            continue
        if path.is_dir() and not path.suffix:
            yield from _all_below(path)
        elif path.is_file() and path.suffix in EXTENSIONS:
            yield path
