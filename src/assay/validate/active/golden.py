"""Golden digests: which of them belong to a run, and a draft of new ones from nodes that computed the same.

They are learned from evidence: the units of the battery, or series of training. GPUs of other nodes vote beside them:
those of the other trays of a rack that is one machine, or of neighbours of the same spec whose GPUs all agree. How many
of them computed what with the same key is in the node's evidence, so that it can be judged again.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from typing import Any

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.specs.golden_digests import LEAST_NODES, GoldenDigests, GoldenKey
from assay.model.specs.load_parts import EVERY_TEST
from assay.model.text.lists import format_count, format_list
from assay.validate.active.run_verdict import OtherNodes, RunVerdict, describe_untold, judge_run
from assay.validate.active.training import SITE_TRAINING, read_site_training, read_training_run
from assay.validate.active.unit_results import Digest, LoadRun, UnitName, UnreadableRun, read_load_run
from assay.validate.active.unit_vote import LEAST_GOLDEN_VOTERS, Counts

BATTERY = "battery"
FLEET_CHANNEL, NEIGHBOURS = "fleet", "other_nodes"
LINE = 118
ROW = 64  # digits of digests in a line
SCHEMA = "# yaml-language-server: $schema=../schemas/golden-digests.json"


def make_golden_key(run: LoadRun) -> GoldenKey | None:
    """Return the key of a run, None where it has no single one: GPUs of two kinds, or it does not say what computed."""
    kinds = {device.kind for device in run.devices}
    if len(kinds) != 1 or not all((*kinds, run.engine, run.backend, run.program)):
        return None
    return GoldenKey(
        gpu=kinds.pop(),
        driver=run.driver,
        engine=run.engine,
        backend=run.backend,
        runtime=run.runtime,
        program=run.program,
    )


def find_golden(run: LoadRun, goldens: Iterable[GoldenDigests]) -> tuple[Mapping[UnitName, str], str]:
    """Return the golden digests for a run by test and seed, and "" or why there are none."""
    key = make_golden_key(run)
    if key is None:
        return {}, "the run names no single GPU, engine and program, so it has no key"
    digests: dict[UnitName, str] = {}
    for golden in goldens:
        if golden.computed_by == key:
            digests.update(golden.list_digests())
    if not digests:
        return {}, f"there are no golden digests for {key.differences_shown}"
    if not any(unit.name in digests for unit in run.computed):
        return {}, f"the golden digests for {key.differences_shown} have none of the run's tests and seeds"
    return digests, ""


def learn_golden(runs: Mapping[str, LoadRun]) -> tuple[GoldenKey, dict[UnitName, str]]:
    """Return key and digests from the runs of at least two nodes: the units that all of them computed.

    Raises AssayError, each time with the reason: one node, another key, a unit that could not be told, a GPU that was
    outvoted, a silent GPU, a run without its end, nodes that disagree, or no unit in common.
    """
    if len(runs) < LEAST_NODES:
        raise AssayError(
            "golden digests need two nodes that agree: the GPUs of one node may share a fault",
            fix="name another node of the same kind",
        )
    keys = {node: _require_sound_run(node, run) for node, run in runs.items()}
    first = next(iter(keys))
    for node, key in keys.items():
        if key != keys[first]:
            raise AssayError(
                f"{first} and {node} did not compute with the same: {keys[first].differences_shown}; "
                f"{key.differences_shown}",
                fix="learn golden digests for each of them, from two nodes of each",
            )
    shared = _find_shared_digests(runs)
    if not shared:
        raise AssayError("the nodes have no test and seed in common", fix="run both with the same seeds")
    return keys[first], shared


def _require_sound_run(node: str, run: LoadRun) -> GoldenKey:
    verdict, key = judge_run(run), make_golden_key(run)
    fix = "golden digests come from healthy nodes only"
    if key is None:
        raise AssayError(f"{node}: the run names no single GPU, engine and program", fix=fix)
    if run.cut_short:
        raise AssayError(f"{node}: the run did not end: {run.cut_short}", fix="run it again")
    if not run.computed:
        raise AssayError(f"{node}: nothing was computed", fix="run it again")
    for place, device in enumerate(run.devices):
        if wrong := verdict.find_wrong_units(place):
            names = {at: gpu.uuid for at, gpu in enumerate(run.devices)}
            raise AssayError(
                f"{node}: {device.uuid} computed {len(wrong.units)} units wrong {wrong.describe(names)}", fix=fix
            )
    if verdict.silent_units:
        silent = format_list(run.devices[place].uuid for place in verdict.silent_units)
        raise AssayError(f"{node}: no result from {silent}", fix=fix)
    if untold := [vote for vote in verdict.votes if not vote.is_told]:
        raise AssayError(f"{node}: it cannot be told who is right: {describe_untold(untold)}", fix=fix)
    return key


def _find_shared_digests(runs: Mapping[str, LoadRun]) -> dict[UnitName, str]:
    """Return what all nodes computed. Raises AssayError where two of them differ."""
    (first, run), *others = runs.items()
    shared = {unit.name: str(unit.digests[0]) for unit in run.computed}
    for node, other in others:
        theirs = {unit.name: str(unit.digests[0]) for unit in other.computed}
        shared = {name: digest for name, digest in shared.items() if name in theirs}
        if different := [name for name in shared if shared[name] != theirs[name]]:
            test, seed = different[0]
            raise AssayError(
                f"{first} and {node} disagree in {len(different)} of {len(shared)} units, "
                f"first in {test}, seed {seed}: {shared[test, seed]} and {theirs[test, seed]}",
                fix="find out what differs between the two nodes; no digest of them is golden",
            )
    return shared


def pack_digests(digests: Mapping[UnitName, str]) -> dict[str, dict[str, list[str]]]:
    """Return digests as a spec holds them: by test, then by the first seed of each run of seeds, or of steps."""
    packed: dict[str, dict[str, list[str]]] = {}
    last: tuple[str, tuple[int, ...]] = "", ()
    for test, numbers in sorted((test, tuple(map(int, seed.split(".")))) for test, seed in digests):
        seed, runs = ".".join(map(str, numbers)), packed.setdefault(test, {})
        if last != (test, (*numbers[:-1], numbers[-1] - 1)):
            runs[seed] = []
        next(reversed(runs.values())).append(digests[test, seed])
        last = test, numbers
    return packed


def read_golden_run(evidence: EvidenceDocument, part: str) -> LoadRun:
    """Return the last run of a part, each golden number of it a unit. Raises UnreadableRun."""
    if part == SITE_TRAINING:
        return read_site_training(evidence).list_golden_units()
    branch = evidence.read("active", part)
    if branch.kind != "value":
        raise UnreadableRun("", branch.kind, branch.reason)
    return read_load_run(branch.value) if part == BATTERY else read_training_run(branch.value).list_golden_units()


def format_golden_spec(key: GoldenKey, nodes: Sequence[str], digests: Mapping[UnitName, str], on: date) -> str:
    """Return the YAML of a draft. A person sets the owner and says where the nodes' evidence is from."""
    source = f"{format_count(len(digests), 'unit')} on which {' and '.join(nodes)} agreed on {on.isoformat()}"
    head = [
        SCHEMA,
        "kind: GoldenDigests",
        f"name: {make_spec_name(key)}",
        "owner: fleet-engineering  # review: who answers for these digests?",
        f"sources: [{json.dumps(source)}]",
        "computed_by:",
        *(f"  {name}: {json.dumps(text)}" for name, text in key.model_dump().items()),
        f"nodes: {json.dumps(list(nodes))}",
        "digests:",
    ]
    return "\n".join([*head, *_list_tests(digests)]) + "\n"


