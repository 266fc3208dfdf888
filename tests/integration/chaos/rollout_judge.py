"""What must hold of rollouts: judged by the world's journal, the scheduler's own log and the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from assay.decide.rollouts.rollout_history import ROLLOUTS, Rollout, RolloutHistory, RolloutMember
from assay.decide.state.node_projection import NodeStateProjection, project_node_states
from assay.model.cordon_ownership import is_our_reason
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.policy_sections import count_allowed_out
from tests.integration.chaos.rolling_world import FAILURES, Event, encode

ENDS = ("rollout.finished", "rollout.aborted", "rollout.superseded")
PLANTED = (*FAILURES, "by hand")
"""After one of these, a component may be flashed to the same version, and a node may lack its proof."""


@dataclass(frozen=True)
class RolloutStory:
    """What happened: the ledger's entries, the world's events, and the versions of each commit."""

    fleet: Fleet
    versions: Mapping[str, Mapping[str, str]]
    entries: list[LedgerEntry]
    events: list[Event]

    @cached_property
    def history(self) -> RolloutHistory:
        return ROLLOUTS.fold(self.entries)

    @cached_property
    def intents(self) -> dict[str, int]:
        """The number of each effect's first entry in the ledger."""
        return {one.body["effect"]: one.seq for one in self.entries if one.kind == "effect.intent"}

    def orders(self, rollout: str) -> list[LedgerEntry]:
        return [one for one in self.entries if one.kind == "move" and one.body.get("rollout") == rollout]

    def waves(self, rollout: Rollout) -> list[list[LedgerEntry]]:
        """Return the orders that were given together. Nodes that were under way get theirs without a wave."""
        waves: list[list[LedgerEntry]] = []
        for one in self.orders(rollout.id):
            if rollout.members[one.node].is_under_way:
                continue
            if not waves or waves[-1][-1].at != one.at or one.seq - waves[-1][-1].seq > len(rollout.members):
                waves.append([])
            waves[-1].append(one)
        return waves

    def has_failed(self, node: str, since: int, until: int) -> bool:
        """Whether a planted failure came true for the node, between these two entries."""
        at = (self.intents.get(one.effect, 0) for one in self.events if one.node == node and one.what in FAILURES)
        return any(since < seq < until for seq in at)


def find_wrongs(story: RolloutStory) -> Iterator[str]:
    """Yield everything that must not be."""
    yield from find_repeated_flashes(story.events)
    yield from find_wrong_failures(story)
    yield from find_wrong_cordons(story)
    yield from find_repeated_entries(story)
    for rollout in story.history.rollouts.values():
        yield from find_wrong_waves(story, rollout)
        yield from find_wrong_ends(story, rollout)


def find_repeated_flashes(events: Collection[Event]) -> Iterator[str]:
    """Yield what was flashed or reset twice to the same versions without a planted failure between, or under a job."""
    last: dict[tuple[str, str], str] = {}
    for one in events:
        if one.what in PLANTED:
            last = {key: version for key, version in last.items() if key[0] != one.node}
        if one.what == "disturbed":
            yield f"{one.node} was flashed while {one.detail} ran on it"
        if one.what in ("flash", "reset"):
            component, version = one.detail.split(" ", 1) if one.what == "flash" else ("all", one.detail)
            if last.get((one.node, component)) == version:
                yield f"{one.node}: {one.what} of {component} to {version} twice in a row"
            last[one.node, component] = version


def find_wrong_failures(story: RolloutStory) -> Iterator[str]:
    """Yield effects that are said to have failed, although no failure was planted for them."""
    planted = {one.effect for one in story.events if one.what in FAILURES}
    for one in story.entries:
        if one.kind == "effect.failed" and one.body["action"] == "zap" and one.body["effect"] not in planted:
            yield f"zap of {one.node} is said to have failed, and nothing was planted: {one.body['reason']}"


def find_wrong_cordons(story: RolloutStory) -> Iterator[str]:
    """Yield what is wrong in the scheduler's own log: pairs, whose cordons, how many at once, and flashes without."""
    closed: dict[str, str] = {}
    for one in story.events:
        if one.what == "cordon":
            if one.node in closed:
                yield f"{one.node} was cordoned twice"
            closed[one.node] = one.detail
            yield from _find_too_many(
                story.fleet, one.node, {name for name, why in closed.items() if is_our_reason(why)}
            )
        elif one.what == "uncordon":
            if closed.pop(one.node, None) != one.detail:
                yield f"{one.node} was uncordoned, and had no such cordon: {one.detail}"
        elif one.what == "reset" and one.node not in closed:
            yield f"{one.node} was flashed, and had no cordon"
    for name, state in project_node_states(story.entries).items():
        if is_our_reason(closed.get(name, "")) and story.fleet.policy.is_in_service(state.state):
            yield f"{name} serves, and is still cordoned: {closed[name]}"


def _find_too_many(fleet: Fleet, node: str, out: Collection[str]) -> Iterator[str]:
    """Yield the limits that the nodes that are out exceed, where this node is."""
    limits, at = fleet.policy.limits, fleet.nodes[node]
    rack = [name for name in out if fleet.nodes[name].rack_place == at.rack_place]
    pool = [name for name in out if fleet.nodes[name].pool == at.pool]
    most = count_allowed_out(sum(one.pool == at.pool for one in fleet.nodes.values()), limits.pool_percent)
    if node in out and len(rack) > limits.rack_concurrent:
        yield f"{node} is out as number {len(rack)} of its rack: {sorted(rack)}"
    if node in out and len(pool) > most:
        yield f"{node} is out as number {len(pool)} of its pool: {sorted(pool)}"


