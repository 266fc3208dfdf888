"""`assay doctor`: what this machine needs so that assay can work on a fleet from it, and what of that is missing.

It reaches no other machine, but the sources of images and firmware.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel, Field

import assay
from assay.cli.context_line import print_answer
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.declare.repository.git import read_revision
from assay.declare.secret_lookup import describe_reference, read_secret
from assay.model.errors import EXTRA_OF_MODULE, AssayError, list_missing_modules
from assay.model.facts import fact, frozen
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.load_parts import LOAD_PARTS, PART_NEEDS, find_lacking_part
from assay.model.specs.spec_document import StrictModel
from assay.model.text.lists import format_count, format_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.model.fleet import Fleet


NEEDS_FILE = Path(__file__).with_name("doctor_needs.yaml")
NOT_ASKED = "*"
"""What any declared value is."""
LEAST_FREE_BYTES = 2**30


def doctor(fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Show what this machine lacks to work on this fleet: packages, programs, secrets, disk, the ledger.

    This reads secrets, as a pass does, and shows none. It asks the sources of images and firmware for each file. It
    reaches no node, and only lists what nodes need.

    Exit codes: 0 nothing is missing; 1 something is; 2 the fleet repository cannot be read.
    """
    from assay.lab.optional_parts import list_parts

    workspace = Workspace(fleet.resolve())
    needs = list(list_needs(workspace))
    unused = find_unused_extras(needs)
    lab = [str(part) for part in list_parts(workspace.fleet) if part.fix]
    print_answer(DoctorAnswer(needs, unused), form, _format_text(needs, unused, lab))
    sys.exit(1 if any(need.trouble and not need.without for need in needs) else 0)


def _format_text(needs: Sequence[Need], unused: Sequence[str], lab: Sequence[str]) -> list[str]:
    lines = []
    here = [need for need in needs if not need.where]
    for need in here:
        mark = "ok     " if not need.trouble else "without" if need.without else "missing"
        lines.append(f"{mark}  {need.name} ({need.used_for})" + (f": {need.trouble}" if need.trouble else ""))
        if need.trouble and need.fix:
            lines.append(f"         → {need.fix}" + (f"; assay leaves out {need.without}" if need.without else ""))
    for where in dict.fromkeys(need.where for need in needs if need.where):
        lines.append(f"on {where}, where doctor does not look:")
        lines += [f"         {need.name} ({need.used_for})" for need in needs if need.where == where]
    if unused:
        lines.append(f"not installed, and not needed by this fleet: {', '.join(unused)}")
    lines += [f"only virtual in the lab: {part}" for part in lab]
    missing = sum(bool(need.trouble) and not need.without for need in here)
    lines.append(f"{format_count(len(here), 'thing')} needed: {f'{missing} missing' if missing else 'all there'}")
    return lines


@frozen
class Need:
    """One thing that is needed, and for what. `trouble`: what is wrong with it, "" if it is there."""

    name: str
    """What is needed: a program, an extra, a folder or a secret."""
    used_for: str
    """For what."""
    trouble: str = ""
    fix: str = ""
    """What to do; "" if there is nothing to do."""
    without: str = ""
    """What assay leaves out without it; "" if it is needed."""
    where: str = ""
    """The machines that need it, where doctor does not look; "" for this one."""


class NeedRule(StrictModel):
    """One row of `doctor_needs.yaml`, which says what each field means."""

    programs: list[str] = Field(default=[])
    extras: list[str] = Field(default=[])
    files: list[str] = Field(default=[])
    used_for: str = Field(alias="for")
    fix: str = ""
    declared: list[str] = Field(default=[])
    has: Any = NOT_ASKED
    among: str = ""
    where: str = ""
    without: str = ""

    def list_needs(self, fleet: Fleet) -> Iterator[tuple[str, str]]:
        """Yield each name that the row needs in a fleet, and what there asks for it.

        A part of a load asks for nothing where no node could run it.
        """
        kinds = {node.spec for node in fleet.nodes.values()} if self.where else ()
        has = [fleet.node_specs[kind].list_parts(has_bmc=True, has_fabric=True) for kind in kinds]
        idle = [part for part in LOAD_PARTS if has and all(find_lacking_part(PART_NEEDS[part], own) for own in has)]
        names = [*self.programs, *(f"extra {extra}" for extra in self.extras), *self.files]
        allowed = {value for _, value in find_declared(fleet, self.among.split("."))} if self.among else None
        for path in self.declared:
            for keys, value in find_declared(fleet, path.split(".")):
                if (allowed is None or keys[0] in allowed) and value not in idle and holds(value, self.has):
                    yield from ((name, str(keys[0])) for name in names or [value] if "{" not in name)
        yield from ((name, "") for name in names if not self.declared)


