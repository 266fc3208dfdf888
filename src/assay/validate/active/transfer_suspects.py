"""Who can be guilty of what changed between devices: the observations of transfers in, the parts that explain them out.

A wrong piece proves that its sender, its receiver, or something on the way spoilt it. In a collective, any device that
takes part may have passed the piece on, on a path that nobody knows. A part explains all wrong pieces if each of them
went through it: then no second fault is needed. Of the explanations, those count under which the wrong copies could
well have been these and no others: a sender that spoils what it sends would hardly meet the same receiver ten times.
Copies of all pairs, in both directions, leave one explanation; while two are left, all their parts are suspects. What
connects all devices, such as NVLink switches, is one of them until it would hardly have hit one device so often.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import comb, log

from assay.model.facts import frozen

HOST = -1
"""Stands among the devices for the host: its memory, and its side of the bus."""
SWITCH = frozenset({-2})
"""The part that all transfers between devices go through."""
IMPLAUSIBLE = log(1000)
"""An explanation that is so many times less likely than the best one is none."""
SHARED_STEPS = ("train.data-parallel", "train.tensor-parallel")
"""Steps of training after which a state holds what other devices sent."""
Part = frozenset[int]
"""One device, or the way between two of them."""


@frozen
class Transfer:
    """What one device received. `sender`: of a copy, which nobody else handles; None if any of `through` may have.

    `unit`: those of one collective have the same.
    """

    sender: int | None
    receiver: int
    through: frozenset[int]
    is_wrong: bool = False
    unit: tuple[str, ...] = ()

    @property
    def is_direct(self) -> bool:
        """Whether it is a copy."""
        return self.sender is not None


@frozen
class Suspicion:
    """`guilty`: the parts that are in every explanation that is left; `suspects`: in some of them only."""

    guilty: frozenset[Part] = frozenset()
    suspects: frozenset[Part] = frozenset()

    @property
    def guilty_devices(self) -> frozenset[int]:
        """The devices among the guilty parts."""
        return frozenset(place for part in self.guilty if len(part) == 1 for place in part if place >= 0)


def find_suspects(transfers: Sequence[Transfer], known: Iterable[int] = ()) -> Suspicion:
    """Return which parts explain the wrong transfers. `known`: devices that compute wrong; theirs are explained."""
    sick = frozenset(known)
    rest = [transfer for transfer in transfers if not sick & transfer.through]
    wrong = _mask(transfer.is_wrong for transfer in rest)
    if not wrong:
        return Suspicion()
    direct = _mask(transfer.is_direct for transfer in rest)
    ways = list(_list_explanations(rest, direct, wrong))
    whole = [(frozenset({part}), covered) for part, covered in ways if not wrong & ~covered]
    tried = len(ways)
    if not whole:
        tried = comb(len(ways), 2)
        whole = [
            (frozenset({first, second}), covered | more)
            for (first, covered), (second, more) in combinations(ways, 2)
            if first != second and not wrong & ~(covered | more)
        ]
    # how much it surprises that, of the transfers that a part spoils at times, just these are wrong: by the number of
    # ways to choose so many of them; of copies, and of collectives that leave devices out
    kinds = (direct, _mask_partial(rest))

    def surprise(covered: int) -> float:
        return sum(log(comb((covered & kind).bit_count(), (wrong & kind).bit_count()) or 1) for kind in kinds)

    surprises = [(parts, surprise(covered)) for parts, covered in whole]
    between = _mask(HOST not in transfer.through and len(transfer.through) > 1 for transfer in rest)
    if not wrong & ~between:  # of so many parts that were tried, some fit by chance
        surprises.append((frozenset({SWITCH}), surprise(between) - log(max(tried, 1))))
    least = min((at for _, at in surprises), default=0.0)
    likely = [parts for parts, at in surprises if at <= least + IMPLAUSIBLE]
    if likely in ([], [{SWITCH}]):  # or three faults at once: nobody is told from the others
        through = frozenset.union(*(transfer.through for transfer in rest if transfer.is_wrong))
        return Suspicion(suspects=frozenset(frozenset({place}) for place in through).union(*likely))
    guilty = frozenset.intersection(*likely)
    return Suspicion(guilty, frozenset.union(*likely) - guilty)


def _mask_partial(transfers: Sequence[Transfer]) -> int:
    """Return one transfer of each collective that leaves a device out, a wrong one where there is any."""
    most = max(len(transfer.through) for transfer in transfers)
    chosen: dict[object, int] = {}
    for number, transfer in enumerate(transfers):
        is_partial = not transfer.is_direct and 1 < len(transfer.through) < most
        if is_partial and (transfer.is_wrong or transfer.unit not in chosen):
            chosen[transfer.unit] = number
    representatives = {*chosen.values()}
    return _mask(number in representatives for number in range(len(transfers)))


def _list_explanations(transfers: Sequence[Transfer], direct: int, wrong: int) -> Iterator[tuple[Part, int]]:
    """Yield parts with the transfers that they would spoil: a device by sending, receiving or at all; a way."""
    places = sorted({place for transfer in transfers for place in transfer.through})
    through = {place: _mask(place in transfer.through for transfer in transfers) for place in places}
    sent = {place: _mask(transfer.sender == place for transfer in transfers) for place in places}
    received = {place: _mask(transfer.receiver == place for transfer in transfers) for place in places}
    spoilable: dict[tuple[Part, int], None] = {}
    for place in places:
        for copies in (sent[place], received[place], direct):
            spoilable[frozenset({place}), through[place] & (copies | ~direct)] = None
    for first, second in combinations(places, 2):
        for copies in (sent[first], sent[second], direct):
            spoilable[frozenset({first, second}), through[first] & through[second] & (copies | ~direct)] = None
    yield from ((part, covered) for part, covered in spoilable if covered & wrong)


def _mask(flags: Iterable[bool]) -> int:
    return int("".join("1" if flag else "0" for flag in flags) or "0", 2)


def read_roles(test: str, place: int, devices: int) -> Transfer | None:
    """Return the roles in a unit for the device at a place, None in a computation. `is_wrong` is not known yet."""
    family, _, rest = test.partition(".")
    kind, _, detail = rest.partition(".")
    if test == "copy.host":
        return Transfer(HOST, place, frozenset({HOST, place}))
    if (family, kind) == ("copy", "peer") and detail.isdecimal():
        sender = (place - int(detail)) % devices
        return Transfer(sender, place, frozenset({sender, place}))
    everyone = frozenset(range(devices))
    if family == "collective" and detail.startswith("without."):
        alone = frozenset({int(detail.rpartition(".")[2])})
        return Transfer(None, place, alone if place in alone else everyone - alone, unit=(test,))
    return Transfer(None, place, everyone, unit=(test,)) if family == "collective" or test in SHARED_STEPS else None


def describe_parts(parts: Iterable[Part], names: Mapping[int, str]) -> str:
    """Return the names of parts: devices first, then the ways between them, then what connects all."""
    known = {HOST: "the host", **names}
    ordered = sorted(parts, key=lambda part: (len(part), sorted(part)))
    devices = [known[place] for part in ordered if len(part) == 1 for place in part if place in known]
    ways = [" and ".join(known[place] for place in sorted(part)) for part in ordered if len(part) == 2]
    if len(ways) > 1:
        between = ["a way between two of them" if devices else f"a way: {'; '.join(ways)}"]
    else:
        between = [f"the way between {way}" for way in ways]
    switch = "what connects all GPUs" if SWITCH in ordered else ""
    return ", or ".join(filter(None, [", ".join(devices), *between, switch]))