def find_repeated_entries(story: RolloutStory) -> Iterator[str]:
    """Yield what the ledger says twice: ids, adopted commits, starts, orders, proofs and ends of rollouts."""
    said = Counter[tuple[str, ...]]((one.kind, one.id) for one in story.entries)
    for one in story.entries:
        rollout = one.body.get("rollout", "")
        if one.kind == "commit.adopted":
            said[one.kind, one.body["commit"]] += 1
        if one.kind == "rollout.started":
            said["rollout.started for", one.body["commit"]] += 1
        if rollout and one.kind in ("move", "rollout.proven"):
            said[one.kind, rollout, one.node] += 1
        if one.kind in (*ENDS, "rollout.started"):
            said["rollout.ended" if one.kind in ENDS else one.kind, rollout] += 1
    yield from (f"{count} times {' '.join(what)}" for what, count in said.items() if count > 1)


def find_wrong_waves(story: RolloutStory, rollout: Rollout) -> Iterator[str]:
    """Yield waves that are too large, came before the one before was done, or had a node that has its order already."""
    done = {one.node: one.seq for one in story.entries if _is_of(one, "rollout.proven", rollout)}
    ordered: dict[str, int] = {name: one.order_seq for name, one in rollout.members.items() if _is_kept(rollout, one)}
    for wave in story.waves(rollout):
        names, seq = [one.node for one in wave], wave[0].seq
        for name, since in ordered.items():
            if done.get(name, seq) >= seq and not story.has_failed(name, since, seq):
                yield f"entry {seq} orders {names}, before {name} is proven or has failed"
        yield from _find_early_nodes(story, done, seq, names)
        yield from (f"{name} is in two waves" for name in names if name in ordered)
        for name in names:
            yield from _find_too_many(story.fleet, name, names)
        ordered |= dict.fromkeys(names, seq)


def _find_early_nodes(story: RolloutStory, done: Mapping[str, int], seq: int, names: Collection[str]) -> Iterator[str]:
    """Yield the pools that give more nodes than their canaries before as many canaries are proven."""
    proven = Counter(story.fleet.nodes[name].pool for name, at in done.items() if at < seq)
    for pool, count in Counter(story.fleet.nodes[name].pool for name in names).items():
        if proven[pool] < (most := story.fleet.policy.rollouts.canaries) and count > most:
            yield f"entry {seq} orders {count} nodes of {pool} before its canary is proven"


def _is_kept(rollout: Rollout, member: RolloutMember) -> bool:
    """Whether the node kept its order from the rollout before."""
    return 0 < member.order_seq < rollout.started_seq


def _is_of(entry: LedgerEntry, kind: str, rollout: Rollout) -> bool:
    return entry.kind == kind and entry.body.get("rollout") == rollout.id


def find_wrong_ends(story: RolloutStory, rollout: Rollout) -> Iterator[str]:
    """Yield a rollout without an end, nodes that are proven and never had the change, and others without a reason."""
    end = next((one.seq for one in story.entries if one.kind in ENDS and _is_of(one, one.kind, rollout)), 0)
    if not end:
        yield f"rollout {rollout.id} has not ended"
    out = _last_exits(story, end)
    for name, member in rollout.members.items():
        since = member.order_seq or rollout.started_seq
        if member.proof:
            yield from _find_unproven(story, rollout, name, since)
        elif rollout.status == "finished" and not story.has_failed(name, min(since, out.get(name, since)), end):
            yield f"{name} has no proof, and nothing failed there: {rollout.end_reason}"


def _find_unproven(story: RolloutStory, rollout: Rollout, name: str, since: int) -> Iterator[str]:
    """Yield a node that is proven, and was not brought to the commit by an effect in time, nor by hand.

    A node that was under way may have got the newer change before it got its other order.
    """
    wanted, member = encode(story.versions[rollout.commit]), rollout.members[name]
    if member.is_under_way:
        since = max(
            (one.seq for one in story.entries if one.kind == "move" and _is_before(one, rollout, name)), default=0
        )
    proven = next(one.seq for one in story.entries if _is_of(one, "rollout.proven", rollout) and one.node == name)
    got = [one for one in story.events if one.node == name and one.detail == wanted]
    in_time = any(one.what == "reset" and since < story.intents.get(one.effect, 0) < proven for one in got)
    if not in_time and all(one.what != "by hand" for one in got):
        yield f"{name} is proven, and never got {wanted} for rollout {rollout.id}"


def _is_before(entry: LedgerEntry, rollout: Rollout, node: str) -> bool:
    return entry.node == node and entry.seq < rollout.started_seq


def _last_exits(story: RolloutStory, until: int) -> dict[str, int]:
    """Return the entry with which each node left service the last time before `until`."""
    heard, out, policy = NodeStateProjection(), dict[str, int](), story.fleet.policy
    for entry in story.entries[: until or None]:
        before = heard.node_state(entry.node)
        served = before is None or policy.is_in_service(before.state)
        heard.apply(entry)
        after = heard.node_state(entry.node)
        if served and after and not policy.is_in_service(after.state):
            out[entry.node] = entry.seq
    return out
