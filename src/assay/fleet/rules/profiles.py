"""Management profiles that forbid what the policy relies on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from assay.fleet.answers import among, kinds_of, reaches, targets
from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, rule
from assay.model.faults import FaultCatalog
from assay.model.policy import LifecyclePolicy
from assay.model.profile import ManagementProfile


class Way(NamedTuple):
    """A move that the policy makes: from a state, to a state, by what, and the actions that it takes."""

    origin: str
    to: str
    by: str
    actions: tuple[str, ...]


@rule(
    "ASY0100",
    "a profile that forbids what the policy relies on",
    why="A node would be held back from its next state for ever.",
    needs=(LifecyclePolicy, FaultCatalog),
)
def forbidden_move(draft: Draft) -> Iterator[Finding]:
    """Find moves of nodes with a profile that begin with an action which the profile does not allow.

    Looked at are the states that such nodes come to. A profile that does not act on faults needs nothing for the moves
    that only faults make; nor does an escalation, where a person may certify the node out of its state instead.
    """
    starts = {(host.read.profile, host.read.lifecycle_start) for host in draft.hosts if host.read}
    for policy in list(draft.of(LifecyclePolicy).values())[:1]:
        faulted = _fault_ways(draft, policy)
        for profile in draft.of(ManagementProfile).values():
            begin = [state for name, state in sorted(starts) if name == profile.name and state in policy.states]
            for way, missing in _forbidden(policy, profile, faulted, begin):
                move = f"{way.origin} → {way.to} ({way.by})"
                said = f"{profile.name} does not allow {', '.join(missing)}, which {move} takes"
                place = draft.at(f"ManagementProfile/{profile.name}", "actions")
                yield Finding(place, said, f"allow {', '.join(missing)}, or let the policy lead such nodes another way")


def _forbidden(
    policy: LifecyclePolicy, profile: ManagementProfile, faulted: Mapping[str, list[Way]], begin: Sequence[str]
) -> Iterator[tuple[Way, list[str]]]:
    """Yield, once for each state that is led to, a way that the profile forbids, and what of it."""
    reached, waiting, told = set(begin), list(begin), set()
    while waiting:
        here = waiting.pop(0)
        for way in _ways(policy, profile, here, faulted):
            missing = _missing(way, profile)
            if missing and way.to not in told:
                told.add(way.to)
                yield way, missing
            elif not missing and way.to not in reached:
                reached.add(way.to)
                waiting.append(way.to)


def _ways(
    policy: LifecyclePolicy, profile: ManagementProfile, here: str, faulted: Mapping[str, list[Way]]
) -> Iterator[Way]:
    """Yield the moves out of a state on which the policy relies for nodes with this profile."""
    own = [Way(here, to, field, tuple(policy.states[to].entry)) for field, to in policy.states[here].ways_out()]
    by_hand = any(way.by == "certified_to" and not _missing(way, profile) for way in own)
    for way in own:
        if profile.acts_on_faults or not by_hand or not way.by.startswith("escalate"):
            yield way
    yield from faulted.get(here, ()) if profile.acts_on_faults else ()


def _fault_ways(draft: Draft, policy: LifecyclePolicy) -> dict[str, list[Way]]:
    """Return the moves that fault rules make, by the state that they lead out of."""
    kinds = kinds_of(draft.of(FaultCatalog).values())
    found: dict[str, dict[Way, None]] = {}
    for reach in reaches(policy, kinds):
        meanwhile = reach.rule.while_pending if reach.rule.timing == "pending" else []
        for (state, in_use), bits in reach.left.items():
            at_once = meanwhile if in_use else []  # on an idle node nothing is pending
            for to in targets(policy, reach.rule, among(kinds, bits)):
                if policy.may_go(state, to):
                    actions = (*policy.states[to].entry, *at_once)
                    found.setdefault(state, {})[Way(state, to, f"faults.{reach.title}", actions)] = None
    return {state: list(ways) for state, ways in found.items()}


def _missing(way: Way, profile: ManagementProfile) -> list[str]:
    return sorted({*way.actions} - {*profile.actions})
