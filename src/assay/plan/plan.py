"""Two revisions of the fleet, compared: what merging the one over the other would do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from assay.model.backtest import Backtest
from assay.plan.cabling import cabling
from assay.plan.declared import Declared, must_be_whole
from assay.plan.excuses import Recount
from assay.plan.facts import Facts, Standing, standing
from assay.plan.follows import Drifting, Follows, follows
from assay.plan.groups import Group, groups
from assay.plan.job import Job, nodes_of
from assay.plan.nodes import NodeChanges, node_changes
from assay.plan.notes import notes
from assay.plan.pairs import pairs
from assay.plan.refusals import Case, Refused, refusals
from assay.plan.rules import (
    Reanswered,
    Reset,
    bundle_resets,
    fabric_resets,
    profile_resets,
    reanswered,
    reclassed,
    resets,
)
from assay.plan.specs import Configuration, FirmwareMove, LimitChange, configuration, firmware_moves, limit_changes
from assay.plan.stale import Staleness
from assay.plan.suites import Rerun, reruns
from assay.plan.work import Change, Work, room_of, work


@dataclass(frozen=True)
class Plan:
    """What merging would do, in the order in which a person wants to know it."""

    base: str
    head: str
    nodes: NodeChanges
    firmware: tuple[FirmwareMove, ...]
    configuration: tuple[Configuration, ...]
    limits: tuple[LimitChange, ...]
    reruns: tuple[Rerun, ...]
    checks_gone: tuple[str, ...]
    recounts: tuple[Recount, ...]
    follows: tuple[Follows, ...]
    cables: tuple[Job, ...]
    answers: tuple[Reanswered, ...]
    policy: tuple[Reset, ...]
    faults: tuple[Reset, ...]
    profiles: tuple[Reset, ...]
    bundles: tuple[Reset, ...]
    fabrics: tuple[Reset, ...]
    work: Work
    backtest: Backtest | None
    notes: tuple[str, ...]
    refused: tuple[Refused, ...]

    @property
    def changes(self) -> bool:
        """Whether merging changes anything for the fleet."""
        nodes = (self.nodes.added, self.nodes.removed, self.nodes.changed)
        specs = (self.firmware, self.configuration, self.limits, self.reruns, self.checks_gone, self.recounts)
        nodes_or_specs = any((*nodes, *specs, self.cables))
        return nodes_or_specs or any(
            (self.answers, self.policy, self.faults, self.profiles, self.bundles, self.fabrics)
        )


def plan(before: Declared, after: Declared, facts: Facts) -> Plan:
    """Compare two revisions, with what is known of the fleet at present. Raises Trouble where one cannot be used."""
    must_be_whole(before)
    must_be_whole(after)
    nodes = node_changes(before.fleet, after.fleet)
    cables = cabling(before.fleet, after.fleet)
    alike = groups(nodes, pairs(before, after, nodes.kept), nodes_of(cables))
    standings = dict(_standings(before, after, facts))
    staleness = Staleness(before, after)
    following = follows(after, _drifting(alike, staleness, facts, standings))
    planned = work(
        after.policy, facts, _changes(after, alike, standings), room_of(after.policy, after.fleet, standings)
    )
    settings = configuration(alike, after)
    return Plan(
        base=before.name,
        head=after.name,
        nodes=nodes,
        firmware=firmware_moves(alike),
        configuration=settings,
        limits=limit_changes(alike, after),
        reruns=reruns(alike, staleness, after, planned.routes),
        checks_gone=staleness.gone,
        recounts=facts.recounts,
        follows=following,
        cables=cables,
        answers=reanswered(before, after),
        policy=resets(before, after),
        faults=reclassed(before, after),
        profiles=profile_resets(before, after),
        bundles=bundle_resets(before, after),
        fabrics=fabric_resets(before, after),
        work=planned,
        backtest=facts.backtest,
        notes=notes(after, standings, following, settings, planned),
        refused=refusals(Case(before, after, facts, nodes, cables, standings, following)),
    )


def _standings(before: Declared, after: Declared, facts: Facts) -> Iterator[tuple[str, Standing]]:
    """Yield where every node of either revision stands; one that will be gone, as the present policy sees it."""
    for name, node in before.fleet.nodes.items():
        yield name, standing(before.policy, facts, node)
    for name, node in after.fleet.nodes.items():
        yield name, standing(after.policy, facts, node)


def _changes(after: Declared, alike: tuple[Group, ...], standings: Mapping[str, Standing]) -> Iterator[Change]:
    for group in alike:
        if group.pair.leaves:
            acts = after.fleet.profiles[group.key[3]].acts_on_faults
            for old, new in group.nodes:
                yield Change(old, new, group.pair, standings[new.name], acts)


def _drifting(
    alike: tuple[Group, ...], staleness: Staleness, facts: Facts, standings: Mapping[str, Standing]
) -> Iterator[tuple[Drifting, list[str]]]:
    """Yield nodes that differ from their new spec, by where they stand."""
    for group in alike:
        if group.pair.drifts:
            stale = staleness.of(group.key, group.pair, group.said)
            places: dict[tuple[str, bool], list[str]] = defaultdict(list)
            for name in group.names:
                places[standings[name].state, _brought(facts, name)].append(name)
            for (state, brought), names in places.items():
                yield Drifting(state, group.key[3], stale, brought), names


def _brought(facts: Facts, name: str) -> bool:
    """Whether the node was zapped already during its stay in the state where it is."""
    story = facts.stories.get(name)
    effect = story.effect_of(story.decision, "zap") if story else None
    return effect is not None and effect.standing in ("done", "verified")
