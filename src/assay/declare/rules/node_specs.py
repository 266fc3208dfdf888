"""Parts of node specs that are given twice, settings that nobody brings, and numbers that no hardware has.

Also images and deliveries that name what does not exist, contradict each other, or fit no hardware.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from assay.declare.check import FilePosition, RuleFinding, rule
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.repository.playbooks import (
    BRINGS,
    CONFIGURE_PLAYBOOK,
    ZAP_PLAYBOOK,
    find_yaml_error,
    list_configuring_roles,
)
from assay.declare.rules.dangling_names import dangling_specs, suggest_name
from assay.declare.rules.measurement_limits import NumberBound
from assay.declare.yaml import YAML_FIX
from assay.model.reading import READ_SYSCTLS
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.image import Image
from assay.model.specs.machines import ExpectedMachines
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.node.declared_settings import SETTING_ROLES, list_declared_settings
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.provisioning import Provisioning
from assay.model.specs.spec_document import SpecDocument

EntryPath = tuple[str | int, ...]


PART_BOUNDS: dict[tuple[str, ...], NumberBound] = {
    ("nics", "speed_mbps"): NumberBound(1000, 1_600_000, "Mb/s", "Ethernet runs at 1 Gb/s to 1.6 Tb/s (IEEE 802.3)"),
    ("nics", "mtu"): NumberBound(68, 16_384, "bytes", "no Ethernet adapter takes frames of more than 16 KiB"),
    ("nvme", "count"): NumberBound(0, 128, "drives", "no server holds more than 128 drives"),
    ("nvme", "size_gb"): NumberBound(1, 1_000_000, "GB", "no drive holds a petabyte"),
    ("disks", "size_gb"): NumberBound(1, 1_000_000, "GB", "no drive holds a petabyte"),
    ("psus", "count"): NumberBound(0, 64, "supplies", "no server has more than 64 power supplies"),
    ("fans",): NumberBound(0, 256, "fans", "no server has more than 256 fans"),
    ("cpu_sockets",): NumberBound(0, 32, "sockets", "no server has more than 32 sockets"),
    ("cpu_threads",): NumberBound(0, 16_384, "threads", "no server has more than 16,384 threads"),
    ("memory_gib",): NumberBound(0, 131_072, "GiB", "no server has more than 128 TiB of memory"),
    ("host", "dimms", "speed_mts"): NumberBound(400, 20_000, "MT/s", "DDR memory runs at 400 to 20,000 MT/s"),
}
"""By path in a node spec; a list's items are all bound."""
TALLEST_RACK = 52  # units: the tallest racks that vendors sell for servers
LONGEST_CABLE_M = 10_000  # the reach of long-reach optics (IEEE 802.3, LR4)


