"""Names that refer to nothing, and names that are given twice."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pydantic import BaseModel, ValidationError

from assay.declare.check import RuleFinding, rule
from assay.declare.declared_hosts import HostDeclaration
from assay.declare.problems import explain_violations
from assay.declare.repository.draft import RepositoryDraft
from assay.model.errors import AssayError
from assay.model.plugins import SCHEDULERS
from assay.model.specs.fabric.design_parts import format_node_list
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.firmware_bundle import FirmwareBundle
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.spec_document import SpecDocument
from assay.model.text.lists import suggest_nearest


@rule("ASY0020", "two specs share a name")
def shared_names(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A reference to this name gets one of the two, and nobody can see which one."""
    for spec in draft.specs:
        first = draft.spec_files[spec.key]
        if first is not spec:
            place = spec.find_position(("name",))
            message = f"{spec.spec.kind} {spec.spec.name} is already given in {first.document.where(('name',))}"
            yield RuleFinding(place, message, "rename one of the two")


@rule("ASY0021", "a node spec that does not exist")
def dangling_node_spec(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A node that refers to no spec cannot be validated."""
    yield from dangling_specs(draft, "node_spec", NodeSpec)


@rule("ASY0022", "a management profile that does not exist")
def dangling_profile(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Without a profile, nobody knows what automation may do on the node."""
    yield from dangling_specs(draft, "profile", ManagementProfile)


@rule("ASY0023", "a fabric that does not exist")
def dangling_fabric(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay cannot compare the node's cables with a design."""
    yield from dangling_specs(draft, "fabric", FabricDesign)


@rule("ASY0024", "a firmware bundle that does not exist")
def dangling_firmware(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Zap does not know which firmware the node must have."""
    bundles = draft.list_names(FirmwareBundle)
    for spec in draft.specs_of_model(NodeSpec).values():
        if spec.firmware and spec.firmware not in bundles and draft.is_complete():
            place = draft.find_position(f"NodeSpec/{spec.name}", "firmware")
            yield RuleFinding(
                place, f"there is no FirmwareBundle {spec.firmware}", suggest_name(spec.firmware, bundles)
            )


@rule("ASY0025", "a fabric design names a node that does not exist")
def unknown_fabric_node(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The scan reports the cables of this node as missing, for ever."""
    names = set(draft.inventory.hosts)
    for design in draft.specs_of_model(FabricDesign).values() if draft.all_hosts_read else ():
        unknown = [name for name in design.node_names() if name not in names and name not in design.adapters]
        if unknown:
            message = f"{design.name}: {format_few_names(unknown)} not in the inventory"
            place = draft.find_position(f"FabricDesign/{design.name}", "nodes")
            gaps = format_node_list(sorted({*design.gap_names, *unknown}))
            fix = f"{suggest_name(unknown[0], names)}; if a node is gone, write `gaps: {gaps}`: its ports stay free"
            if names.isdisjoint(design.node_names()):  # as where the example's pool was deleted
                fix = "list the nodes that it cables in `nodes`; if this fabric is gone, delete its file"
            yield RuleFinding(place, message, fix)
        trays = [name for name in (design.nvlink.node_names if design.nvlink else ()) if name not in names]
        if trays:
            message = f"{design.name}: {format_few_names(trays)} not in the inventory"
            place = draft.find_position(f"FabricDesign/{design.name}", "nvlink", "compute_trays")
            yield RuleFinding(place, message, suggest_name(trays[0], names))


@rule("ASY0026", "a scheduler that cannot be used")
def unusable_scheduler(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay cannot find out whether the node is in use."""
    used = {host.settings.workloads for host in draft.hosts if host.settings} - {"none"}
    if not used:
        return
    names = SCHEDULERS.names()
    yield from _dangling(draft, "workloads", names, "scheduler")
    for name in sorted(used.intersection(names)):
        if not SCHEDULERS.is_own(name):
            yield from _check_scheduler_plugin(draft, name)


def _check_scheduler_plugin(draft: RepositoryDraft, name: str) -> Iterator[RuleFinding]:
    """Yield why a scheduler from outside cannot be loaded, or which variables its `settings_model` refuses."""
    hosts = [host for host in draft.hosts if host.settings and host.settings.workloads == name]
    try:
        model: type[BaseModel] | None = getattr(SCHEDULERS.load(name), "settings_model", None)
    except AssayError as error:
        yield RuleFinding(hosts[0].find_position("workloads"), error.what, error.fix)
        return
    if model is None:
        return
    places = set()
    for host in hosts:
        variables = {field: host.variables[field] for field in model.model_fields if field in host.variables}
        try:
            model.model_validate(variables)
        except ValidationError as error:
            for violation in explain_violations(error, model):
                place = host.find_position(str(violation.path[0]) if violation.path else "workloads")
                if place not in places:
                    places.add(place)
                    yield RuleFinding(place, f"{host.name}: {violation.message}", violation.fix)


def suggest_name(name: str, known: Collection[str]) -> str:
    """Return the fix for an unknown name: the nearest known name, or some of the known names."""
    fallback = f"there is {format_few_names(sorted(known))}" if known else "there is none yet: write one"
    return suggest_nearest(name, known) or fallback


def format_few_names(names: list[str]) -> str:
    """Return up to four names for a sentence, or three and how many more there are."""
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def dangling_specs(draft: RepositoryDraft, variable: str, kind: type[SpecDocument]) -> Iterator[RuleFinding]:
    """Yield variables that name no spec of a kind; nothing if a spec could not be read: it may have the name."""
    if draft.is_complete():
        yield from _dangling(draft, variable, draft.list_names(kind), kind.__name__)


def _dangling(draft: RepositoryDraft, variable: str, known: Collection[str], kind: str) -> Iterator[RuleFinding]:
    """Yield one finding for each line with an unknown name, however many nodes get the variable from it."""
    unknown: dict[tuple[str, int, int], list[HostDeclaration]] = {}
    for host in draft.hosts:
        if host.variables.get(variable) is not None and host.settings and getattr(host.settings, variable) not in known:
            unknown.setdefault(host.find_position(variable), []).append(host)
    for place, hosts in unknown.items():
        name = hosts[0].variables[variable]
        message = f"there is no {kind} {name}, which {format_few_names([host.name for host in hosts])} would use"
        yield RuleFinding(place, message, suggest_name(name, known))
