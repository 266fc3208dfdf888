"""What devices send each other: copies of all pairs in both directions, and collectives, a test for each sender.

All these tests of a seed have one payload, and a healthy device gives its digest in each of them: `copy.source`
computes it without a transfer. A piece is turned by a number that follows from its sender and receiver, and turned
back, so that a piece from another device is seen as well. Sums are of whole numbers, exact in any order; what they give
is compared with what the device computes itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from assay.node.load.digests import view_words
from assay.node.load.lane import Lane
from assay.node.load.unit_tests import BatterySizes, BatteryTest

KEY = "transfers"
SUMMANDS = 4096  # below 2^24 / 4096 devices: the sum stays exact
TURN = 17  # odd, so that each pair of devices turns a piece by another number
MOST_DEVICES = 32
FIRST_STREAM = 100


def list_transfer_tests(sizes: BatterySizes, devices: int) -> Iterator[BatteryTest]:
    """Yield the tests of so many devices."""
    piece = sizes.piece

    def needing(name: str, compute: Callable[[Lane], Any]) -> BatteryTest:
        return BatteryTest(name, compute, needs=("collectives",), keyed_as=KEY)

    yield BatteryTest("copy.source", lambda lane: lane.payload(piece), keyed_as=KEY)
    yield BatteryTest("copy.host", lambda lane: lane.payload(piece), needs=("host copies",), keyed_as=KEY)
    for distance in range(1, devices):
        yield needing(f"copy.peer.{distance}", partial(_copy_from_peer, size=piece, distance=distance))
    for sender in range(devices):
        for name, function in (("broadcast", _broadcast), ("all_gather", _gather)):
            yield needing(f"collective.{name}.{sender}", partial(function, size=piece, sender=sender))
        swap = partial(_swap, size=piece, sender=sender, devices=devices)
        yield needing(f"collective.all_to_all.{sender}", swap)
    alone = range(devices) if devices > 2 else ()
    for place in (-1, *alone):  # where each device is left out once, one that spoils sums is told by its absence
        name = "collective.all_reduce" if place < 0 else f"collective.all_reduce.without.{place}"
        yield needing(name, partial(_sum, size=piece, devices=devices, alone=place))
    yield needing("collective.reduce_scatter", partial(_sum_and_spread, size=piece, devices=devices))


def _turn(lane: Lane, array: Any, sender: Any, receiver: Any, sign: int) -> Any:
    return lane.xp.roll(array, sign * TURN * (sender * MOST_DEVICES + receiver))


def _copy_from_peer(lane: Lane, size: int, distance: int) -> Any:
    return lane.arithmetic.pass_on(lane.send(lane.payload(size)), distance)


def _broadcast(lane: Lane, size: int, sender: int) -> Any:
    """Words of the sender and zeros of the others, added up: NaN and -0 stay what they are."""
    xp, own = lane.xp, lane.arithmetic.device_number()
    words = lane.payload(size).view(xp.uint32)
    given = lane.send(xp.where(own == sender, _turn(lane, words, sender, 0, 1), xp.uint32(0)))
    return _turn(lane, lane.arithmetic.sum_devices(given), sender, 0, -1)


def _gather(lane: Lane, size: int, sender: int) -> Any:
    given = lane.send(_turn(lane, lane.payload(size), lane.arithmetic.device_number(), 0, 1))
    return _turn(lane, lane.arithmetic.gather_devices(given).reshape(-1, size)[sender], sender, 0, -1)


def _swap(lane: Lane, size: int, sender: int, devices: int) -> Any:
    own, payload = lane.arithmetic.device_number(), lane.payload(size)
    rows = lane.xp.stack([_turn(lane, payload, own, receiver, 1) for receiver in range(devices)])
    return _turn(lane, lane.arithmetic.swap_rows(lane.send(rows))[sender], sender, own, -1)


def _whole_numbers(lane: Lane, size: int, device: Any) -> Any:
    """Return what one device adds."""
    xp = lane.xp
    mixed = lane.words(size, FIRST_STREAM) ^ (device * 0x1F3D5B79 + 0x2545F491) % 0x7FFFFFFF
    return ((mixed ^ (mixed >> 16)) % xp.uint32(SUMMANDS)).astype(xp.float32)


def _settle(lane: Lane, given: Any, expected: Any, size: int) -> Any:
    """Return the payload where `given` has the bits of `expected`; else the bits that differ, in it."""
    xp = lane.xp
    return view_words(xp, given) ^ view_words(xp, expected) ^ view_words(xp, lane.payload(size))


def _sum(lane: Lane, size: int, devices: int, alone: int) -> Any:
    own = lane.arithmetic.device_number()
    parts = [_whole_numbers(lane, size, device) for device in range(devices)]
    mine = sum(part * (own == device) for device, part in enumerate(parts))
    given = lane.arithmetic.sum_devices(lane.send(mine), alone)
    others = sum(part for device, part in enumerate(parts) if device != alone)
    return _settle(lane, given, lane.xp.where(own == alone, mine, others), size)


def _sum_and_spread(lane: Lane, size: int, devices: int) -> Any:
    own = lane.arithmetic.device_number()
    parts = [_whole_numbers(lane, size * devices, device) for device in range(devices)]
    mine = sum(part * (own == device) for device, part in enumerate(parts))
    given = lane.arithmetic.spread_sum(lane.send(mine))
    return _settle(lane, given, sum(parts).reshape(devices, size)[own], size)