def find_declared(value: Any, path: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield what a path leads to, with the keys that each `*` stood for."""
    if not path:
        yield (), value
        return
    step, rest = path[0], path[1:]
    keys: Iterable[Any] = (step,)
    if step == "*":
        members = vars(value) if isinstance(value, BaseModel) else value
        keys = members if isinstance(members, Mapping) else range(len(members))
    elif step[0] in "?!":
        if bool(get_declared(value, step[1:])) is (step[0] == "?"):
            yield from find_declared(value, rest)
        return
    for key in keys:
        member = get_declared(value, key)
        if member is not None:
            yield from (((key, *more) if step == "*" else more, end) for more, end in find_declared(member, rest))


def get_declared(value: Any, key: Any) -> Any:
    """Return a member of a mapping, a list or a model, None if it has none of this name."""
    if isinstance(value, Mapping):
        return value.get(key)
    if str(key).isdigit():
        return value[int(key)] if int(key) < len(value) else None
    return getattr(value, key, None)


def holds(value: Any, has: Any) -> bool:
    """Whether a declared value is what a row asks for."""
    if isinstance(has, dict):
        return all(holds(get_declared(value, field), wanted) for field, wanted in has.items())
    if has is None or has is True:
        return bool(value) is bool(has)
    patterns = has if isinstance(has, list) else [has]
    return any(fnmatchcase(str(value), pattern) for pattern in patterns)


@fact
class DoctorAnswer:
    """What this fleet needs of this machine, and what of it is missing."""

    needs: list[Need]
    """What is needed; if something is missing without which assay cannot do, the exit code is 1."""
    unused_extras: list[str]
    """The extras of assay that are not installed, and that this fleet does not need."""


def list_needs(workspace: Workspace) -> Iterator[Need]:
    """Yield what the fleet needs of this machine. Raises AssayError for a fleet that cannot be read."""
    fleet = workspace.fleet
    yield from _list_declared_needs(fleet)
    yield _look_at_git(workspace)
    yield from _look_at_data(workspace)
    yield from _look_at_secrets(fleet)
    yield from _look_at_files(workspace)


def find_unused_extras(needs: Iterable[Need]) -> list[str]:
    """Return the extras that are not installed, and that nothing needs."""
    used = {need.name.removeprefix("extra ") for need in needs}
    return [extra for extra in sorted({*EXTRA_OF_MODULE.values()} - used) if list_missing_modules(extra)]


@cache
def read_need_rules() -> list[NeedRule]:
    """Return the rows of `doctor_needs.yaml`."""
    return [NeedRule.model_validate(row) for row in yaml.safe_load(NEEDS_FILE.read_text(encoding="utf-8"))]


def _list_declared_needs(fleet: Fleet) -> list[Need]:
    """Return what the rows need: each name once for each place, where one row that cannot do without it counts."""
    needs = dict[tuple[str, str], Need]()
    for rule in read_need_rules():
        users = dict[str, dict[str, None]]()
        for name, user in rule.list_needs(fleet):
            users.setdefault(name, {})[user] = None
        for name, named in users.items():
            who = format_list(list(filter(None, named)), 3)
            used_for = f"{rule.used_for}: {who}" if who else rule.used_for
            known = needs.get((name, rule.where))
            if known is None:
                trouble = "" if rule.where else _find_lack(name, fleet.root)
                fix = rule.fix or f"pip install 'assay-fleet[{name.removeprefix('extra ')}]'"
                known = Need(name, used_for, trouble, fix, rule.without, rule.where)
            elif not rule.without or known.without:
                without = known.without and rule.without
                known = replace(known, used_for=f"{known.used_for}; {used_for}", without=without)
            needs[name, rule.where] = known
    return list(needs.values())


def _find_lack(name: str, root: Path) -> str:
    if name.startswith("extra "):
        missing = list_missing_modules(name.removeprefix("extra "))
        return f"not installed: {', '.join(missing)}" if missing else ""
    if "/" in name:
        homes = (root, Path(assay.__file__).parents[2])  # a checkout of assay serves its fleets too
        return "" if any((home / name).exists() for home in homes) else "not there"
    return "" if shutil.which(name) else "not on the PATH"


def _look_at_git(workspace: Workspace) -> Need:
    commit, differs = read_revision(workspace.root)
    used_for = "what is acted on"
    if not commit:
        return Need("commit", used_for, "the fleet repository has no commit", "git init, git add, git commit")
    trouble = "files differ from it: assay acts on what is committed" if differs else ""
    return Need(f"commit {commit[:12]}", used_for, trouble, "commit them, or take them back")


def _look_at_data(workspace: Workspace) -> Iterator[Need]:
    where = str(workspace.ledger_location)
    try:
        workspace.ledger_for_reading.close()
        yield Need("ledger", where)
    except AssayError as error:
        is_new = not isinstance(workspace.ledger_location, str) and not workspace.ledger_location.exists()
        yield Need("ledger", f"{where}: none yet" if is_new else where, "" if is_new else error.what, error.fix)
    yield _look_at_folder(str(workspace.data_dir), "the ledger and evidence")
    yield _look_at_folder(str(workspace.reports_dir), "runs, their history and reports")


def _look_at_folder(folder: str, used_for: str) -> Need:
    there = folder
    while not os.path.exists(there):  # noqa: PTH110 — "" ends it
        there = os.path.dirname(there) or "."  # noqa: PTH120
    if not os.access(there, os.W_OK | os.X_OK):
        return Need(folder, used_for, f"nobody may write to {there} here", "run assay as its owner")
    free = shutil.disk_usage(there).free
    trouble = "" if free >= LEAST_FREE_BYTES else f"only {free / 2**20:.0f} MiB are free"
    return Need(folder, used_for, trouble, "make room, or prune: `assay prune`")


def _look_at_files(workspace: Workspace) -> Iterator[Need]:
    from assay.act.boot.image_store import find_file_troubles

    for file, trouble in find_file_troubles(workspace.fleet, workspace.data_dir) if not workspace.home.is_lab else ():
        yield Need(file.name, f"its nodes: {file.artifact.url}", trouble, f"correct {file.where}, or its source")


def _look_at_secrets(fleet: Fleet) -> Iterator[Need]:
    references: dict[str, CredentialReference] = {}
    users: dict[str, list[str]] = {}
    for user, reference in _list_references(fleet):
        key = reference.model_dump_json()
        references[key] = reference
        users.setdefault(key, []).append(user)
    for key, reference in references.items():
        trouble, fix = _try_secret(reference, fleet)
        yield Need(describe_reference(reference), format_list(users[key], 3), trouble, fix)


def _try_secret(reference: CredentialReference, fleet: Fleet) -> tuple[str, str]:
    try:
        if not read_secret(reference, fleet.root):
            return ("not set", f"export {reference.env}=…") if reference.env else ("empty", "write the secret there")
        if reference.file and stat.S_IMODE((fleet.root / reference.file).stat().st_mode) & 0o077:
            return "others on this machine may read it", f"chmod 600 {reference.file}"
    except AssayError as error:
        return error.what, error.fix or "make the file, or correct the reference"
    return "", ""


def _list_references(fleet: Fleet) -> Iterator[tuple[str, CredentialReference]]:
    """Yield each reference to a secret, with what refers to it. Nodes of a pool share their settings."""
    seen = set[int]()
    for node in fleet.nodes.values():
        if id(node.settings) not in seen:
            seen.add(id(node.settings))
            yield from ((f"pool {node.pool}", reference) for reference in _find_references(node.settings))
    used = {name: fleet.node_specs[name] for name in {node.spec for node in fleet.nodes.values()}}
    others = (fleet.ticket_routes, fleet.policies, fleet.monitorings, fleet.provisionings, fleet.deliveries)
    for kind in (used, *others):
        for name, spec in sorted(kind.items()):
            if spec.stands_in:
                continue  # no real machine gets it
            yield from ((f"{spec.kind} {name}", reference) for reference in _find_references(spec))


def _find_references(value: Any) -> Iterator[CredentialReference]:
    if isinstance(value, CredentialReference):
        if not getattr(value, "sha256", ""):
            yield value
    elif isinstance(value, BaseModel):
        yield from _find_in_each(vars(value).values())
    elif isinstance(value, Mapping):
        yield from _find_in_each(value.values())
    elif isinstance(value, list | tuple) and value and not isinstance(value[0], str):  # names: thousands of nodes
        yield from _find_in_each(value)


def _find_in_each(values: Iterable[Any]) -> Iterator[CredentialReference]:
    for value in values:
        yield from _find_references(value)
