"""Shards of a run: cutting the nodes into them, the protocol of what runs them, and how a shard has ended.

A shard holds whole nodes, and so few that its process stays small. `ShardRunner` is implemented by processes of this
machine and by a Slurm job array.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.run_manifest import RunManifest
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.fleet import Fleet
from assay.validate.judging.session_outcome_file import JUDGED_KEY

UNJUDGED_PREFIXES = ("lost: ", "deadline: ")
"""Prefixes of the reason of an outcome that its shard did not reach. A resumed run judges it."""
MAX_SHARD_NODES, MAX_SHARD_OUTCOMES = 1000, 100_000
"""Limits of one shard. Its process then takes about 140 MB, or 270 MB where no outcome is a pass."""
NARROWING_OPTIONS = ("-k", "-m")
PYTEST_ARGUMENTS = (
    *("-m", "pytest", "suites", "--import-mode=importlib", "-p", "no:cacheprovider", "-q"),
    *("--continue-on-collection-errors", "-o", "addopts="),  # only what a person typed may leave checks out
    *("-o", "console_output_style=classic"),
    *("-o", "required_plugins="),  # the plugin is given by its module, which pytest does not count
)
"""With captured output (no -s): without, a line of dots never ends, and pytest measures it again with each dot."""


@dataclass(frozen=True)
class RunShard:
    """One process of pytest: `command`, to be run in `folder` with `environment` added to the current one.

    It adds outcomes to the existing file `store`, and does not judge again what that holds. `log` takes its output.
    """

    number: int
    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    store: Path
    log: Path


@dataclass(frozen=True)
class EndedShard:
    """A shard that has ended. `failure` is "" where all was judged, else `lost: …` or `deadline: …`, for people."""

    shard: RunShard
    failure: str = ""


class ShardRunner(Protocol):
    """Runs shards. An implementation need not know what they judge."""

    def start(self, shards: Sequence[RunShard], deadline_s: float) -> None:
        """Start the shards, as many at a time as there is room for. The deadline of each starts when it runs.

        Processes that a killed run left for the same shards are ended first.
        """

    def collect_ended(self) -> Sequence[EndedShard]:
        """Return the shards that ended since the last call. Their stores can be read, and no process writes to them."""

    def list_running(self) -> Sequence[RunShard]:
        """Return the shards that have started; their stores may show how far they are."""

    def stop(self) -> None:
        """End the shards that run or wait, and return when no process writes for them."""


def describe_exit(code: int, log: Path) -> str:
    """Return the failure of a shard whose pytest ended neither at its deadline nor after its last check."""
    how = describe_code(code)
    if code < 0:
        return f"lost: {how}"
    text = log.read_text(errors="replace") if log.exists() else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "")
    return f"lost: {how}{f': {last}' if last else ' and printed nothing'}"


def describe_code(code: int) -> str:
    """Return how a process ended, by its exit code."""
    if code >= 0:
        return f"pytest ended with {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"pytest was killed by {name}"


def describe_timeout(deadline_s: float) -> str:
    """Return the failure of a shard that took too long."""
    return f"deadline: its shard did not end within {deadline_s:g} s"


def count_shards(nodes: int, due: int, jobs: int, extra: Sequence[str]) -> int:
    """Return the number of shards for a run of `nodes` nodes and `due` outcomes: a multiple of `jobs`.

    -k and -m usually select little, so one shard for each job will do then, unless they exclude (`not`).
    """
    is_narrowed = any(word.startswith(NARROWING_OPTIONS) for word in extra) and not any(
        "not " in word for word in extra
    )
    least = 1 if is_narrowed else max(-(-nodes // MAX_SHARD_NODES), -(-due // MAX_SHARD_OUTCOMES))
    return max(1, min(nodes, -(-least // jobs) * jobs))


def cut_into_shards(
    fleet: Fleet, manifest: RunManifest, home: Path, environment: Mapping[str, str]
) -> Iterator[RunShard]:
    """Yield the shards of a run, whose files are in the folder `home`. Each store exists when its shard is yielded."""
    options = [*_shard_options(fleet, manifest, home), *manifest.extra]
    for number in range(1, manifest.shards + 1):
        store = home / f"share-{number}.sqlite"
        OutcomeWriter(store, manifest.run).close()
        arguments = ["--assay-shard", f"{number}/{manifest.shards}", "--assay-store", str(store), *options]
        root = str(fleet.root)
        plugin = ["-p", "assay.validate.plugin", "--rootdir", root, "--confcutdir", root]
        command = (sys.executable, *PYTEST_ARGUMENTS, *plugin, *arguments)
        yield RunShard(number, command, fleet.root, environment, store, store.with_suffix(".log"))


def is_shard_judged(shard: RunShard) -> bool:
    """Return whether a shard was judged to its end, by the mark that its pytest wrote last."""
    with StoredRun.open(shard.store) as stored:
        return JUDGED_KEY in stored.about


def _shard_options(fleet: Fleet, manifest: RunManifest, home: Path) -> list[str]:
    """Return the options of every shard. Node names are in a file, since many do not fit into a command."""
    options = ["--assay-fleet", str(fleet.root), "--assay-evidence", str(manifest.evidence)]
    options += ["--assay-phase", ",".join(manifest.run.phases)] if manifest.run.phases else []
    if len(manifest.run.nodes) == len(fleet.nodes):
        return options
    names = home / "nodes"
    names.write_text(f"--assay-node={','.join(manifest.run.nodes)}\n")
    return [*options, f"@{names}"]
