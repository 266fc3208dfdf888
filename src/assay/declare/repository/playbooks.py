"""Reads from the playbooks, without Ansible, which nodes get which firmware, and which roles configure them.

Playbooks are read as YAML nodes. Files that a playbook imports or includes, and roles of the repository, are followed.
Firmware comes by tasks of `assay.fleet.firmware`; whom `hosts` of a play selects is told as far as its text says it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import cast

import yaml

from assay.declare.repository.draft import RepositoryDraft
from assay.declare.repository.tree import MAX_FILE_BYTES, RepositoryTree
from assay.model.specs.firmware_bundle import FirmwareBundle, FirmwareComponent
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.text.lists import format_count

PLAYBOOKS = "playbooks"
COLLECTION, MODULE = "assay.fleet", "firmware"
BUILTIN = ("", "ansible.builtin.", "ansible.legacy.")
TASK_LISTS = ("pre_tasks", "roles", "tasks", "post_tasks", "handlers")
FREE_FORM_COMPONENTS = re.compile(r"""(?:^|\s)components=("[^"]*"|'[^']*'|\S+)""")
NOTHING = ("", "~", "null")
MAX_TASKS = 20_000
MAX_DEPTH = 200
TASK_FILES = ("main.yml", "main.yaml", "main")
FilePosition = tuple[str, int, int]
"""File, line and column (from 1)."""
CONFIGURE_PLAYBOOK = f"{PLAYBOOKS}/configure.yml"
BRINGS = "assay_brings"
"""The variable by which a role of the site says which roles of `assay.fleet` it stands for."""
IMPORT = "import_playbook"
SEPARATOR = re.compile(r"[,:](?![^\[]*\])")
UNTOLD = re.compile(r"\{\{|^~|\[(-?\d+|\d+[:-]\d*)\]$")
"""Templates, regular expressions and positions in a group: who is meant by these is not told from the text."""
ZAP_PLAYBOOK = f"{PLAYBOOKS}/zap.yml"


@dataclass(frozen=True, slots=True)
class FirmwareTask:
    """One task that brings firmware to the nodes that the pattern `hosts` selects.

    `components`: the names that it lists, each with its place. `brings_all`: it lists none, or they cannot be read.
    `is_certain`: neither a condition nor a template decides what it does.
    """

    position: FilePosition
    hosts: str
    components: Mapping[str, FilePosition]
    brings_all: bool
    is_certain: bool


@dataclass(frozen=True, slots=True)
class _TaskScope:
    """Where tasks stand: their file, what applies to them, and the files that lead to them."""

    file: str
    hosts: str = ""
    short_names: bool = False
    is_certain: bool = True
    above: tuple[str, ...] = ()


def list_playbooks(tree: RepositoryTree) -> list[str]:
    """Return the paths of the playbooks: the YAML files directly in their folder."""
    paths = [path for path in tree.files(PLAYBOOKS) if path.endswith((".yml", ".yaml"))]
    return [path for path in paths if posixpath.dirname(path) == PLAYBOOKS]


def read_firmware_tasks(tree: RepositoryTree, path: str) -> list[FirmwareTask]:
    """Return the firmware tasks of a playbook. What cannot be read counts as a task that may bring everything."""
    scope = _TaskScope(path)
    try:
        return list(_PlaybookReader(tree).read_playbook(scope))
    except (RecursionError, _PlaybookTooLarge):
        return [_unreadable((path, 0, 0), scope)]


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


class _PlaybookTooLarge(Exception):
    """More tasks than anybody writes: aliases or includes that repeat each other."""


