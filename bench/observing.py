"""The cost of observing: one probe on its node, one isolated reading, and a thousand nodes from here."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from assay.declare.loader import load_fleet
from assay.lab.process_control import build_world
from assay.lab.world import LabWorld
from assay.model.clock import SystemClock
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.reading import value
from assay.model.specs.node_settings import NodeSettings
from assay.node.probe.isolated_reader import gather_isolated
from assay.observe.evidence_collector import stream_evidence
from assay.observe.transports.command import build_probe_script
from bench.measurement import Measurement
from bench.programs import ROOT
from bench.tree_cost import tree_cost

MANY, DEAD = 1000, 50
READINGS = 20_000
TURNS = 11
BARE = b"""
import argparse, json, os, re, subprocess
for folder, _, names in os.walk(os.environ["ASSAY_ROOT"]):
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            file.read()
"""
"""The least that a program like the probe does: it imports the same and reads each file of the node once."""
ANSWER = 90_000
"""Bytes of a stand-in's document, as many as a lab node's."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure the probe on a lab node below `folder`, one isolated reading, and a thousand local stand-ins."""
    yield from _measure_probe(folder)
    yield _measure_reading()
    yield from _measure_many_nodes(folder)


def _measure_probe(folder: Path) -> Iterator[Measurement]:
    declared, world = load_fleet(ROOT), LabWorld(folder / "lab")
    build_world(replace(declared, nodes={"n0001": declared.nodes["n0001"]}, designs={}), world, datetime.now(UTC), 1.0)
    shell = [sys.executable, "-m", "assay.lab.node.shell", str(world.home), "n0001"]
    python, script = [*shell, "python3", "-I", "-S", "-"], build_probe_script()
    turns = [(tree_cost(python, script), tree_cost(python, BARE), tree_cost([*shell, "true"])) for _ in range(TURNS)]
    probe_s, bare_s, shell_s = (min(cost.cpu_s for cost in costs) for costs in zip(*turns, strict=True))
    what, made_of = "a probe of a lab node, brought along, children included", {"script_bytes": float(len(script))}
    yield Measurement(what, probe_s - shell_s, "CPU s", "at most", 0.35, made_of)
    made_of = {"cpu_s": probe_s, "against_cpu_s": bare_s, "shell_s": shell_s}
    against = f"{what} / a bare read of its files, each with the lab's shell"
    yield Measurement(against, probe_s / bare_s, "×", "at most", 3, made_of)
    yield Measurement("its memory at the most", max(cost.peak_mb for cost, _, _ in turns), "MB", "at most", 60)


def _measure_reading() -> Measurement:
    area = {str(number): partial(value, number) for number in range(READINGS)}
    before = _cpu_s()
    gather_isolated({"area": lambda: area}, 60)
    each_us = (_cpu_s() - before) / READINGS * 1e6
    return Measurement("a deadline of its own for a reading", each_us, "CPU µs", "at most", 50)


def _measure_many_nodes(folder: Path) -> Iterator[Measurement]:
    answer = folder / "answer.json"
    answer.write_text('{"probe": {"text": {"value": "' + "x" * ANSWER + '"}}}')
    well = ["sh", "-c", f"cat > /dev/null; sleep 0.2; cat {answer}", "-"]
    none_dead, cpu_s = _wall_s(well, 0)
    some_dead, _ = _wall_s(well, DEAD)
    what = f"the last living of {MANY} nodes, {DEAD} of them dead / none of them dead"
    yield Measurement(what, some_dead / none_dead, "×", "at most", 1.5, {"dead_s": some_dead, "none_s": none_dead})
    ratio = cpu_s / none_dead
    yield Measurement(f"{MANY} nodes from here, our CPU / wall", ratio, "×", "at most", 0.6, {"cpu_s": cpu_s})


def _wall_s(well: list[str], dead: int) -> tuple[float, float]:
    """Read `MANY` stand-ins, of which `dead` never answer.

    Return the seconds until the last answer, and our CPU seconds.
    """
    hung = ["sh", "-c", "sleep 60", "-"]
    commands = [hung if dead and number % (MANY // dead) == 0 else well for number in range(MANY)]
    nodes = {
        f"n{number}": Node(f"n{number}", "p", "s", "r", 1, "x", "spec", "managed", settings=NodeSettings(reach=command))
        for number, command in enumerate(commands)
    }
    start, before, answers = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF), []
    for document in stream_evidence(Fleet(Path("/"), nodes), list(nodes), clock=SystemClock(), deadline_s=5):
        if "failed" not in document.channels["probe"]:
            answers.append(time.monotonic() - start)
    if len(answers) != MANY - dead:
        raise RuntimeError(f"{len(answers)} stand-ins answered, not {MANY - dead}")
    after = resource.getrusage(resource.RUSAGE_SELF)
    return answers[-1], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _cpu_s() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
