"""Schedules waves of nodes. No wave exceeds a limit, each is back before the next leaves, and canaries go first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from assay.model.facts import fact, frozen
from assay.model.node import Node
from assay.model.specs.policy_sections import AutomationLimits, count_allowed_out
from assay.model.specs.trend_rules import WORN

RackKey = tuple[str, str]
RolloutKind = tuple[str, str]
"""Spec and pool of a node: the kinds that have canaries of their own."""


@frozen
class RolloutCandidate:
    """A node that must leave service for `hours`. `restarts`: it counts against the restarts per hour.

    `warnings`: how many parts get worse among their peers.
    """

    node: str
    pool: str
    rack: RackKey
    spec: str
    hours: float
    restarts: bool = False
    warnings: int = 0

    @property
    def kind(self) -> RolloutKind:
        """Spec and pool."""
        return self.spec, self.pool


@frozen
class RolloutCapacity:
    """How many more nodes may be out in each pool and each rack, and how many may restart per hour."""

    pools: Mapping[str, int]
    racks: Mapping[RackKey, int]
    restarts_per_hour: int


@frozen
class RolloutWave:
    """Nodes that are out together. `hours`: from the first that leaves to the last that is back."""

    number: int
    """Its number, from 0."""
    canary: bool
    """Whether it is a small trial."""
    nodes: tuple[str, ...]
    """Its nodes."""
    pools: Mapping[str, int]
    """How many of them are in each pool."""
    hours: float
    node_hours: float
    """How many node-hours they are out of service, all together."""


@frozen
class BlockedNodes:
    """Nodes that no wave can take yet, and why."""

    nodes: tuple[str, ...]
    """The nodes."""
    why: str
    """Why they must wait."""


@fact
class WaveSchedule:
    """How nodes leave service for a change."""

    waves: tuple[RolloutWave, ...]
    """The waves, in order."""
    waiting: tuple[BlockedNodes, ...]
    """The nodes that no wave can take yet."""
    hours: float
    """How many hours all waves take, one after the other."""
    node_hours: float
    """How many node-hours are spent out of service."""


def make_schedule(waves: tuple[RolloutWave, ...], waiting: tuple[BlockedNodes, ...]) -> WaveSchedule:
    """Return the schedule of these waves."""
    return WaveSchedule(waves, waiting, sum(wave.hours for wave in waves), sum(wave.node_hours for wave in waves))


def schedule_waves(
    candidates: Iterable[RolloutCandidate],
    room: RolloutCapacity,
    canaries: int = 1,
    proven: Mapping[RolloutKind, int] = {},
) -> WaveSchedule:
    """Divide nodes into waves. Some `canaries` of each spec and pool go first, and must pass before any other goes.

    `proven` says how many of each spec and pool have passed. A node with two warnings is no canary if another
    can be, and goes before all others then: it leaves service anyway.
    """
    able, waiting = _split_by_capacity(candidates, room)
    able.sort(key=lambda candidate: candidate.warnings >= WORN)
    first_nodes, others = _split_canaries(able, canaries, proven)
    worn = [candidate for candidate in others if candidate.warnings >= WORN]
    board = _WaveFiller(room)
    for candidate in first_nodes:
        board.place(candidate)
    first = board.waves
    board.close()
    for candidate in [*worn, *_alternate_racks(others[: len(others) - len(worn)])]:
        board.place(candidate)
    waves = [_wave(number, number < first, board.nodes[number], room) for number in range(board.waves)]
    return make_schedule(tuple(waves), waiting)


@dataclass
class _WaveFiller:
    """The waves to fill. `start` is the first wave that is still open."""

    room: RolloutCapacity
    start: int = 0
    waves: int = 0
    nodes: dict[int, list[RolloutCandidate]] = field(default_factory=lambda: defaultdict(list))
    in_pool: Counter[tuple[str, int]] = field(default_factory=Counter)
    in_rack: Counter[tuple[RackKey, int]] = field(default_factory=Counter)
    open_pool: dict[str, int] = field(default_factory=dict)
    open_rack: dict[RackKey, int] = field(default_factory=dict)

    def place(self, candidate: RolloutCandidate) -> None:
        """Put a node into the first wave with room in its pool and rack."""
        wave = max(self.start, self.open_pool.get(candidate.pool, 0), self.open_rack.get(candidate.rack, 0))
        of_pool, of_rack = self.room.pools[candidate.pool], self.room.racks[candidate.rack]
        while self.in_pool[candidate.pool, wave] >= of_pool or self.in_rack[candidate.rack, wave] >= of_rack:
            wave += 1
        self.nodes[wave].append(candidate)
        self.in_pool[candidate.pool, wave] += 1
        self.in_rack[candidate.rack, wave] += 1
        self.waves = max(self.waves, wave + 1)
        self._move_on(candidate)

    def close(self) -> None:
        """Close the waves so far for all other nodes."""
        self.start = self.waves

    def _move_on(self, candidate: RolloutCandidate) -> None:
        """Remember the first wave that is not full, so that long schedules stay fast."""
        pool, rack = self.open_pool.get(candidate.pool, 0), self.open_rack.get(candidate.rack, 0)
        while self.in_pool[candidate.pool, pool] >= self.room.pools[candidate.pool]:
            pool += 1
        while self.in_rack[candidate.rack, rack] >= self.room.racks[candidate.rack]:
            rack += 1
        self.open_pool[candidate.pool], self.open_rack[candidate.rack] = pool, rack


def _split_by_capacity(
    candidates: Iterable[RolloutCandidate], room: RolloutCapacity
) -> tuple[list[RolloutCandidate], tuple[BlockedNodes, ...]]:
    """Return the nodes that can leave, and those that cannot because other nodes use up the limit."""
    able: list[RolloutCandidate] = []
    waits: dict[str, list[str]] = defaultdict(list)
    for candidate in candidates:
        if room.pools[candidate.pool] < 1:
            waits[f"pool {candidate.pool} has as many nodes out as may be; they come back first"].append(candidate.node)
        elif room.racks[candidate.rack] < 1:
            waits[f"rack {candidate.rack[1]} has as many nodes out as may be; they come back first"].append(
                candidate.node
            )
        else:
            able.append(candidate)
    return able, tuple(BlockedNodes(tuple(nodes), reason) for reason, nodes in waits.items())


def _split_canaries(
    candidates: list[RolloutCandidate], canaries: int, proven: Mapping[RolloutKind, int]
) -> tuple[list[RolloutCandidate], list[RolloutCandidate]]:
    seen = Counter(proven)
    first = list[RolloutCandidate]()
    others = list[RolloutCandidate]()
    for candidate in candidates:
        (first if seen[candidate.kind] < canaries else others).append(candidate)
        seen[candidate.kind] += 1
    return first, others


def _alternate_racks(candidates: list[RolloutCandidate]) -> list[RolloutCandidate]:
    """Return the nodes so that racks take turns. Then a wave is spread over many racks, and fills up."""
    seen: Counter[RackKey] = Counter()
    turns: list[tuple[int, int, RolloutCandidate]] = []
    for place, candidate in enumerate(candidates):
        turns.append((seen[candidate.rack], place, candidate))
        seen[candidate.rack] += 1
    return [candidate for _, _, candidate in sorted(turns, key=lambda turn: turn[:2])]


def _wave(number: int, canary: bool, nodes: list[RolloutCandidate], room: RolloutCapacity) -> RolloutWave:
    restarts = sum(node.restarts for node in nodes)
    longest = max((node.hours for node in nodes), default=0.0)
    return RolloutWave(
        number=number,
        canary=canary,
        nodes=tuple(node.node for node in nodes),
        pools=dict(Counter(node.pool for node in nodes)),
        hours=longest + max(0, restarts - 1) // room.restarts_per_hour,
        node_hours=sum(node.hours for node in nodes),
    )


def rack_key(node: Node) -> RackKey:
    """Return the key of a rack."""
    return node.site, node.rack


def measure_capacity(
    limits: AutomationLimits, nodes: Iterable[Node], meant_to_serve: Iterable[Node], out: Iterable[Node]
) -> RolloutCapacity:
    """Return how many more of `nodes` may leave service, while those that are `out` are out."""
    places = {node.name: node for node in nodes}.values()
    sizes, gone = Counter(node.pool for node in meant_to_serve), tuple(out)
    out_of_pool, out_of_rack = Counter(node.pool for node in gone), Counter(rack_key(node) for node in gone)
    pools, racks = {node.pool for node in places}, {rack_key(node) for node in places}
    return RolloutCapacity(
        pools={pool: count_allowed_out(sizes[pool], limits.pool_percent) - out_of_pool[pool] for pool in pools},
        racks={rack: limits.rack_concurrent - out_of_rack[rack] for rack in racks},
        restarts_per_hour=limits.reboots_per_hour,
    )
