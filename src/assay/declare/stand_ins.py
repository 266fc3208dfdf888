"""Finds what stands in for a site's own: documents with the mark `stands_in`, and values that only examples have.

The lab works with them. For real machines, `assay check` lists them, and what would use one refuses, with its line.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.model.errors import AssayError
from assay.model.facts import frozen

if TYPE_CHECKING:
    from assay.model.fleet import Fleet
    from assay.model.specs.spec_document import SpecDocument

PLACEHOLDERS_FILE = Path(__file__).with_name("placeholders.yaml")
PROSE = frozenset(
    {"description", "source", "sources", "why", "reason", "stands_in", "for_customers", "summary", "issue"}
)
"""Keys of texts and links for people: nothing acts on them."""
SETTING_FIELDS = ("bmc", "host")
"""The fields of a node spec that a change of settings writes to a machine."""
NODE_VARIABLES = {"serial": "serial_number", "bmc_address": "bmc_address", "mac": "mac", "bmc_mac": "bmc_mac"}
"""What tells which machine a node is: field of Node → variable of the inventory."""


@frozen
class StandIn:
    """The entry at `path` of a document: a message that says what it is, and what to do about it."""

    path: tuple[Any, ...]
    message: str
    fix: str


@cache
def _read_placeholders() -> tuple[tuple[re.Pattern[str], str], ...]:
    import yaml  # `assay status` needs only the names of settings

    listed = yaml.safe_load(PLACEHOLDERS_FILE.read_text(encoding="utf-8"))
    return tuple((re.compile(placeholder["pattern"]), str(placeholder["what"])) for placeholder in listed)


def find_placeholder(text: str) -> str:
    """Return what kind of example a value is, "" for a value that a machine may have."""
    return next((kind for pattern, kind in _read_placeholders() if pattern.search(text)), "")


def find_placeholders(data: Any, path: tuple[Any, ...] = ()) -> Iterator[StandIn]:
    """Yield each placeholder in plain data, keys included. Texts for people do not count."""
    if isinstance(data, str):
        if kind := find_placeholder(data):
            yield StandIn(path, f"{'.'.join(map(str, path))}: {data!r} is {kind}", "write your own value")
    elif isinstance(data, Mapping):
        for key, value in data.items():
            if key not in PROSE:
                yield from find_placeholders(value, (*path, key))
    elif isinstance(data, list | tuple):
        for number, value in enumerate(data):
            yield from find_placeholders(value, (*path, number))


def find_spec_stand_ins(spec: SpecDocument) -> Iterator[StandIn]:
    """Yield the mark of a document, then each placeholder in it."""
    if spec.stands_in:
        fix = f"{spec.stands_in}; then remove `stands_in`"
        yield StandIn(("stands_in",), f"{spec.kind} {spec.name} stands in for your own", fix)
    yield from find_placeholders(spec.model_dump(exclude_unset=True))


def refuse_spec(fleet: Fleet, spec: SpecDocument, user: str, *fields: str) -> None:
    """Raise AssayError if the fleet is real and `spec` stands in, or a placeholder is in it (below `fields`, if given).

    `user` would use it, such as "a network start".
    """
    if fleet.is_lab:
        return
    for stand_in in find_spec_stand_ins(spec):
        if stand_in.path == ("stands_in",) or not fields or stand_in.path[0] in fields:
            key = f"{spec.kind}/{spec.name}"
            dotted = ".".join(map(str, stand_in.path))
            where = fleet.lines.get((key, dotted)) or fleet.lines.get((key, ""), key)
            raise _make_refusal(user, stand_in, where)


def find_refused_settings(fleet: Fleet) -> dict[str, str]:
    """Return, by node, why its settings cannot be brought: its spec has an example among those of BMC or host.

    Such a node must not leave service for a zap that is refused.
    """
    reasons = _find_refused(fleet, fleet.node_specs, "a change of settings", *SETTING_FIELDS)
    return {node.name: reasons[node.spec] for node in fleet.nodes.values() if node.spec in reasons}


def list_refused_zaps(fleet: Fleet, names: Iterable[str], pushed: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield node and reason where an example refuses a zap on a real machine; `pushed` are nodes that get firmware."""
    settings, bundles = find_refused_settings(fleet), _find_refused(fleet, fleet.bundles, "a push of firmware")
    for name in names if not fleet.is_lab else ():
        bundle, node = fleet.spec_of(name).firmware if name in pushed else "", fleet.nodes[name]
        kinds = {variable: find_placeholder(getattr(node, field)) for field, variable in NODE_VARIABLES.items()}
        machine = next((f"{variable} in the inventory is {kind}" for variable, kind in kinds.items() if kind), "")
        known = (machine, settings.get(name), bundles.get(bundle))
        yield from ((name, reason) for reason in known if reason)


def _find_refused(fleet: Fleet, specs: Mapping[str, SpecDocument], user: str, *fields: str) -> dict[str, str]:
    """Return why `user` would be refused, by the name of the spec, with its line."""
    reasons = dict[str, str]()
    for name, spec in specs.items():
        try:
            refuse_spec(fleet, spec, user, *fields)
        except AssayError as error:
            reasons[name] = f"{error.where}: {error.what}"
    return reasons


def refuse_workload(fleet: Fleet, workload: SpecDocument) -> None:
    """Raise AssayError if no search may run a workload: an example on real nodes, or a real program from the lab."""
    refuse_spec(fleet, workload, "a search")
    if fleet.is_lab and not workload.stands_in:
        where = fleet.lines.get((f"{workload.kind}/{workload.name}", ""), workload.name)
        message = f"the lab is chosen, and the programs of {workload.name} would run on real machines"
        raise AssayError(message, where=where, fix="name a workload that stands in for it, such as virtual")


def refuse_node(fleet: Fleet, name: str, user: str) -> None:
    """Raise AssayError if the fleet is real and what identifies the machine of a node is a placeholder."""
    if fleet.is_lab:
        return
    node = fleet.nodes[name]
    data = {variable: getattr(node, field) for field, variable in NODE_VARIABLES.items()}
    for stand_in in find_placeholders(data):
        raise _make_refusal(user, stand_in, _find_host_line(fleet, name, stand_in.path[0]))


def _find_host_line(fleet: Fleet, name: str, variable: str) -> str:
    """Return the line of a node's variable in the inventory, which a Fleet does not keep."""
    from assay.declare.declared_hosts import InventoryDraft
    from assay.declare.repository.tree import WorkingFolder

    hosts = InventoryDraft(fleet.root, WorkingFolder(fleet.root)).hosts
    place = next((host.find_position(variable) for host in hosts if host.name == name), None)
    return f"{place[0]}:{place[1]} ({name})" if place else name


def _make_refusal(user: str, stand_in: StandIn, where: str) -> AssayError:
    return AssayError(f"{user} is refused on a real machine: {stand_in.message}", where=where, fix=stand_in.fix)