class _PlaybookReader:
    def __init__(self, tree: RepositoryTree) -> None:
        self._tree = tree
        self._tasks = 0
        self._paths = set(tree.files(PLAYBOOKS))

    def read_playbook(self, scope: _TaskScope) -> Iterator[FirmwareTask]:
        root = self._compose(scope.file)
        if root is None:
            yield _unreadable((scope.file, 0, 0), scope)
        for play in _items(root):
            entries = _entries(play)
            if imported := _find(entries, "import_playbook"):
                yield from self._follow(_text(imported), imported, _with_condition(scope, entries), is_playbook=True)
            elif "hosts" in entries:
                yield from self._read_play(entries, scope)

    def _read_play(self, entries: Mapping[str, yaml.Node], scope: _TaskScope) -> Iterator[FirmwareTask]:
        hosts = entries["hosts"]
        pattern = ",".join(map(_text, _items(hosts))) if isinstance(hosts, yaml.SequenceNode) else _text(hosts)
        collections = {_text(name) for name in _items(entries.get("collections"))}
        inside = replace(scope, hosts=pattern, short_names=COLLECTION in collections)
        if "module_defaults" in entries and f"{COLLECTION}.{MODULE}" in _entries(entries["module_defaults"]):
            yield _unreadable(_position(entries["module_defaults"], scope), inside)
        for name in TASK_LISTS:
            below = replace(inside, is_certain=inside.is_certain and name != "handlers")
            for node in _items(entries.get(name)):
                yield from self._read_role(node, below) if name == "roles" else self._read_task(node, below)

    def _read_task(self, node: yaml.Node, scope: _TaskScope) -> Iterator[FirmwareTask]:
        entries = _entries(node)
        scope = _with_condition(scope, entries)
        self._tasks += 1
        if self._tasks > MAX_TASKS:
            raise _PlaybookTooLarge
        for name in ("block", "rescue", "always"):
            below = replace(scope, is_certain=scope.is_certain and name != "rescue")
            for task in _items(entries.get(name)):
                yield from self._read_task(task, below)
        if included := _find(entries, "import_tasks", "include_tasks"):
            yield from self._follow(_text(_entries(included).get("file", included)), included, scope)
        if role := _find(entries, "import_role", "include_role"):
            yield from self._read_role(role, scope)
        if arguments := _find_firmware_arguments(entries, scope):
            yield _read_firmware_task(arguments, entries.get("args"), scope)

    def _read_role(self, node: yaml.Node, scope: _TaskScope) -> Iterator[FirmwareTask]:
        entries = _entries(node)
        name = _text(entries.get("role") or entries.get("name") or node)
        scope = _with_condition(scope, entries)
        namespace, _, rest = name.partition(".")
        collection, _, short = rest.partition(".")
        folder = f"{PLAYBOOKS}/roles/{name}"
        if short:
            folder = f"{PLAYBOOKS}/collections/ansible_collections/{namespace}/{collection}/roles/{short}"
        files = [_text(entries["tasks_from"])] if "tasks_from" in entries else list(TASK_FILES)
        names = [f"{folder}/tasks/{file}{ending}" for file in files for ending in ("", ".yml", ".yaml")]
        if short and f"{namespace}.{collection}" == COLLECTION:
            scope = replace(scope, short_names=True)
        yield from self._follow(next((path for path in names if path in self._paths), ""), node, scope)

    def _follow(
        self, target: str, node: yaml.Node, scope: _TaskScope, *, is_playbook: bool = False
    ) -> Iterator[FirmwareTask]:
        """Read a file that is named at `node`, by its path or relative to the file that names it."""
        nearby = posixpath.normpath(posixpath.join(posixpath.dirname(scope.file), target))
        path = next((name for name in (target, nearby, f"{PLAYBOOKS}/{target}") if name in self._paths), "")
        if path in scope.above:  # a file that leads back to itself
            return
        below = replace(scope, file=path, above=(*scope.above, path))
        root = self._compose(path) if path else None
        if root is None:
            yield _unreadable(_position(node, scope), scope)
        elif is_playbook:
            yield from self.read_playbook(below)
        else:
            for task in _items(root):
                yield from self._read_task(task, below)

    def _compose(self, path: str) -> yaml.Node | None:
        """Return the root of a YAML file, None for a file that is no YAML."""
        try:
            return _compose(self._tree, path)
        except (OSError, ValueError, RecursionError, yaml.YAMLError):
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


def _read_firmware_task(arguments: yaml.Node, more: yaml.Node | None, scope: _TaskScope) -> FirmwareTask:
    position = _position(arguments, scope)
    listed = _entries(more).get("components") or _entries(arguments).get("components")
    names = [(_text(item), _position(item, scope)) for item in _items(listed)]
    if isinstance(listed, yaml.ScalarNode):
        names = [(name.strip(), _position(listed, scope)) for name in _text(listed).split(",")]
    elif isinstance(arguments, yaml.ScalarNode) and (free := FREE_FORM_COMPONENTS.search(_text(arguments))):
        names = [(name.strip(), position) for name in free[1].strip("'\"").split(",")]
    components = {name: place for name, place in names if name not in NOTHING}
    is_template = any("{{" in name or "{%" in name for name in components)
    return FirmwareTask(
        position,
        scope.hosts,
        {} if is_template else components,
        brings_all=is_template or not components,
        is_certain=scope.is_certain and not is_template,
    )