@rule("ASY0239", "one PCI place with two parts")
def shared_pci_place(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """One of the two parts is never looked at: a GPU that is missing or degraded then passes every check."""
    for spec in draft.specs_of_model(NodeSpec).values():
        seen: dict[str, str] = {}
        for path, part, pci in _list_pci_places(spec):
            domain, *address = pci.strip().lower().rsplit(":", 2)
            if len(address) == 1:  # without a domain, which is then 0
                domain, address = "", [domain, *address]
            first = seen.setdefault(":".join((domain.lstrip("0"), *address)), part)
            if first != part:
                message = f"{part} has the PCI address {pci}, which {first} has too"
                yield RuleFinding(_find(draft, spec, path), message, "correct one of the two")


@rule("ASY0240", "two parts of one name")
def shared_part_name(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """What is read of one of the two is judged twice, and the other one never."""
    for spec in draft.specs_of_model(NodeSpec).values():
        seen: set[str] = set()
        for kind in ("hcas", "nics"):
            for number, part in enumerate(getattr(spec, kind)):
                if part.name in seen:
                    message = f"{part.name} is given twice"
                    yield RuleFinding(_find(draft, spec, (kind, number, "name")), message, "correct one of the two")
                seen.add(part.name)


@rule("ASY0241", "a number that no hardware has")
def impossible_number(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """With a digit too many or another unit, every node fails its check, or none ever does."""
    for spec in draft.specs_of_model(NodeSpec).values():
        for steps, bound in PART_BOUNDS.items():
            for path, number in _list_numbers(spec, steps):
                if not bound.low <= number <= bound.high:
                    message = f"{'.'.join(map(str, path))} is {number:,} {bound.unit}, but {bound.because}"
                    fix = f"use {bound.low:,} to {bound.high:,} {bound.unit}"
                    yield RuleFinding(_find(draft, spec, path), message, fix)
        dimms = spec.host.dimms
        if dimms and dimms.count * dimms.size_gib != spec.memory_gib:
            total = dimms.count * dimms.size_gib
            message = f"{dimms.count} modules of {dimms.size_gib} GiB are {total:,} GiB, not {spec.memory_gib:,}"
            yield RuleFinding(_find(draft, spec, ("memory_gib",)), message, "correct memory_gib, or host.dimms")


@rule("ASY0242", "a place or a length that cannot be meant")
def impossible_place(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A ticket sends a technician to a unit that no rack has, or asks for a cable that nobody makes."""
    racks = {(host.settings.site, host.settings.rack): host.settings for host in draft.hosts if host.settings}
    heights = {spec.name: spec.height_u for spec in draft.specs_of_model(NodeSpec).values()}
    for host in draft.hosts:
        top = host.settings.u + heights.get(host.settings.node_spec, 1) - 1 if host.settings else 0
        if host.settings and top > (height := min(host.settings.rack_height_u, TALLEST_RACK)):
            message = f"{host.name} fills U{host.settings.u} to U{top}, but its rack has {height} units"
            fix = f"correct `u` or the spec's `height_u`, or give `rack_height_u` of a rack up to {TALLEST_RACK} units"
            yield RuleFinding(host.find_position("u"), message, fix)
    for design in draft.specs_of_model(FabricDesign).values():
        for tier, number, switch in design.list_switch_places():
            neighbour = racks.get((design.site, switch.rack))
            height = min(neighbour.rack_height_u, TALLEST_RACK) if neighbour else TALLEST_RACK
            if switch.u > height:
                message = f"{design.name}: a switch in U{switch.u}, but {switch.rack} has {height} units"
                fix = "correct `u`, or give `rack_height_u` of the rack's nodes"
                yield RuleFinding(_find_in_design(draft, design, tier, "at", number, "u"), message, fix)
        for path, length in _list_lengths(design):
            if length > LONGEST_CABLE_M:
                message = f"{design.name}: a cable of {length:,g} m, but no optics reach {LONGEST_CABLE_M:,} m"
                yield RuleFinding(_find_in_design(draft, design, *path), message, "give the length in metres")


def _list_pci_places(spec: NodeSpec) -> Iterator[tuple[EntryPath, str, str]]:
    for number, pci in enumerate(spec.gpus.pci):
        yield ("gpus", "pci", number), f"gpu{number}", pci
    for number, hca in enumerate(spec.hcas):
        yield ("hcas", number, "pci"), f"the HCA {number} ({hca.name})", hca.pci


def _list_numbers(value: Any, steps: tuple[str, ...], path: EntryPath = ()) -> Iterator[tuple[EntryPath, float]]:
    """Yield path and number of each entry that these steps lead to."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _list_numbers(item, steps, (*path, number))
    elif steps and value is not None:
        yield from _list_numbers(getattr(value, steps[0]), steps[1:], (*path, steps[0]))
    elif value is not None:
        yield path, value


def _list_lengths(design: FabricDesign) -> Iterator[tuple[EntryPath, float]]:
    for tier in type(design.lengths).model_fields:
        yield ("lengths", tier), getattr(design.lengths, tier)
    for number, cable in enumerate(design.cables):
        yield ("cables", number), cable.length_m


@rule("ASY0272", "a declared setting that no role brings", needs=(NodeSpec, ManagementProfile))
def unbrought_setting(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Zap leaves the setting as it is, and fails when it compares the node with its spec."""
    playbooks = draft.tree.files("playbooks")
    if ZAP_PLAYBOOK not in playbooks:
        return
    if CONFIGURE_PLAYBOOK in playbooks and (error := find_yaml_error(draft.tree, CONFIGURE_PLAYBOOK)):
        message = f"nobody knows what this playbook brings: it is no YAML: {error[1]}"
        yield RuleFinding(error[0], message, YAML_FIX)
    roles = list_configuring_roles(draft.tree)
    for spec, with_host in _list_zapped_specs(draft).values():
        for setting in list_declared_settings(spec):
            role = SETTING_ROLES[setting]
            if role.role not in roles and (with_host or role.home == "bmc"):
                message = f"{setting}: no role of {CONFIGURE_PLAYBOOK} brings it"
                fix = (
                    f"add the role assay.fleet.{role.role} there, or `{BRINGS}: [{role.role}]` to the vars of your own"
                )
                yield RuleFinding(_find(draft, spec, tuple(setting.split("."))), message, fix)


def _list_zapped_specs(draft: RepositoryDraft) -> dict[str, tuple[NodeSpec, bool]]:
    """Return the specs of nodes that automation may zap, and whether it also brings the operating system's settings."""
    specs = draft.specs_of_model(NodeSpec)
    profiles = draft.specs_of_model(ManagementProfile)
    zapped: dict[str, tuple[NodeSpec, bool]] = {}
    for host in draft.hosts:
        if host.settings is None:
            continue
        spec = specs.get(host.settings.node_spec)
        profile = profiles.get(host.settings.profile)
        if spec is not None and profile is not None and "zap" in profile.actions:
            zapped[spec.name] = (spec, zapped.get(spec.name, (spec, False))[1] or profile.host_settings)
    return zapped


@rule("ASY0273", "a sysctl that the probe does not read", needs=(NodeSpec,))
def unread_sysctl(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Nobody can tell whether a node has the value, and what is unknown is never as declared."""
    for spec in draft.specs_of_model(NodeSpec).values():
        for name in spec.host.sysctls:
            if name not in READ_SYSCTLS:
                message = f"the probe does not read {name}"
                yield RuleFinding(
                    _find(draft, spec, ("host", "sysctls", name)), message, suggest_name(name, READ_SYSCTLS)
                )


@rule("ASY0275", "a wipe that only spec or profile wants", severity="warning", needs=(NodeSpec, ManagementProfile))
def half_a_wipe(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """No drive is erased: what is on it leaves with the node, or a person takes it out."""
    known, used = draft.specs_of_model(NodeSpec), defaultdict[str, list[NodeSpec]](list)
    for kind, name in {(host.settings.node_spec, host.settings.profile) for host in draft.hosts if host.settings}:
        used[name] += [known[kind]] if kind in known else []
    for name, profile in draft.specs_of_model(ManagementProfile).items():
        wiped = [spec for spec in used[name] if spec.wipe and "wipe" in profile.actions]
        if "wipe" not in profile.may:
            for spec in wiped:
                message = f"its drives are to be wiped, and `may` of the profile {name} does not name wipe"
                yield RuleFinding(_find(draft, spec, ("wipe",)), message, "add wipe to `may`, or take it out here")
        elif used[name] and not wiped:
            place = draft.find_position(f"ManagementProfile/{name}", "may")
            yield RuleFinding(
                place, "no spec of its nodes says how to wipe", "write `wipe` into the spec (docs/day-0.md)"
            )


def _find(draft: RepositoryDraft, spec: NodeSpec, path: EntryPath) -> FilePosition:
    return draft.find_position(f"NodeSpec/{spec.name}", *path)


def _find_in_design(draft: RepositoryDraft, design: FabricDesign, *path: str | int) -> FilePosition:
    return draft.find_position(f"FabricDesign/{design.name}", *path)


@rule("ASY0360", "an image that does not exist")
def dangling_image(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The machine asks what to boot, and gets no answer."""
    yield from dangling_specs(draft, "boot_image", Image)
    known = draft.list_names(Image)
    for spec in draft.specs_of_model(Provisioning).values() if draft.is_complete() else ():
        for node_spec, image in spec.images.items():
            if image not in known:
                place = draft.find_position(f"Provisioning/{spec.name}", "images", node_spec)
                yield RuleFinding(place, f"there is no Image {image}", suggest_name(image, known))


@rule("ASY0361", "an image for other hardware")
def unfit_image(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The node boots what was never made for it, or does not boot."""
    images = draft.specs_of_model(Image)
    for spec in draft.specs_of_model(Provisioning).values():
        for node_spec, name in spec.images.items():
            if name in images and not images[name].fits(node_spec):
                place = draft.find_position(f"Provisioning/{spec.name}", "images", node_spec)
                message = f"Image {name} is for {', '.join(images[name].node_specs)}, not for {node_spec}"
                yield RuleFinding(place, message, "name another image, or add the spec to the image's `node_specs`")


@rule("ASY0362", "two ways to boot one pool")
def pools_twice(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay cannot know which of the two a machine must get."""
    first: dict[str, str] = {}
    pools = sorted({host.pool for host in draft.hosts})
    for spec in draft.specs_of_model(Provisioning).values():
        for pool in filter(spec.applies_to, pools):
            if first.setdefault(pool, spec.name) != spec.name:
                place = draft.find_position(f"Provisioning/{spec.name}", "pools" if spec.pools else "name")
                yield RuleFinding(place, f"{first[pool]} holds for pool {pool} too", "let one of the two hold for it")
                break


@rule("ASY0363", "a delivery of nodes that do not fit the fleet")
def impossible_deliveries(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The machine would become a node of a kind that nobody declared, a second of one name, or one of other height."""
    heights = {spec.name: spec.height_u for spec in draft.specs_of_model(NodeSpec).values()}
    by_name = {host.name: host.settings.serial_number for host in draft.hosts if host.settings}
    by_serial = {serial: name for name, serial in by_name.items()}
    for spec in draft.specs_of_model(ExpectedMachines).values():
        key = f"ExpectedMachines/{spec.name}"
        yield from _find_unknown(draft, key, "node_spec", spec.node_spec, NodeSpec)
        yield from _find_unknown(draft, key, "profile", spec.profile, ManagementProfile)
        for number, machine in enumerate(spec.machines):
            serial = machine.serial_number
            place = draft.find_position(key, "machines", number)
            units = (machine.top_u or machine.u) - machine.u + 1
            if machine.top_u and units != (declared := heights.get(spec.node_spec, units)):
                message = f"{machine.name} fills {units} units, U{machine.u} to U{machine.top_u}, not {declared}"
                yield RuleFinding(place, message, f"correct `u` and `top_u`, or `height_u` of {spec.node_spec}")
            if by_name.get(machine.name, serial) != serial:
                message = f"{machine.name} is in the inventory, with serial {by_name[machine.name]}"
                yield RuleFinding(place, message, "give the new machine a name of its own, or correct its serial")
            elif (known := by_serial.get(serial, machine.name)) != machine.name:
                yield RuleFinding(place, f"serial {serial} is node {known} in the inventory", "remove one of the two")


def _find_unknown(
    draft: RepositoryDraft, key: str, field: str, name: str, kind: type[SpecDocument]
) -> Iterator[RuleFinding]:
    known = draft.list_names(kind)
    if name not in known and draft.is_complete():
        message = f"there is no {kind.__name__} {name}"
        yield RuleFinding(draft.find_position(key, field), message, suggest_name(name, known))
