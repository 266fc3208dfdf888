"""An exact all-reduce between two processes of this machine over plain sockets: a collective that needs no GPU.

`python -m assay.collectives.runner.cpu_workload A B [NODE=FAULT …]` prints one result as JSON. The members sum small
integers held in floats, which is exact in every order. Faults are `slow` (the time is told longer, not slept: the
clock of a busy machine says little), `hung` (stops itself), `dead` (exits) and `wrong` (flips one bit).
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
import sys
import time
from array import array
from collections.abc import Sequence
from typing import Any

WORDS, REPEATS = 4096, 4
USUAL_S, SLOW_FACTOR, NOISE = 0.25, 1.4, 0.01
FAULTS = ("slow", "hung", "dead", "wrong")


def make_values(member: int, repeat: int) -> array[float]:
    """Return a member's small integers."""
    chance = random.Random(f"{member} {repeat}")  # noqa: S311 — test data
    return array("d", (chance.randrange(1 << 20) for _ in range(WORDS)))


def flip_bit(values: array[float], place: int) -> None:
    """Flip the lowest bit of the integer at a place: the smallest error that there is."""
    (bits,) = struct.unpack("<q", struct.pack("<d", values[place]))
    values[place] = struct.unpack("<d", struct.pack("<q", bits ^ 1 << 40))[0]


def run_member(member: int, peer: socket.socket, report: Any, fault: str) -> None:
    """Exchange and add values with the peer, and report wrong sums and the time to the parent."""
    wrong = 0
    for repeat in range(REPEATS):
        own = make_values(member, repeat)
        if repeat == REPEATS // 2:
            _break(fault, own)
        peer.sendall(own.tobytes())
        theirs = array("d", _receive(peer, WORDS * own.itemsize))
        expected = [a + b for a, b in zip(make_values(0, repeat), make_values(1, repeat), strict=True)]
        total = [a + b for a, b in zip(own, theirs, strict=True)]
        wrong += sum(found != right for found, right in zip(total, expected, strict=True))
    told = USUAL_S * random.gauss(1, NOISE) * (SLOW_FACTOR if fault == "slow" else 1)
    report.write(json.dumps({"seconds": told, "wrong": wrong}) + "\n")
    report.flush()


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


def run_pair(faults: Sequence[str]) -> dict[str, Any]:
    """Run both members, each in a process of its own; return the result of the slower one and all wrong sums."""
    ends = socket.socketpair()
    pipes = [os.pipe() for _ in ends]
    children = []
    for member, fault in enumerate(faults):
        child = os.fork()
        if child == 0:
            _run_child(member, ends, pipes, fault)
        children.append(child)
    for end in ends:
        end.close()
    for _, written in pipes:
        os.close(written)
    reports = [_read_pipe(read) for read, _ in pipes]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(codes) or not all(reports):
        return {"ended": "died", "note": f"exit codes {codes}"}
    told = [json.loads(report) for report in reports]
    return {
        "ended": "ok",
        "seconds": round(max(one["seconds"] for one in told), 6),
        "wrong": sum(one["wrong"] for one in told),
    }


def _run_child(member: int, ends: Sequence[socket.socket], pipes: Sequence[tuple[int, int]], fault: str) -> None:
    code = 1
    try:
        ends[1 - member].close()
        with os.fdopen(pipes[member][1], "w") as report:
            run_member(member, ends[member], report, fault)
        code = 0
    except OSError:
        code = 4
    finally:
        os._exit(code)


def _read_pipe(end: int) -> str:
    with os.fdopen(end) as file:
        return file.read()


def main(words: Sequence[str]) -> int:
    """Run the pair of the first two words; the others plant faults."""
    started = time.monotonic()
    a, b, *plants = words
    planted = dict(plant.split("=", 1) for plant in plants)
    result = run_pair([planted.get(name, "") for name in (a, b)])
    print(json.dumps(result | {"note": result.get("note", f"{time.monotonic() - started:.2f} s on this machine")}))  # noqa: T201
    return 0 if result["ended"] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
