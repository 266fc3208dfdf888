"""What a path or cycle of cables means to a technician."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from assay.fabric.discrepancy import Discrepancy, Pair
from assay.fabric.matching import Component
from assay.model.cable import Cable, End, Port

Ends = Callable[[Port], End]
Seen = Callable[[Port, Port, bool], Cable]
"""Makes the cable between two ports; the flag says whether it is the expected one."""


def diagnose(component: Component, cable: Seen) -> Discrepancy:
    """Name one component: swap, moved, missing or unexpected."""
    if component.cycle:
        return _swap(component, cable)
    pairs = tuple(_paired(component, cable))
    if len(pairs) == 1 and pairs[0].observed is None:
        return missing(pairs[0])
    if all(pair.expected is None for pair in pairs):
        return _unexpected(pairs)
    return _moved(pairs)


def missing(pair: Pair) -> Discrepancy:
    """Name one cable that is designed and not seen."""
    cable = _known(pair.expected)
    summary = (
        f"no link between {cable.a} and {cable.b}: the cable is unplugged or broken, or the port at one end is down"
    )
    return Discrepancy("missing", (pair,), summary, (f"seat or replace the cable from {cable.a} to {cable.b}",))


def degraded(pair: Pair) -> Discrepancy:
    """Name one cable in its right place that runs slower or narrower than designed."""
    designed, seen = _known(pair.expected), _known(pair.observed)
    summary = f"the link between {seen.a} and {seen.b} runs at {seen.rate} instead of {designed.rate}"
    return Discrepancy("degraded", (pair,), summary, ("clean and reseat both plugs; then replace the cable",))


def _unexpected(pairs: tuple[Pair, ...]) -> Discrepancy:
    seen = _known(pairs[0].observed)
    return Discrepancy(
        "unexpected", pairs, f"a cable that is not in the design joins {seen.a} and {seen.b}",
        ("take it out, or add it to the design",),
    )  # fmt: skip


def _paired(component: Component, cable: Seen) -> Iterable[Pair]:
    """Pair each designed cable of a path with the seen one next to it; what is left over stands alone."""
    steps = component.steps
    while steps:
        (is_expected, a, b), *steps = steps
        if not steps:
            yield Pair(cable(a, b, True), None) if is_expected else Pair(None, cable(a, b, False))
            return
        (_, c, d), *steps = steps
        designed, seen = ((a, b), (c, d)) if is_expected else ((c, d), (a, b))
        yield Pair(cable(*designed, True), cable(*seen, False))


def _moved(pairs: tuple[Pair, ...]) -> Discrepancy:
    said, corrections = [], []
    for pair in pairs:
        if pair.expected and pair.observed:
            kept, wrong, right = _shift(pair.expected, pair.observed)
            said.append(f"the cable from {kept} is in {wrong} instead of {right}")
            corrections.append(f"move the plug from {wrong} to {right}")
        elif pair.expected:
            said.append(f"no link between {pair.expected.a} and {pair.expected.b}")
        elif pair.observed:
            said.append(f"a cable that is not in the design joins {pair.observed.a} and {pair.observed.b}")
    return Discrepancy("moved", pairs, "; ".join(said), ("; ".join(corrections),))


def _swap(component: Component, cable: Seen) -> Discrepancy:
    """Name k permuted cables. Which plugs were exchanged is not in the data, so the likelier side comes first."""
    ring = component.ports[:-1]
    sides = sorted((0, 1), key=lambda side: _distance([cable(a, b, True) for _, a, b in component.steps[::2]], side))
    moved = sides[0]
    pairs = []
    for index in range(0, len(ring), 2):
        a, b = ring[index], ring[index + 1]
        kept, other = (b, ring[(index + 2) % len(ring)]) if moved == 0 else (a, ring[index - 1])
        pairs.append(Pair(cable(a, b, True), cable(kept, other, False)))
    shifts = [_shift(_known(pair.expected), _known(pair.observed)) for pair in pairs]
    said = "; ".join(f"{kept} is cabled to {wrong} instead of {right}" for kept, wrong, right in shifts)
    plugs = [" and ".join(str(_known(pair.expected).ends[side]) for pair in pairs) for side in sides]
    corrections = tuple(f"exchange the plugs at {those}" for those in plugs)
    return Discrepancy("swap", tuple(pairs), f"{len(pairs)} cables are exchanged: {said}", corrections)


def _distance(cables: list[Cable], side: int) -> tuple[int, bool]:
    """Rank how far apart the plugs of one side are: one device, one rack, further. Switches before nodes."""
    ends = [cable.ends[side] for cable in cables]
    devices, racks = {end.node or end.guid for end in ends}, {end.rack for end in ends}
    rank = 0 if len(devices) == 1 else 1 if len(racks) == 1 and "" not in racks else 2
    return rank, any(end.node for end in ends)


def _shift(designed: Cable, seen: Cable) -> tuple[End, End, End]:
    """Return the end that both cables share, where the other plug is, and where it belongs."""
    kept = next(end for end in designed.ends if end.at in (seen.a.at, seen.b.at))
    right = designed.b if kept is designed.a else designed.a
    wrong = seen.b if seen.a.at == kept.at else seen.a
    return kept, wrong, right


def _known(cable: Cable | None) -> Cable:
    assert cable is not None, "a pair without a cable has nothing to name"
    return cable