def make_spec_name(key: GoldenKey) -> str:
    """Return a name for the digests of a key, such as `nvidia-h100-80gb-hbm3-580.95.05-jax-0.10.2-5609643c`."""
    words = f"{key.gpu} {key.driver} {key.engine} {key.program[:8]}".lower()
    return re.sub(r"[^a-z0-9.]+", "-", words).strip("-.")


def _list_tests(digests: Mapping[UnitName, str]) -> Iterator[str]:
    for test, runs in pack_digests(digests).items():
        line = f"  {test}: {json.dumps(runs)}"
        if len(line) <= LINE:
            yield line
            continue
        yield f"  {test}:"
        for first, values in runs.items():
            yield f"    {json.dumps(first)}:"
            most = max(1, ROW // len(max(values, key=len)))
            rows = [values[at : at + most] for at in range(0, len(values), most)]
            text = ",\n       ".join(", ".join(json.dumps(value) for value in row) for row in rows)
            yield f"      [{text}]"


def is_sound(run: LoadRun) -> bool:
    """Whether at least two GPUs gave the same digest in each unit: such a run may vouch, and needs nobody to."""
    alike = all(None not in unit.digests and len(set(unit.digests)) == 1 for unit in run.units)
    return bool(run.units) and alike and len(run.devices) >= LEAST_GOLDEN_VOTERS


def read_battery(evidence: EvidenceDocument) -> LoadRun | None:
    """Return the battery of a document, None if there is none."""
    try:
        return read_golden_run(evidence, BATTERY)
    except UnreadableRun:
        return None


def find_start(neighbours: Mapping[str, Sequence[LoadRun]]) -> str:
    """Return after which unit a battery must go on to compute what a neighbour computed, "" if from the first."""
    longest = max(chain.from_iterable(neighbours.values()), key=lambda run: len(run.units), default=None)
    first = min((int(unit.seed) for unit in longest.units), default=0) if longest else 0
    return f"{first - 1}:{EVERY_TEST}" if first else ""


VoteKey = tuple[GoldenKey | None, int]
"""What computed, and on how many GPUs."""


class NodeVotes:
    """What nodes computed, by what computed it."""

    def __init__(self, runs: Mapping[str, Iterable[LoadRun]]) -> None:
        self._units: dict[VoteKey, dict[UnitName, dict[str, tuple[Digest, ...]]]] = {}
        self._seen: dict[VoteKey, dict[UnitName, set[Digest]]] = {}
        for node, own in runs.items():
            for run in own:
                self._add(node, run)

    def _add(self, node: str, run: LoadRun) -> None:
        key = make_golden_key(run), len(run.devices)
        units, seen = self._units.setdefault(key, {}), self._seen.setdefault(key, {})
        for unit in run.computed if key[0] else ():
            units.setdefault(unit.name, {})[node] = unit.digests
            seen.setdefault(unit.name, set()).update(unit.digests)

    def count_others(self, node: str, run: LoadRun) -> dict[str, Any]:
        """Return what the others computed of a node's run, as evidence holds it.

        Units that nobody else computed, and those in which nobody differs, are left out.
        """
        key = make_golden_key(run), len(run.devices)
        units, seen = self._units.get(key, {}), self._seen.get(key, {})
        names, counted = dict[str, None](), dict[str, dict[str, dict[str, int]]]()
        for unit in run.computed:
            others = {other: digests for other, digests in units.get(unit.name, {}).items() if other != node}
            if others and len(seen[unit.name].union(unit.digests)) > 1:
                names |= dict.fromkeys(others)
                digests = Counter(digest for theirs in others.values() for digest in theirs if digest is not None)
                counted.setdefault(unit.test, {})[unit.seed] = dict(digests)
        return {"nodes": [*names], "digests": counted}


def parse_other_nodes(counted: Any) -> OtherNodes:
    """Return what other nodes computed, as `NodeVotes` counted it; nothing of anything else."""
    if not isinstance(counted, Mapping):
        return OtherNodes()
    tests: Mapping[str, Mapping[str, Counts]] = counted["digests"]
    digests = {(test, seed): counts for test, seeds in tests.items() for seed, counts in seeds.items()}
    return OtherNodes(tuple(counted["nodes"]), digests)


def read_other_nodes(evidence: EvidenceDocument) -> OtherNodes:
    """Return what other nodes computed of a document's battery."""
    return parse_other_nodes(evidence.read(FLEET_CHANNEL, NEIGHBOURS).value)


def judge_beside_others(run: LoadRun, goldens: Iterable[GoldenDigests], others: OtherNodes) -> tuple[RunVerdict, str]:
    """Return the verdict on a run, and why it was compared with no golden digest, "" if it was."""
    golden, lack = find_golden(run, goldens)
    return judge_run(run, golden, others), lack
