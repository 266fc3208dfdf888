"""Images and provisioning that name what does not exist, contradict each other, or fit no hardware."""

from __future__ import annotations

from collections.abc import Iterator

from assay.declare.check import RuleFinding, rule
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.rules.dangling_names import dangling_specs, suggest_name
from assay.model.specs.image import Image
from assay.model.specs.machines import ExpectedMachines
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.provisioning import Provisioning
from assay.model.specs.spec_document import SpecDocument


@rule("ASY0360", "an image that does not exist", why="The machine asks what to boot, and gets no answer.")
def dangling_image(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find images that a provisioning or a host names and no document declares."""
    yield from dangling_specs(draft, "boot_image", Image)
    known = draft.list_names(Image)
    for spec in draft.specs_of_model(Provisioning).values() if draft.is_complete() else ():
        for node_spec, image in spec.images.items():
            if image not in known:
                place = draft.find_position(f"Provisioning/{spec.name}", "images", node_spec)
                yield RuleFinding(place, f"there is no Image {image}", suggest_name(image, known))


@rule("ASY0361", "an image for other hardware", why="The node boots what was never made for it, or does not boot.")
def unfit_image(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find images that the declared hardware may not boot."""
    images = draft.specs_of_model(Image)
    for spec in draft.specs_of_model(Provisioning).values():
        for node_spec, name in spec.images.items():
            if name in images and not images[name].fits(node_spec):
                place = draft.find_position(f"Provisioning/{spec.name}", "images", node_spec)
                message = f"Image {name} is for {', '.join(images[name].node_specs)}, not for {node_spec}"
                yield RuleFinding(place, message, "name another image, or add the spec to the image's `node_specs`")


@rule("ASY0362", "two ways to boot one pool", why="assay cannot know which of the two a machine must get.")
def pools_twice(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find pools for which two provisionings hold."""
    first: dict[str, str] = {}
    pools = sorted({host.pool for host in draft.hosts})
    for spec in draft.specs_of_model(Provisioning).values():
        for pool in filter(spec.applies_to, pools):
            if first.setdefault(pool, spec.name) != spec.name:
                place = draft.find_position(f"Provisioning/{spec.name}", "pools" if spec.pools else "name")
                yield RuleFinding(place, f"{first[pool]} holds for pool {pool} too", "let one of the two hold for it")
                break


@rule(
    "ASY0363",
    "a delivery of nodes that do not fit the fleet",
    why="The machine would become a node of a kind that nobody declared, or a second node of one name.",
)
def impossible_deliveries(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find deliveries with an unknown spec or profile, and machines whose name or serial another node has."""
    by_name = {host.name: host.settings.serial_number for host in draft.hosts if host.settings}
    by_serial = {serial: name for name, serial in by_name.items()}
    for spec in draft.specs_of_model(ExpectedMachines).values():
        key = f"ExpectedMachines/{spec.name}"
        yield from _find_unknown(draft, key, "node_spec", spec.node_spec, NodeSpec)
        yield from _find_unknown(draft, key, "profile", spec.profile, ManagementProfile)
        for number, machine in enumerate(spec.machines):
            serial = machine.serial_number
            place = draft.find_position(key, "machines", number)
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
