"""Shards of a run, whole nodes each, and what judges them: processes of this machine, or jobs of a cluster.

Cuts a run into shards of whole nodes, so small that no process of it grows large.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from assay.harness.judging.outcome_delivery import merge_worker_files
from assay.model.fleet import Fleet
from assay.results.store.reader import StoredRun
from assay.results.store.run_manifest import RunManifest
from assay.results.store.schema import open_writable
from assay.results.store.writer import OutcomeWriter

NO_TESTS_CODE = 5  # pytest's exit code when a selection, or an earlier session, leaves it nothing to run
COMPLETE_EXIT_CODES = (0, 1, NO_TESTS_CODE)
UNJUDGED_PREFIXES = ("lost: ", "deadline: ")
"""How the reasons of what a shard did not come to begin. It is judged when its run is gone on with."""


@dataclass(frozen=True)
class RunShard:
    """One pytest: `command`, run in `folder` with `environment` on top of what is set, says all there is to do.

    It adds outcomes to the file `store`, which is there already, and judges nothing again that is in it. What it
    prints belongs into `log`.
    """

    number: int
    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    store: Path
    log: Path


@dataclass(frozen=True)
class EndedShard:
    """A shard that is over. `how` is "" where all was judged, else `lost: …` or `deadline: …`, for people."""

    shard: RunShard
    failure: str = ""


class ShardRunner(Protocol):
    """Runs shards somewhere. Whoever implements it need not know what they judge."""

    def start(self, shards: Sequence[RunShard], deadline_s: float) -> None:
        """Begin with all of them, as many at once as there is room for, each with so many seconds once it runs.

        What an earlier run that was killed has left running for the same shards is ended first.
        """

    def collect_ended(self) -> Sequence[EndedShard]:
        """Return those that ended since the last look; their stores can be read here, and nobody writes to them."""

    def list_running(self) -> Sequence[RunShard]:
        """Return those that have begun; how far they are may be read from their stores."""

    def stop(self) -> None:
        """End what runs or waits, and return when nothing of it writes any more."""


def describe_exit(code: int, log: Path) -> str:
    """Return how a pytest ended that was not killed for its deadline: "" where it is through with its shard."""
    if code in COMPLETE_EXIT_CODES:
        return ""
    if code < 0:
        return f"lost: pytest was killed by {_signal(-code)}"
    lines = [line.strip() for line in _text(log).splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "it said nothing")
    return f"lost: pytest ended with {code}: {said}"


def describe_timeout(deadline_s: float) -> str:
    """Return what is said of a shard that took too long."""
    return f"deadline: its shard was not through after {deadline_s:g} s"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""


MAX_SHARD_NODES, MAX_SHARD_OUTCOMES = 1000, 80_000
"""Of a shard. So many outcomes take a process of about 120 MB, or of 220 where none of them is a pass."""
NARROWING_OPTIONS = ("-k", "-m")
JUDGED_KEY = "judged"
"""Says of a shard's file that all is in it."""
PYTEST_ARGUMENTS = ("-m", "pytest", "suites", "--import-mode=importlib", "-p", "no:cacheprovider", "-q")
"""It captures what checks print: without, a line of dots never ends, and pytest measures it again with each dot."""


def count_shards(nodes: int, due: int, jobs: int, extra: Sequence[str]) -> int:
    """Return how many shards a run of `nodes` nodes and `due` outcomes is cut into: as many for each job.

    What -k or -m ask for is mostly little (unless they say what not); then there is one for each job.
    """
    narrowed = any(word.startswith(NARROWING_OPTIONS) for word in extra) and not any("not " in word for word in extra)
    least = 1 if narrowed else max(-(-nodes // MAX_SHARD_NODES), -(-due // MAX_SHARD_OUTCOMES))
    return max(1, min(nodes, -(-least // jobs) * jobs))


def cut_into_shards(fleet: Fleet, order: RunManifest, home: Path, environment: Mapping[str, str]) -> Iterator[RunShard]:
    """Yield the shards of a run, whose files lie in the folder `home`; each has a store when it is yielded."""
    options = [*_shard_options(fleet, order, home), *order.extra]
    for number in range(1, order.shards + 1):
        store = home / f"share-{number}.sqlite"
        OutcomeWriter(store, order.run).close()
        words = ["--shard", f"{number}/{order.shards}", "--store", str(store), *options]
        plugin = ["-p", "assay.harness.plugin", "--rootdir", str(fleet.root)]
        command = (sys.executable, *PYTEST_ARGUMENTS, *plugin, *words)
        yield RunShard(number, command, fleet.root, environment, store, store.with_suffix(".log"))


def mark_shard_judged(shard: RunShard) -> None:
    """Note that a shard has judged all it can, so that nobody asks it again."""
    merge_worker_files(shard.store)
    connection = open_writable(shard.store)
    connection.execute("INSERT OR REPLACE INTO about VALUES (?, '')", (JUDGED_KEY,))
    connection.close()


def is_shard_judged(shard: RunShard) -> bool:
    """Return whether a shard has judged all it can."""
    with StoredRun.open(shard.store) as stored:
        return JUDGED_KEY in stored.about


def _shard_options(fleet: Fleet, order: RunManifest, home: Path) -> list[str]:
    """Return the options of every shard. The names of many nodes do not fit into a command, so a file has them."""
    words = ["--fleet", str(fleet.root), "--evidence", str(order.evidence)]
    words += ["--phase", ",".join(order.run.phases)] if order.run.phases else []
    if len(order.run.nodes) == len(fleet.nodes):
        return words
    names = home / "nodes"
    names.write_text(f"--node={','.join(order.run.nodes)}\n")
    return [*words, f"@{names}"]
