"""Schedules waves of nodes. No wave exceeds a limit, each is back before the next leaves, and canaries go first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from assay.model.node import Node
from assay.model.text_lists import format_count
from assay.plan.fleet_revision import FleetRevision

RackKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RolloutCandidate:
    """A node that must leave service for `hours`. `restarts`: it counts against the restarts per hour."""

    node: str
    pool: str
    rack: RackKey
    spec: str
    hours: float
    restarts: bool = False


@dataclass(frozen=True, slots=True)
class RolloutCapacity:
    """How many more nodes may be out in each pool and each rack, and how many may restart per hour."""

    pools: Mapping[str, int]
    racks: Mapping[RackKey, int]
    restarts_per_hour: int


@dataclass(frozen=True, slots=True)
class RolloutWave:
    """Nodes that are out together. `hours`: from the first that leaves to the last that is back."""

    number: int
    canary: bool
    nodes: tuple[str, ...]
    pools: Mapping[str, int]
    hours: float
    node_hours: float


@dataclass(frozen=True, slots=True)
class BlockedNodes:
    """Nodes that no wave can take yet, and why."""

    nodes: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class WaveSchedule:
    """The waves in order, and the nodes that must wait for room first."""

    waves: tuple[RolloutWave, ...] = ()
    waiting: tuple[BlockedNodes, ...] = ()

    @property
    def hours(self) -> float:
        """The hours that all waves take, one after the other."""
        return sum(wave.hours for wave in self.waves)

    @property
    def node_hours(self) -> float:
        """The node-hours out of service."""
        return sum(wave.node_hours for wave in self.waves)


def schedule_waves(candidates: Iterable[RolloutCandidate], room: RolloutCapacity) -> WaveSchedule:
    """Divide nodes into waves. One node of each spec and pool goes first, and must pass before any other goes."""
    able, waiting = _split_by_capacity(candidates, room)
    canaries, others = _canaries(able)
    board = _WaveFiller(room)
    for one in canaries:
        board.place(one)
    first = board.waves
    board.close()
    for one in _alternate_racks(others):
        board.place(one)
    waves = [_wave(number, number < first, board.nodes[number], room) for number in range(board.waves)]
    return WaveSchedule(tuple(waves), waiting)


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

    def place(self, one: RolloutCandidate) -> None:
        """Put a node into the first wave with room in its pool and rack."""
        wave = max(self.start, self.open_pool.get(one.pool, 0), self.open_rack.get(one.rack, 0))
        while self._full(one, wave):
            wave += 1
        self.nodes[wave].append(one)
        self.in_pool[one.pool, wave] += 1
        self.in_rack[one.rack, wave] += 1
        self.waves = max(self.waves, wave + 1)
        self._move_on(one)

    def close(self) -> None:
        """Close the waves so far for all other nodes."""
        self.start = self.waves

    def _full(self, one: RolloutCandidate, wave: int) -> bool:
        pool, rack = self.in_pool[one.pool, wave], self.in_rack[one.rack, wave]
        return pool >= self.room.pools[one.pool] or rack >= self.room.racks[one.rack]

    def _move_on(self, one: RolloutCandidate) -> None:
        """Remember the first wave that is not full, so that long schedules stay fast."""
        pool, rack = self.open_pool.get(one.pool, 0), self.open_rack.get(one.rack, 0)
        while self.in_pool[one.pool, pool] >= self.room.pools[one.pool]:
            pool += 1
        while self.in_rack[one.rack, rack] >= self.room.racks[one.rack]:
            rack += 1
        self.open_pool[one.pool], self.open_rack[one.rack] = pool, rack


def _split_by_capacity(
    candidates: Iterable[RolloutCandidate], room: RolloutCapacity
) -> tuple[list[RolloutCandidate], tuple[BlockedNodes, ...]]:
    """Return the nodes that can leave, and those that cannot because other nodes use up the limit."""
    able: list[RolloutCandidate] = []
    waits: dict[str, list[str]] = defaultdict(list)
    for one in candidates:
        if room.pools[one.pool] < 1:
            waits[f"pool {one.pool} has as many nodes out as may be; they come back first"].append(one.node)
        elif room.racks[one.rack] < 1:
            waits[f"rack {one.rack[1]} has as many nodes out as may be; they come back first"].append(one.node)
        else:
            able.append(one)
    return able, tuple(BlockedNodes(tuple(nodes), why) for why, nodes in waits.items())


def _canaries(candidates: list[RolloutCandidate]) -> tuple[list[RolloutCandidate], list[RolloutCandidate]]:
    first: dict[tuple[str, str], RolloutCandidate] = {}
    for one in candidates:
        first.setdefault((one.spec, one.pool), one)
    chosen = {one.node for one in first.values()}
    return list(first.values()), [one for one in candidates if one.node not in chosen]


def _alternate_racks(candidates: list[RolloutCandidate]) -> list[RolloutCandidate]:
    """Return the nodes so that racks take turns. Then a wave is spread over many racks, and fills up."""
    seen: Counter[RackKey] = Counter()
    turns: list[tuple[int, int, RolloutCandidate]] = []
    for place, one in enumerate(candidates):
        turns.append((seen[one.rack], place, one))
        seen[one.rack] += 1
    return [one for _, _, one in sorted(turns, key=lambda turn: turn[:2])]


def _wave(number: int, canary: bool, nodes: list[RolloutCandidate], room: RolloutCapacity) -> RolloutWave:
    restarts = sum(one.restarts for one in nodes)
    longest = max((one.hours for one in nodes), default=0.0)
    return RolloutWave(
        number=number,
        canary=canary,
        nodes=tuple(one.node for one in nodes),
        pools=dict(Counter(one.pool for one in nodes)),
        hours=longest + max(0, restarts - 1) // room.restarts_per_hour,
        node_hours=sum(one.hours for one in nodes),
    )


def rack_key(node: Node) -> RackKey:
    """Return the key of a rack."""
    return node.site, node.rack


def note_mixed_racks(after: FleetRevision, schedule: WaveSchedule) -> Iterator[str]:
    """Yield a note on each rack that is one machine: it runs two versions while its nodes leave in turn."""
    fleet, waves = after.fleet, schedule.waves
    turns = Counter({(rack_key(fleet.nodes[name]), wave.number) for wave in waves for name in wave.nodes})
    racks = Counter(rack for rack, _ in turns)
    machines = {rack_key(node): node.spec for node in fleet.nodes.values() if fleet.node_specs[node.spec].rack}
    mixed = [rack for rack, count in racks.items() if count > 1 and rack in machines]
    if mixed:
        most = max(racks[rack] for rack in mixed)
        kinds = ", ".join(sorted({machines[rack] for rack in mixed}))
        why = f"rack_concurrent lets so few nodes of a rack go at once ({after.policy_line('limits.rack_concurrent')})"
        yield f"{format_count(len(mixed), 'rack')} ({kinds}), each one machine, will run mixed over {most} waves: {why}"
