"""An exact all-reduce between processes of this machine over plain sockets: a collective that needs no GPU.

`python cpu_workload.py [--rail=R] [--round=M1] [--plant=WHERE=FAULT …] NODE …` prints one result as JSON. Each node is
one process; a node alone has two, as two GPUs. The members sum small integers held in floats, which is exact in every
order. Faults are `slow` (the time is told longer, not slept: the clock of a busy machine says little), `hung` (stops
itself), `dead` (exits) and `wrong` (flips one bit). `FAULT~0.7`: in 70 % of the runs. WHERE is

- `n1`: wherever n1 runs with others; `n1:alone`: also alone; `n1:2`: on rail 2
- `n1&n2`: wherever both take part, such as on a link between them; `n1+n2`: the same, but never in a pair of nodes
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import random
import re
import signal
import socket
import struct
import sys
import time
import zlib
from array import array
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

WORDS, REPEATS = 512, 4
USUAL_S = 0.25
SLOW_FACTOR = 1.4
NOISE = 0.01
FAULTS = ("slow", "hung", "dead", "wrong")
PLANT = re.compile(
    rf"(?P<first>[^:=&+]+)(?:(?P<link>[&+])(?P<second>[^:=&+]+))?(?::(?P<where>alone|\d+))?"
    rf"=(?P<fault>{'|'.join(FAULTS)})(?:~(?P<share>[01]?\.\d+))?"
)
PAIR = 2


class Plant(NamedTuple):
    """A planted fault. `second`: only where both nodes take part. `share` of the runs have it."""

    first: str
    fault: str
    second: str = ""
    is_scale: bool = False
    where: str = ""
    share: float = 1.0

    def is_met(self, nodes: Sequence[str], rail: int | None, round_name: str) -> bool:
        """Whether a run of these nodes has the fault. The same run of the same round always gives the same answer."""
        if self.first not in nodes or (self.second and self.second not in nodes):
            return False
        if len(nodes) < (PAIR + 1 if self.is_scale else PAIR) and self.where != "alone":
            return False
        if self.where.isdecimal() and rail is not None and int(self.where) != rail:
            return False
        key = f"{self} {sorted(nodes)} {rail} {round_name}"
        return zlib.crc32(key.encode()) / 2**32 < self.share


def parse_plant(text: str) -> Plant:
    """Return a plant. Raises ValueError for another text."""
    match = PLANT.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} plants no fault")
    share = float(match["share"] or 1)
    is_scale = match["link"] == "+"
    return Plant(match["first"], match["fault"], match["second"] or "", is_scale, match["where"] or "", share)


@cache
def make_values(member: int, repeat: int) -> array[float]:
    """Return a member's small integers."""
    chance = random.Random(f"{member} {repeat}")  # noqa: S311 — test data
    return array("d", (chance.getrandbits(20) for _ in range(WORDS)))


@cache
def add_values(members: int, repeat: int) -> array[float]:
    """Return the sums that all members expect. They are made before the members are forked, once for all."""
    return array("d", map(sum, zip(*(make_values(at, repeat) for at in range(members)), strict=True)))


def flip_bit(values: array[float], place: int) -> None:
    """Flip the lowest bit of the integer at a place: the smallest error that there is."""
    (bits,) = struct.unpack("<q", struct.pack("<d", values[place]))
    values[place] = struct.unpack("<d", struct.pack("<q", bits ^ 1 << 40))[0]


def run_member(member: int, members: int, peers: Sequence[socket.socket], report: Any, fault: str) -> None:
    """Sum the values of all members, and report wrong sums and the time to the parent.

    The first member has a socket to each other one: it collects the values, and sends the sum to all.
    """
    wrong = 0
    for repeat in range(REPEATS):
        own = make_values(member, repeat)[:]  # a fault may change it
        if repeat == REPEATS // 2:
            _break(fault, own)
        if member == 0:
            total = _reduce(own, peers)
        else:
            peers[0].sendall(own.tobytes())
            total = array("d", _receive(peers[0], WORDS * own.itemsize))
        wrong += sum(map(operator.ne, total, add_values(members, repeat)))
    seconds = USUAL_S * random.gauss(1, NOISE) * (SLOW_FACTOR if fault == "slow" else 1)
    report.write(json.dumps({"seconds": seconds, "wrong": wrong}) + "\n")
    report.flush()


def _reduce(own: array[float], peers: Sequence[socket.socket]) -> array[float]:
    total = own
    for peer in peers:
        theirs = array("d", _receive(peer, WORDS * own.itemsize))
        total = array("d", map(operator.add, total, theirs))
    for peer in peers:
        peer.sendall(total.tobytes())
    return total


def _break(fault: str, own: array[float]) -> None:
    if fault == "hung":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif fault == "dead":
        os._exit(3)
    elif fault == "wrong":
        flip_bit(own, len(own) // 3)


def _receive(peer: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = peer.recv(size - len(parts))
        if not part:
            raise ConnectionError("the peer is gone")
        parts += part
    return bytes(parts)


def run_members(faults: Sequence[str]) -> dict[str, Any]:
    """Run members, each in a process of its own; return the result of the slowest one and all wrong sums."""
    links = [socket.socketpair() for _ in faults[1:]]
    pipes = [os.pipe() for _ in faults]
    children = []
    for repeat in range(REPEATS):
        add_values(len(faults), repeat)
    for member, fault in enumerate(faults):
        child = os.fork()
        if child == 0:
            _run_child(member, links, pipes, fault)
        children.append(child)
    for end in (end for link in links for end in link):
        end.close()
    for _, written in pipes:
        os.close(written)
    reports = []
    for read, _ in pipes:
        with os.fdopen(read) as file:
            reports.append(file.read())
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(codes) or not all(reports):
        return {"ended": "died", "note": f"exit codes {codes}"}
    results = [json.loads(report) for report in reports]
    seconds = round(max(result["seconds"] for result in results), 6)
    return {"ended": "ok", "seconds": seconds, "wrong": sum(result["wrong"] for result in results)}


def _run_child(
    member: int, links: Sequence[tuple[socket.socket, socket.socket]], pipes: Sequence[tuple[int, int]], fault: str
) -> None:
    code = 1
    try:
        own = [hub for hub, _ in links] if member == 0 else [links[member - 1][1]]
        for end in (end for link in links for end in link if end not in own):
            end.close()
        with os.fdopen(pipes[member][1], "w") as report:
            run_member(member, len(pipes), own, report, fault)
        code = 0
    except OSError:
        code = 4
    finally:
        os._exit(code)


def list_faults(nodes: Sequence[str], plants: Sequence[Plant], rail: int | None, round_name: str) -> list[str]:
    """Return the fault of each member, "" for none. A node alone has two members."""
    met = {plant.first: plant.fault for plant in plants if plant.is_met(nodes, rail, round_name)}
    return [met.get(node, "") for node in nodes] + [""] * (len(nodes) == 1)


def main(words: Sequence[str]) -> int:
    """Run the collective of these nodes."""
    started = time.monotonic()
    parser = argparse.ArgumentParser()
    parser.add_argument("--rail", type=int)
    parser.add_argument("--round", default="")
    parser.add_argument("--plant", type=parse_plant, action="append", default=[])
    parser.add_argument("nodes", nargs="+")
    asked = parser.parse_args(words)
    nodes = [name for word in asked.nodes for name in word.split(",")]
    result = run_members(list_faults(nodes, asked.plant, asked.rail, asked.round))
    print(json.dumps(result | {"note": result.get("note", f"{time.monotonic() - started:.2f} s on this machine")}))  # noqa: T201
    return 0 if result["ended"] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
