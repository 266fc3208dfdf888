"""Makes one file of a run's shards: their outcomes, and an error for whatever is declared and was not delivered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from assay.harness.declared import Selection
from assay.harness.deliver import remove, take_in
from assay.harness.order import ENDED, IN_PART, WHOLE, Order
from assay.harness.reconcile import Differences, Due, differences, mended
from assay.harness.shards import Ended
from assay.harness.store.merge import merge
from assay.harness.store.read import Stored
from assay.harness.store.tables import transaction, writable
from assay.harness.store.write import Writer
from assay.model.fleet import Fleet

UNTOLD = "no outcome was delivered: no test of that name ran"


def begin(file: Path, order: Order, more: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Write a run without outcomes beside `file`, which it can replace at once, and return where."""
    fresh = file.with_name("new.sqlite")
    remove(fresh)
    Writer(fresh, order.run, {**order.about(), **more}).close()
    return fresh


def finish(fleet: Fleet, order: Order, ended: Sequence[Ended], file: Path) -> None:
    """Write the run to `file`, whole or not at all, and drop the shards' files unless one can be gone on with."""
    how = WHOLE if all(not one.how for one in ended) else IN_PART
    fresh = begin(file, order, {ENDED: how})
    for one in ended:
        take_in(one.shard.store)
    merge(fresh, [one.shard.store for one in ended])
    for one in ended:
        share = Selection(fleet, order.run.nodes, one.shard.number, order.shards)
        _settle(fresh, order, Due.of(share, order.run.phases), one)
    Writer(fresh, order.run).close()  # which makes one file of it
    fresh.replace(file)
    if how == WHOLE:
        drop(file.parent)


def drop(home: Path) -> None:
    """Delete what only a run that goes on needs; the logs stay."""
    for share in home.glob("share-*.sqlite"):
        remove(share)
    (home / "nodes").unlink(missing_ok=True)


def _settle(fresh: Path, order: Order, due: Due, one: Ended) -> None:
    """Put an error in the place of each difference between a shard's due and what it delivered."""
    with Stored.open(one.shard.store) as share:
        found = differences(due, share)
        if not found:
            return
        _forget(fresh, found)
        writer = Writer(fresh, order.run)
        for outcome in mended(due, found, share, one.how or UNTOLD):
            writer(outcome)
        writer.close()


def _forget(fresh: Path, found: Differences) -> None:
    """Take out what was delivered and not declared, so that its error can be written."""
    connection = writable(fresh)
    with transaction(connection):
        for check, (subjects, _) in found.undeclared.items():
            connection.execute(
                """DELETE FROM outcome WHERE check_ IN (SELECT id FROM check_ WHERE name = ?)
                AND subject IN (SELECT id FROM subject WHERE name IN (SELECT value FROM json_each(?)))""",
                (check, json.dumps(list(subjects))),
            )
    connection.close()
