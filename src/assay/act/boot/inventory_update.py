"""Drafts the lines of the repository that change when another machine, board, BMC or switch stands in a known place.

Only values change: comments, order and all other lines of a file stay as people wrote them. What nobody could read is
asked for, and its line stays: then the other machine proves nothing, which is safe.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from assay.act.boot.proposal import read_committed_file
from assay.declare.repository.git import run_git
from assay.fabric.compare.compare import FabricComparison
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.machines import SeenMachine
from assay.observe.evidence_contents import find_node_serials

Edit = tuple[int, int, str]
"""Where a text begins and ends in a file, and what stands there instead."""


@frozen
class InventoryUpdate:
    """What a node's machine is now: variable → value, where it is not as declared. `questions`: what nobody read."""

    changes: Mapping[str, Any]
    questions: tuple[str, ...] = ()


def find_update(fleet: Fleet, node: Node, seen: SeenMachine, evidence: EvidenceDocument) -> InventoryUpdate:
    """Return what of a node's identity and place differs from the inventory.

    `seen`: what its BMC says, with the certificate that it shows. A delivery with its serial number tells what a
    machine does not say of itself. Raises AssayError where no serial number was read, or two were.
    """
    serials = {*find_node_serials(evidence).values(), seen.serial} - {""}
    if len(serials) != 1:
        problem = f"it says {' and '.join(sorted(serials))}" if serials else "nobody could read it"
        fix = f"let the machine start, or log in to its BMC: assay discover --scan {node.bmc_address} --login"
        raise AssayError(f"the serial number of {node.name} is not known: {problem}", fix=fix)
    (serial,) = serials
    ordered = (machine for delivery in fleet.deliveries.values() for machine in delivery.machines)
    listed = next((machine for machine in ordered if machine.serial_number == serial), None)
    macs, guids = _read_texts(evidence, "nic", "mac"), _read_texts(evidence, "hca", "guid")
    by_rail = [guids[hca.name] for hca in fleet.spec_of(node.name).hcas if hca.name in guids]
    place = evidence.read("bmc", "chassis", "place").value
    stands: dict[str, Any] = place if isinstance(place, dict) else {}
    boot_macs = [mac for mac in macs.values() if mac == node.mac.lower() or len(macs) == 1]
    by_bmc = evidence.read("bmc", "system", "serial")
    is_untrusted = by_bmc.kind == "failed" and "certificate" in by_bmc.reason
    found: dict[str, Any] = {
        "serial_number": serial,
        "bmc_fingerprint": seen.fingerprint if is_untrusted else "",
        "bmc_mac": seen.bmc_mac or (listed.bmc_mac if listed else ""),
        "mac": (listed.mac if listed else "") or seen.mac or next(iter(boot_macs), ""),
        "hca_guids": (listed.hca_guids if listed else []) or (by_rail if len(by_rail) == len(node.hca_guids) else []),
        "endorsement_key_sha256": listed.endorsement_key_sha256 if listed else "",
        "rack": seen.rack or stands.get("rack", {}).get("value", ""),
        "u": seen.u or stands.get("u", {}).get("value", 0),
    }
    declared = {
        "serial_number": node.serial,
        "bmc_fingerprint": node.settings.bmc_fingerprint,
        "bmc_mac": node.bmc_mac.lower(),
        "mac": node.mac.lower(),
        "hca_guids": list(node.hca_guids),
        "endorsement_key_sha256": node.settings.endorsement_key_sha256,
        "rack": node.rack,
        "u": node.u,
    }
    changes = {name: value for name, value in found.items() if value and value != declared[name]}
    is_other = bool(changes.keys() - {"rack", "u"})
    questions = [
        f"{name}: read it on the machine, and correct its line by hand"
        for name in ("mac", "endorsement_key_sha256")
        if is_other and declared[name] and not found[name]
    ]
    return InventoryUpdate(changes, tuple(questions))


def _read_texts(evidence: EvidenceDocument, branch: str, leaf: str) -> dict[str, str]:
    """Return the part's name → its reading as text, for each part of a branch of the probe that gave one."""
    parts = evidence.read("probe", branch).value
    names = parts if isinstance(parts, dict) else {}
    readings = {name: evidence.read("probe", branch, name, leaf) for name in names}
    return {name: str(reading.value).lower() for name, reading in readings.items() if reading.kind == "value"}


