"""What a path or cycle of cables means to a technician."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.fabric.discrepancy import Discrepancy, Pair
from assay.fabric.likelier import likelier
from assay.fabric.look import Look
from assay.fabric.matching import Component
from assay.model.cable import Cable, End, Port

Step = tuple[bool, Port, Port]
Edges = tuple[tuple[Port, Port] | None, tuple[Port, Port] | None]
"""A cable as designed and as seen, by its ports."""


def diagnose(component: Component, look: Look) -> Discrepancy:
    """Name one component that is more than a cable without link: swap, moved or unexpected."""
    if component.cycle:
        return _swap(component, look)
    pairs = _best_pairs(component.steps, look)
    if all(expected is None for expected, _ in pairs):
        return _unexpected([_pair(one, look) for one in pairs])
    return _moved(pairs, look)


def missing(cable: Cable, behind: Sequence[Cable] = ()) -> Discrepancy:
    """Name one cable that is designed and not seen."""
    said = f"no link between {cable.a} and {cable.b}: the cable is unplugged or broken, or the port at one end is down"
    said += f"; {beyond(behind)}" if behind else ""
    steps = (f"seat or replace the cable from {cable.a} to {cable.b}",)
    return Discrepancy("missing", (Pair(cable, None),), said, steps, cut_off=tuple(behind))


def disabled(cable: Cable, off: Sequence[End], behind: Sequence[Cable] = ()) -> Discrepancy:
    """Name one cable without link of which a port was switched off by somebody."""
    ports = " and ".join(map(str, off))
    said = f"no link between {cable.a} and {cable.b}: {ports} {'is' if len(off) == 1 else 'are'} disabled"
    said += f"; {beyond(behind)}" if behind else ""
    steps = (f"ask who disabled {ports}, and why; then enable it (ibportstate -G GUID PORT enable)",)
    return Discrepancy("disabled", (Pair(cable, None),), said, steps, cut_off=tuple(behind))


def degraded(designed: Cable, seen: Cable) -> Discrepancy:
    """Name one cable in its right place that runs slower or narrower than designed."""
    said = f"the link between {seen.a} and {seen.b} runs at {seen.rate} instead of {designed.rate}"
    steps = ("clean and reseat both plugs; then replace the cable",)
    return Discrepancy("degraded", (Pair(designed, seen),), said, steps)


def beyond(behind: Sequence[Cable]) -> str:
    """Say what lies behind something that is out, of which nothing can be told."""
    ends = [end for cable in behind for end in cable.ends]
    switches = dict.fromkeys(end.device for end in ends if not end.node)
    nodes = len({end.node for end in ends if end.node})
    what = [*list(switches)[:3], *([f"{len(switches) - 3} more switches"] if len(switches) > 3 else [])]
    what += [f"{nodes} node{'s' if nodes > 1 else ''}"] if nodes else []
    return f"what lies behind it is out of reach: {', '.join(what)} ({len(behind)} cables)"


def _pair(edges: Edges, look: Look) -> Pair:
    expected, observed = edges
    return Pair(look.expected(expected[0]) if expected else None, look.observed(*observed) if observed else None)


def _unexpected(pairs: list[Pair]) -> Discrepancy:
    seen = pairs[0].observed
    assert seen is not None, "a cable that is not designed is seen"
    said = f"a cable that is not in the design joins {seen.a} and {seen.b}"
    return Discrepancy("unexpected", tuple(pairs), said, ("take it out, or add it to the design",))


def _moved(pairs: list[Edges], look: Look) -> Discrepancy:
    said, steps = [], []
    for expected, observed in pairs:
        if expected and observed:
            kept, wrong, right = (look.end(port) for port in _shift(expected, observed))
            said.append(f"the cable from {kept} is in {wrong} instead of {right}")
            steps.append(f"move the plug from {wrong} to {right}")
        elif expected:
            said.append("no link between {} and {}".format(*map(look.end, expected)))
            steps.append("then seat or replace the cable from {} to {}".format(*map(look.end, expected)))
        elif observed:
            said.append("a cable that is not in the design joins {} and {}".format(*map(look.end, observed)))
            steps.append("take out the cable between {} and {}".format(*map(look.end, observed)))
    return Discrepancy("moved", tuple(_pair(one, look) for one in pairs), "; ".join(said), ("; ".join(steps),))


def _best_pairs(steps: Sequence[Step], look: Look) -> list[Edges]:
    """Pair each designed cable with the seen one next to it; of two ways, the one whose plugs moved the least."""
    ways = [_paired(steps, 0)]
    if len(steps) > 2 and len(steps) % 2:
        ways.append(_paired(steps, 1))
    return min(ways, key=lambda pairs: sum(_walk(one, look) for one in pairs))


def _paired(steps: Sequence[Step], start: int) -> list[Edges]:
    """Pair neighbours from `start` on, in the order of the walk; what is left over at either end stands alone.

    A designed cable that is left over comes last: it is what remains to do when the plugs are in their ports.
    """
    pairs = [_edges(*two) for two in zip(steps[start::2], steps[start + 1 :: 2], strict=False)]
    used = start + 2 * len(pairs)
    found = [*map(_edges, steps[:start]), *pairs, *map(_edges, steps[used:])]
    return found[::-1] if len(found) > 1 and found[0][1] is None else found


def _edges(*steps: Step) -> Edges:
    expected = next(((a, b) for kind, a, b in steps if kind), None)
    return expected, next(((a, b) for kind, a, b in steps if not kind), None)


def _walk(edges: Edges, look: Look) -> int:
    """Rank how far a plug went: on one device, in one rack, further. A cable for itself went nowhere."""
    expected, observed = edges
    if not expected or not observed:
        return 0
    _, wrong, right = (look.end(port) for port in _shift(expected, observed))
    return 0 if wrong.guid == right.guid else 1 if wrong.rack and wrong.rack == right.rack else 2


def _shift(expected: tuple[Port, Port], observed: tuple[Port, Port]) -> tuple[Port, Port, Port]:
    """Return the port that both cables share, where the other plug is, and where it belongs."""
    kept = next(port for port in expected if port in observed)
    right = expected[1] if kept == expected[0] else expected[0]
    wrong = observed[1] if kept == observed[0] else observed[0]
    return kept, wrong, right


def _swap(component: Component, look: Look) -> Discrepancy:
    """Name k permuted cables. Which plugs were exchanged is not in the data, so the likelier side comes first."""
    ring = component.ports[:-1]
    sides = [[look.end(port) for port in ring[side::2]] for side in (0, 1)]
    first, because = likelier(sides[0], sides[1])
    pairs = list(_displaced(ring, first))
    shifts = [_shift(*one) for one in pairs]
    said = "; ".join("{} is cabled to {} instead of {}".format(*map(look.end, shift)) for shift in shifts)
    corrections = tuple(_exchange(list(_displaced(ring, side)), look) for side in (first, 1 - first))
    cables = tuple(_pair(one, look) for one in pairs)
    return Discrepancy("swap", cables, f"{len(pairs)} cables are exchanged: {said}", corrections, because=because)


def _displaced(ring: Sequence[Port], side: int) -> Iterator[tuple[tuple[Port, Port], tuple[Port, Port]]]:
    """Yield each cable as designed and as seen, taking it that the plugs of `side` are in the wrong ports."""
    for index in range(0, len(ring), 2):
        a, b = ring[index], ring[index + 1]
        yield (a, b), ((b, ring[(index + 2) % len(ring)]) if side == 0 else (a, ring[index - 1]))


def _exchange(pairs: Sequence[tuple[tuple[Port, Port], tuple[Port, Port]]], look: Look) -> str:
    """Say how plugs go round: two are exchanged, more go each to the next one's port."""
    shifts = [_shift(*one) for one in pairs]
    if len(shifts) == 2:
        return "exchange the plugs at {} and {}".format(*(look.end(right) for _, _, right in shifts))
    moves = "; ".join(f"from {look.end(wrong)} to {look.end(right)}" for _, wrong, right in shifts)
    return f"move the plugs in a round: {moves}"