def _find_firmware_arguments(entries: Mapping[str, yaml.Node], scope: _TaskScope) -> yaml.Node | None:
    """Return the arguments of a task that runs the module, in any of Ansible's spellings."""
    names = [f"{COLLECTION}.{MODULE}", *([MODULE] if scope.short_names else [])]
    for name in names:
        if name in entries:
            return entries[name]
    for key in ("action", "local_action"):
        if action := entries.get(key):
            module = _text(_entries(action).get("module")) or _text(action).partition(" ")[0]
            if module in names:
                return action
    return None


def _with_condition(scope: _TaskScope, entries: Mapping[str, yaml.Node]) -> _TaskScope:
    return replace(scope, is_certain=scope.is_certain and "when" not in entries)


def _unreadable(position: FilePosition, scope: _TaskScope) -> FirmwareTask:
    return FirmwareTask(position, scope.hosts or "all", {}, brings_all=True, is_certain=False)


def _find(entries: Mapping[str, yaml.Node], *names: str) -> yaml.Node | None:
    spelled = (prefix + name for name in names for prefix in BUILTIN)
    return next((entries[name] for name in spelled if name in entries), None)


def _entries(node: yaml.Node | None) -> dict[str, yaml.Node]:
    return {_text(key): value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def _items(node: yaml.Node | None) -> list[yaml.Node]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _text(node: yaml.Node | None) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def _position(node: yaml.Node, scope: _TaskScope) -> FilePosition:
    return scope.file, node.start_mark.line + 1, node.start_mark.column + 1


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


def is_selected(pattern: str, host: str, groups: Collection[str]) -> bool | None:
    """Say whether a pattern selects a host that is in these groups, those above included. None: it cannot be told."""
    terms = [term.strip() for term in SEPARATOR.split(pattern) if term.strip()]
    if any(UNTOLD.search(term.lstrip("!&")) for term in terms):
        return None
    names = {host, "all", *groups}
    plain = [term for term in terms if term[0] not in "!&"]
    if plain and not any(_is_one_of(term, names) for term in plain):
        return False
    if any(not _is_one_of(term[1:], names) for term in terms if term[0] == "&"):
        return False
    return not any(_is_one_of(term[1:], names) for term in terms if term[0] == "!")


def _is_one_of(term: str, names: Collection[str]) -> bool:
    return any(fnmatchcase(name, term) for name in names)


@dataclass(frozen=True, slots=True)
class BundleUsers:
    """Nodes with one bundle and the same groups. `has_adapters`: assay manages the adapters' firmware."""

    bundle: FirmwareBundle
    has_adapters: bool
    groups: frozenset[str]
    nodes: tuple[str, ...]

    def manages(self, component: FirmwareComponent) -> bool:
        """Say whether assay updates a component of the bundle on these nodes."""
        return self.has_adapters or not component.hca

    def get_from(self, tasks: Iterable[FirmwareTask], component: str) -> bool:
        """Say whether a task brings the component to these nodes, or may do so."""
        return any(
            (task.brings_all or component in task.components)
            and is_selected(task.hosts, self.nodes[0], self.groups) is not False
            for task in tasks
        )

    def is_surely_selected(self, task: FirmwareTask) -> bool:
        """Say whether a task runs on these nodes, whatever its conditions."""
        return task.is_certain and is_selected(task.hosts, self.nodes[0], self.groups) is True

    def describe(self) -> str:
        """Return the first node, and how many are like it."""
        more = len(self.nodes) - 1
        return f"{self.nodes[0]} and {format_count(more, 'node')} like it" if more else self.nodes[0]


def list_bundle_users(draft: RepositoryDraft, tasks: Sequence[FirmwareTask]) -> list[BundleUsers]:
    """Return the nodes whose spec and bundle could be read. A node that a task selects by name stands alone."""
    bundles = draft.specs_of_model(FirmwareBundle)
    specs = draft.specs_of_model(NodeSpec)
    profiles = draft.specs_of_model(ManagementProfile)
    terms = {term.strip().lstrip("!&") for task in tasks for term in SEPARATOR.split(task.hosts)}
    by_groups = terms <= {"", "*", *draft.inventory.groups}
    alike: dict[tuple[str, str, tuple[str, ...], str], list[str]] = {}
    for host in draft.hosts:
        if host.settings is not None:
            groups = tuple(draft.inventory.hosts[host.name].groups)
            alone = "" if by_groups else host.name
            alike.setdefault((host.settings.node_spec, host.settings.profile, groups, alone), []).append(host.name)
    users = []
    for (spec, profile, groups, _), nodes in alike.items():
        bundle = bundles.get(specs[spec].firmware) if spec in specs else None
        if bundle is not None and profile in profiles:
            above = frozenset(draft.inventory.find_ancestors(groups))
            users.append(BundleUsers(bundle, profiles[profile].hca_firmware, above, tuple(nodes)))
    return users