def find_new_guids(comparison: FabricComparison, device: str) -> dict[str, str]:
    """Return the GUID that the design has of a replaced device → the one that stands in its place."""
    for discrepancy in comparison.discrepancies:
        if discrepancy.kind == "device-replaced" and discrepancy.device == device:
            designed = {end.guid for pair in discrepancy.cables if pair.expected for end in pair.expected.ends}
            own = {end.guid for end in discrepancy.ends if end.device == device} & designed
            new = {end.guid for end in discrepancy.ends} - designed
            if len(own) == len(new) == 1:
                return {own.pop(): new.pop()}
    return {}


def draft_node_lines(root: Path, node: str, changes: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the path of the file that declares a node's serial number, its committed text, and the one with changes.

    Raises AssayError where no committed file of the inventory has it.
    """

    def edit(text: str) -> list[Edit]:
        return [each for host in _find_hosts(text, node) for each in _list_host_edits(host, changes)]

    return _draft(root, "inventory", edit, f"the inventory lists no host {node} with a serial_number")


def draft_guids(root: Path, guids: Mapping[str, str]) -> tuple[str, str, str]:
    """Return the path of the design with these GUIDs, its committed text, and the one with the new GUIDs."""

    def edit(text: str) -> list[Edit]:
        scalars = (each for each in _walk(yaml.compose(text)) if isinstance(each, yaml.ScalarNode))
        return [_replace(each, guids[each.value.lower()]) for each in scalars if each.value.lower() in guids]

    return _draft(root, "specs/fabrics", edit, f"no design has the GUID {', '.join(guids)}: a rule makes it")


def _draft(root: Path, folder: str, edit: Callable[[str], list[Edit]], problem: str) -> tuple[str, str, str]:
    listed = run_git(root, "ls-tree", "-r", "--name-only", "-z", "HEAD", folder).stdout.decode()
    for path in listed.split("\0"):
        text = read_committed_file(root, path) if path.endswith((".yml", ".yaml")) else ""
        if edits := edit(text):
            changed = text
            for start, end, new in sorted(edits, reverse=True):
                changed = changed[:start] + new + changed[end:]
            return path, text, changed
    raise AssayError(problem, where=folder, fix="commit the file that declares it, or correct the line by hand")


def format_diff(path: str, before: str, after: str) -> str:
    """Return the change of a file as a diff that `git apply` takes."""
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return "".join(lines).rstrip("\n")


def _walk(tree: Any) -> Iterator[yaml.Node]:
    if isinstance(tree, yaml.Node):
        yield tree
        for below in tree.value if isinstance(tree, yaml.CollectionNode) else ():
            for each in below if isinstance(below, tuple) else (below,):
                yield from _walk(each)


def _find_hosts(text: str, node: str) -> Iterator[yaml.MappingNode]:
    """Yield the mapping of the host with its serial number, in an inventory or in a file of its variables."""
    for mapping in _walk(yaml.compose(text) if text else None):
        for key, below in mapping.value if isinstance(mapping, yaml.MappingNode) else ():
            names = {name.value for name, _ in below.value} if isinstance(below, yaml.MappingNode) else set()
            if key.value == node and "serial_number" in names:
                yield below


def _list_host_edits(host: yaml.MappingNode, changes: Mapping[str, Any]) -> Iterator[Edit]:
    values = {key.value: below for key, below in host.value}
    after = values["serial_number"].end_mark.index
    indent = " " * host.start_mark.column
    for name, value in changes.items():
        below = values.get(name)
        if isinstance(value, list) and isinstance(below, yaml.SequenceNode) and len(below.value) == len(value):
            yield from (_replace(item, new) for item, new in zip(below.value, value, strict=True))
        elif isinstance(below, yaml.ScalarNode):
            yield _replace(below, value)
        elif below is None and not isinstance(value, list):
            yield after, after, f"\n{indent}{name}: {_quote(value)}"


def _replace(scalar: yaml.Node, value: Any) -> Edit:
    is_quoted = isinstance(scalar, yaml.ScalarNode) and scalar.style in ("'", '"')
    text = f'"{value}"' if is_quoted else _quote(value)
    return scalar.start_mark.index, scalar.end_mark.index, text


def _quote(value: Any) -> str:
    """Return a value as YAML: quoted where it would be read as something else than itself."""
    return yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("\n").removesuffix("\n...")
