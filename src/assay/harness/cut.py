"""Cuts a run into shards of whole nodes, so small that no process of it grows large."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from assay.harness.deliver import take_in
from assay.harness.order import Order
from assay.harness.shards import Shard
from assay.harness.store.read import Stored
from assay.harness.store.tables import writable
from assay.harness.store.write import Writer
from assay.model.fleet import Fleet

MOST_NODES, MOST_OUTCOMES = 1000, 80_000
"""Of a shard. So many outcomes take a process of about 120 MB, or of 220 where none of them is a pass."""
NARROWING = ("-k", "-m")
JUDGED = "judged"
"""Says of a shard's file that all is in it."""
PYTEST = ("-m", "pytest", "suites", "--import-mode=importlib", "-p", "no:cacheprovider", "-q")
"""It captures what checks print: without, a line of dots never ends, and pytest measures it again with each dot."""


def how_many(nodes: int, due: int, jobs: int, extra: Sequence[str]) -> int:
    """Return how many shards a run of `nodes` nodes and `due` outcomes is cut into: as many for each job.

    What -k or -m ask for is mostly little (unless they say what not); then there is one for each job.
    """
    narrowed = any(word.startswith(NARROWING) for word in extra) and not any("not " in word for word in extra)
    least = 1 if narrowed else max(-(-nodes // MOST_NODES), -(-due // MOST_OUTCOMES))
    return max(1, min(nodes, -(-least // jobs) * jobs))


def cut(fleet: Fleet, order: Order, home: Path, environment: Mapping[str, str]) -> Iterator[Shard]:
    """Yield the shards of a run, whose files lie in the folder `home`; each has a store when it is yielded."""
    options = [*_given(fleet, order, home), *order.extra]
    for number in range(1, order.shards + 1):
        store = home / f"share-{number}.sqlite"
        Writer(store, order.run).close()
        words = ["--shard", f"{number}/{order.shards}", "--store", str(store), *options]
        plugin = ["-p", "assay.harness.plugin", "--rootdir", str(fleet.root)]
        command = (sys.executable, *PYTEST, *plugin, *words)
        yield Shard(number, command, fleet.root, environment, store, store.with_suffix(".log"))


def settle(shard: Shard) -> None:
    """Note that a shard has judged all it can, so that nobody asks it again."""
    take_in(shard.store)
    connection = writable(shard.store)
    connection.execute("INSERT OR REPLACE INTO about VALUES (?, '')", (JUDGED,))
    connection.close()


def is_through(shard: Shard) -> bool:
    """Return whether a shard has judged all it can."""
    with Stored.open(shard.store) as stored:
        return JUDGED in stored.about


def _given(fleet: Fleet, order: Order, home: Path) -> list[str]:
    """Return the options of every shard. The names of many nodes do not fit into a command, so a file has them."""
    words = ["--fleet", str(fleet.root), "--evidence", str(order.evidence)]
    words += ["--phase", ",".join(order.run.phases)] if order.run.phases else []
    if len(order.run.nodes) == len(fleet.nodes):
        return words
    names = home / "nodes"
    names.write_text(f"--node={','.join(order.run.nodes)}\n")
    return [*words, f"@{names}"]
