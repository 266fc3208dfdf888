"""Reads a fleet repository into a Fleet; or makes one of nodes and specs that were fetched from the cache."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.declare.repository.git import read_revision, resolve_commit
from assay.declare.repository.tree import CommitTree, WorkingFolder
from assay.model.errors import AssayError
from assay.model.fleet import FIELD_OF_KIND, Fleet
from assay.model.node import Node
from assay.model.specs.spec_document import SpecDocument

if TYPE_CHECKING:
    from assay.declare.problems import FleetProblem
    from assay.declare.repository.draft import RepositoryDraft
    from assay.declare.spec_reader import SpecFile
    from assay.declare.yaml import ParseCache
    from assay.model.specs.burn_in import BurnIn
    from assay.model.specs.image import Image
    from assay.model.specs.lifecycle_policy import LifecyclePolicy
    from assay.model.specs.provisioning import Provisioning

BURN_IN = "{burn_in}"
"""Stands in the texts of a policy's states for how long its burn-ins take, so that people read what nodes run."""


@dataclass(frozen=True)
class GroupedSpecs:
    """Specs by Fleet field and name, and the `lines` of a Fleet."""

    by_field: Mapping[str, Mapping[str, Any]]
    lines: Mapping[tuple[str, str], str]


def assemble_fleet(
    root: Path, nodes: Iterable[Node], specs: GroupedSpecs, revision: tuple[str, bool], *, is_lab: bool
) -> Fleet:
    """Return the fleet of these nodes, whose images follow from the specs. `revision`: commit, and whether dirty."""
    policies = {
        name: fill_in_hours(policy, specs.by_field["burn_ins"]) for name, policy in specs.by_field["policies"].items()
    }
    fields = {**specs.by_field, "policies": policies}
    commit, dirty = revision
    by_name = {node.name: node for node in _set_images(nodes, fields["images"], fields["provisionings"])}
    return Fleet(root=root, nodes=by_name, **fields, lines=specs.lines, commit=commit, dirty=dirty, is_lab=is_lab)


def fill_in_hours(policy: LifecyclePolicy, burn_ins: Mapping[str, BurnIn]) -> LifecyclePolicy:
    """Return the policy with the hours of the burn-ins that it names in the texts of its states."""
    named = {name for state in policy.states.values() for name in state.burn_in}
    hours = sorted({burn_ins[name].hours for name in named if name in burn_ins})
    text = " or ".join(map(format_hours, hours)) or "some time"
    states = {}
    for name, state in policy.states.items():
        words = {field: words.replace(BURN_IN, text) for field, words in state.for_customers.model_dump().items()}
        texts = {
            "summary": state.summary.replace(BURN_IN, text),
            "for_customers": state.for_customers.model_copy(update=words),
        }
        states[name] = state.model_copy(update=texts)
    return policy.model_copy(update={"states": states})


def format_hours(hours: float) -> str:
    """Return a time in plain words: `a day`, `2 days`, `4 hours`, `30 minutes`."""
    for length, unit, single in ((24, "days", "a day"), (1, "hours", "an hour")):
        if hours >= length and hours % length == 0:
            return single if hours == length else f"{hours / length:g} {unit}"
    return f"{hours:g} hours" if hours > 1 else f"{hours * 60:g} minutes"


def _set_images(
    nodes: Iterable[Node], images: Mapping[str, Image], provisionings: Mapping[str, Provisioning]
) -> Iterable[Node]:
    """Return the nodes, each with the label of the image that it boots; "" for none."""
    if not images:
        return nodes

    @cache
    def find_label(pool: str, spec: str, own: str) -> str:
        of_pool = next((boot.images for boot in provisionings.values() if boot.applies_to(pool)), {})
        image = images.get(own or of_pool.get(spec, ""))
        return image.label if image else ""

    labels = ((node, find_label(node.pool, node.spec, node.settings.boot_image)) for node in nodes)
    return [node if node.image == label else replace(node, image=label) for node, label in labels]


def load_fleet(
    root: Path, overlays: Sequence[Path] | None = None, rev: str | None = None, cache: ParseCache | None = None
) -> Fleet:
    """Read the fleet repository at `root`.

    `overlays` are the inventory sources of a lab, which override its own, None for the real fleet. `rev` is a git
    revision, read without a checkout; None reads the folder as it is. Fleets that share a cache share equal parts.
    Raises AssayError with the first file that cannot be read or does not fit its model. Contradictions between files
    (a dangling name, a serial number given twice) are found by `assay.declare.check`.
    """
    return build_fleet(read_draft(root, overlays, rev, cache))


def read_draft(
    root: Path, overlays: Sequence[Path] | None = None, rev: str | None = None, cache: ParseCache | None = None
) -> RepositoryDraft:
    """Read what `load_fleet` reads, and collect the problems instead of raising the first one."""
    from assay.declare.repository.draft import RepositoryDraft  # a fleet of the cache needs nothing that reads files

    root = root.absolute()
    return RepositoryDraft(root, overlays, "" if rev is None else resolve_commit(root, rev), cache)


def build_fleet(draft: RepositoryDraft) -> Fleet:
    """Return the fleet of a draft. Raises AssayError with the first problem."""
    if draft.problems:
        raise _make_first_problem_error(draft.problems)
    return build_readable_fleet(draft)


def build_readable_fleet(draft: RepositoryDraft) -> Fleet:
    """Return the fleet as far as it can be read: specs and hosts with a problem are left out."""
    revision = (draft.tree.commit, False) if isinstance(draft.tree, CommitTree) else read_revision(draft.root)
    return assemble_fleet(
        draft.root, draft.nodes, _group_specs(draft.spec_files), revision, is_lab=draft.overlays is not None
    )


def read_nodes(root: Path, overlays: Sequence[Path] | None = None, cache: ParseCache | None = None) -> list[Node]:
    """Return the nodes of an inventory alone, with no image yet. Raises AssayError with the first problem in it."""
    from assay.declare.declared_hosts import InventoryDraft

    declared = InventoryDraft(root, WorkingFolder(root), overlays, cache)
    if declared.problems:
        raise _make_first_problem_error(declared.problems)
    return declared.nodes


def read_grouped_specs(root: Path, cache: ParseCache | None = None) -> GroupedSpecs:
    """Return the specs of a repository alone. Raises AssayError with the first problem in them."""
    from assay.declare.spec_reader import index_spec_files, read_specs

    files, refused = read_specs(WorkingFolder(root), cache)
    if problems := [problem for spec in refused for problem in spec.problems]:
        raise _make_first_problem_error(problems)
    return _group_specs(index_spec_files(files))


def _group_specs(files: Mapping[str, SpecFile]) -> GroupedSpecs:
    """Return the specs of files by `Kind/name`. Kinds that only `assay check` reads have no place in a Fleet."""
    from assay.declare.spec_reader import SpecLineIndex

    specs: dict[str, dict[str, SpecDocument]] = {kind: {} for kind in FIELD_OF_KIND}
    for entry in files.values():
        specs.setdefault(entry.spec.kind, {})[entry.spec.name] = entry.spec
    return GroupedSpecs({place: specs[kind] for kind, place in FIELD_OF_KIND.items()}, SpecLineIndex(files))


def _make_first_problem_error(problems: Sequence[FleetProblem]) -> AssayError:
    """Return the first of these problems as an error that says how many more there are."""
    first = min(problems)
    others = len(set(problems)) - 1
    more = f" (and {others} more)" if others else ""
    fix = "; ".join(part for part in (first.fix, "`assay check` lists every problem") if part)
    return AssayError(f"{first.message}{more}", where=first.where, fix=fix)
