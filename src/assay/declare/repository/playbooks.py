"""Reads from the playbooks, without Ansible, which firmware their tasks bring, and which roles configure the nodes.

Playbooks are read as YAML nodes. Firmware comes by tasks of `assay.fleet.firmware`. What a condition, a template or the
`hosts` of a play decides is not told: such a task counts as one that brings what it may bring.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import cast

import yaml

from assay.declare.repository.tree import MAX_FILE_BYTES, RepositoryTree
from assay.model.facts import frozen

PLAYBOOKS = "playbooks"
COLLECTION = "assay.fleet"
FIRMWARE = f"{COLLECTION}.firmware"
NOTHING = ("", "~", "null")
MAX_DEPTH = 200
FilePosition = tuple[str, int, int]
"""File, line and column (from 1)."""
CONFIGURE_PLAYBOOK = f"{PLAYBOOKS}/configure.yml"
BRINGS = "assay_brings"
"""The variable by which a role of the site says which roles of `assay.fleet` it stands for."""
IMPORT = "import_playbook"
ZAP_PLAYBOOK = f"{PLAYBOOKS}/zap.yml"
OTHER_WAYS = re.compile(rb"firmware|role|import|include")
"""Words without one of which a playbook brings no firmware, however it is written."""


@frozen
class FirmwareTask:
    """One task that brings firmware: the components that it lists, each with its place; none if it may bring all."""

    components: Mapping[str, FilePosition]


def read_firmware_tasks(tree: RepositoryTree) -> list[FirmwareTask]:
    """Return the firmware tasks of all files below the folder of playbooks. A file that is no YAML has none."""
    paths = _list_yaml_files(tree)
    return [task for path in paths for task in _read_tasks(tree, path)]


def read_zap_tasks(tree: RepositoryTree) -> list[FirmwareTask] | None:
    """Return the firmware tasks that zap may run: of its playbook, of those that it names, of all roles and task lists.

    None: a task may bring firmware in a way that is not read here.
    """
    text = _read(tree, ZAP_PLAYBOOK)
    others = [path for path in _list_yaml_files(tree) if posixpath.dirname(path) != PLAYBOOKS]
    named = [
        path for path in _list_yaml_files(tree) if path not in others and posixpath.basename(path).encode() in text
    ]
    tasks = [
        task for path in {ZAP_PLAYBOOK: 0, **dict.fromkeys((*named, *others), 0)} for task in _read_tasks(tree, path)
    ]
    return tasks if tasks or not OTHER_WAYS.search(text) else None


def _list_yaml_files(tree: RepositoryTree) -> list[str]:
    return [path for path in tree.files(PLAYBOOKS) if path.endswith((".yml", ".yaml"))]


def _read_tasks(tree: RepositoryTree, path: str) -> Iterator[FirmwareTask]:
    if FIRMWARE.encode() not in _read(tree, path):
        return
    try:
        root = _compose(tree, path)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return
    for entries in _list_mappings(root):
        if FIRMWARE in entries:
            yield _read_firmware_task(path, entries[FIRMWARE], entries.get("args"))
        elif FIRMWARE in _text(entries.get("action")) or _text(entries.get("module")) == FIRMWARE:
            yield FirmwareTask({})


def _list_mappings(root: yaml.Node | None) -> Iterator[dict[str, yaml.Node]]:
    """Yield every mapping of a file once, however many aliases name it."""
    waiting = [root]
    seen = set[int]()
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield _entries(node)
            waiting += [value for _, value in reversed(node.value)]
        elif isinstance(node, yaml.SequenceNode):
            waiting += reversed(node.value)


def _read_firmware_task(path: str, arguments: yaml.Node, more: yaml.Node | None) -> FirmwareTask:
    listed = _entries(more).get("components") or _entries(arguments).get("components")
    names: list[tuple[str, yaml.Node]] = []
    if isinstance(listed, yaml.SequenceNode):
        names = [(_text(item), item) for item in listed.value]
    elif listed is not None:
        names = [(name.strip(), listed) for name in _text(listed).split(",")]
    components = {
        name: (path, node.start_mark.line + 1, node.start_mark.column + 1)
        for name, node in names
        if name not in NOTHING
    }
    is_template = any("{{" in name or "{%" in name for name in components)
    return FirmwareTask({} if is_template else components)


def _read(tree: RepositoryTree, path: str) -> bytes:
    try:
        return tree.read(path, MAX_FILE_BYTES)
    except OSError:
        return b""


def find_yaml_error(tree: RepositoryTree, path: str) -> tuple[FilePosition, str] | None:
    """Return where and why a playbook is no YAML, None if it is."""
    try:
        _compose(tree, path)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return (path, mark.line + 1 if mark else 0, mark.column + 1 if mark else 0), str(error.problem or error.context)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        return (path, 0, 0), " ".join(str(error).split())
    return None


def _compose(tree: RepositoryTree, path: str) -> yaml.Node | None:
    text = tree.read(path, MAX_FILE_BYTES).decode("utf-8")
    _check_depth(text)
    root: yaml.Node | None = yaml.compose(text, Loader=yaml.CSafeLoader)
    return root


def _check_depth(text: str) -> None:
    """Raise YAMLError for containers in containers beyond MAX_DEPTH: composing them would end the process."""
    depth = 0
    for event in iter(yaml.CSafeLoader(text).get_event, None):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(
                problem="nested too deeply", problem_mark=cast("yaml.error.Mark", event.start_mark)
            )


def _entries(node: yaml.Node | None) -> dict[str, yaml.Node]:
    return {_text(key): value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def _text(node: yaml.Node | None) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def list_configuring_roles(tree: RepositoryTree) -> set[str]:
    """Return the names of the roles of `assay.fleet` that the playbook names, and those that others stand for.

    A file that is missing or no YAML names none.
    """
    roles: set[str] = set()
    paths = [CONFIGURE_PLAYBOOK]
    read: set[str] = set()
    while paths:
        path = paths.pop()
        if path in read:
            continue
        read.add(path)
        for kind, word in _list_words(tree, path):
            if kind == IMPORT:
                paths.append(posixpath.normpath(posixpath.join(posixpath.dirname(path), word)))
            elif kind == BRINGS:
                roles.add(word)
            elif word.startswith(f"{COLLECTION}."):
                roles.add(word.removeprefix(f"{COLLECTION}."))
    return roles


def _list_words(tree: RepositoryTree, path: str) -> Iterator[tuple[str, str]]:
    """Yield each word of a YAML file with the key that it belongs to, as far as the key matters here."""
    key = ""
    try:
        text = tree.read(path, MAX_FILE_BYTES).decode("utf-8")
        for token in yaml.scan(text, Loader=yaml.CSafeLoader):
            if isinstance(token, yaml.KeyToken | yaml.BlockEndToken | yaml.FlowSequenceEndToken):
                key = ""
            elif isinstance(token, yaml.ScalarToken):
                word = str(token.value)
                yield key, word
                name = word.rpartition(".")[2]
                key = name if name in (BRINGS, IMPORT) else key
    except (OSError, ValueError, yaml.YAMLError):
        return
