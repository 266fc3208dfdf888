"""Judges one shard of a run on another machine, which shares a folder with the one that started the run.

`python -m assay.validate.runs.remote_shard FOLDER NUMBER`

SQLite's write-ahead log is not safe across machines. So a shard is judged into a local file, and its content is copied
to the shared folder every few seconds and at the end. Each copy replaces the last one atomically, so that a kill at any
moment leaves a consistent file there.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from assay.ledger.runs.reader import StoredRun
from assay.validate.judging.failure_notes import artefact_folder
from assay.validate.judging.session_outcome_file import delete_run_file, merge_worker_files
from assay.validate.runs.shard_processes import ShardProcess, settle_exit, start_pytest
from assay.validate.runs.sharding import RunShard, is_shard_judged

SHARD_JOBS_FILE = "shard_jobs.json"
SHARD_END_KEY = "shard_end"
"""Key in `about` of the last file that a shard delivers; the value is the shard's failure, "" where all was judged."""
DELIVERY_INTERVAL_S = 5.0
PROCESS_POLL_S = 0.2
INTERRUPT_GRACE_S = 10.0
SHARD_LEDGER_VARIABLE = "ASSAY_LEDGER"


@dataclass(frozen=True)
class RemoteShard:
    """A shard, and the `folder` with the files that both machines need besides the fleet's."""

    shard: RunShard
    folder: Path

    @property
    def delivered_store(self) -> Path:
        """The shared copy of the shard's store."""
        return self.folder / self.shard.store.name


def write_shard_jobs(folder: Path, shards: Sequence[RunShard]) -> list[RemoteShard]:
    """Write the shards for `read_shard_job`. Only the owner may read the file: a ledger's URL may hold a password."""
    jobs = {shard.number: asdict(shard) for shard in shards}
    with os.fdopen(os.open(folder / SHARD_JOBS_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(jobs, file, default=str)
    return [RemoteShard(shard, folder) for shard in shards]


def read_shard_job(folder: Path, number: int) -> RemoteShard:
    """Return a shard that `write_shard_jobs` wrote."""
    job: dict[str, Any] = json.loads((folder / SHARD_JOBS_FILE).read_text())[str(number)]
    paths = {name: Path(job[name]) for name in ("folder", "store", "log")}
    return RemoteShard(RunShard(number, tuple(job["command"]), environment=job["environment"], **paths), folder)


def run_remote_shard(remote: RemoteShard) -> None:
    """Judge a shard and deliver its outcomes, also when SIGTERM or SIGINT interrupts it."""
    signals: list[int] = []
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda number, _: signals.append(number))
    with tempfile.TemporaryDirectory(prefix="assay-") as home:
        store = _copy_store_here(remote.shard, Path(home))
        failure = _judge_shard(remote, store, signals)
        merge_worker_files(store)
        if failure is not None:
            _write_shard_end(store, failure)
        _publish_store(store, remote.delivered_store)


def _judge_shard(remote: RemoteShard, store: Path, signals: list[int]) -> str | None:
    """Judge a shard, in a fresh process after each crash. Return its failure ("" for none), None if interrupted."""
    here = replace(remote.shard, store=store)
    while True:
        code = _wait_and_deliver(_start_pytest(remote, store), signals, store, remote.delivered_store)
        if signals:
            return "" if is_shard_judged(here) else None
        failure = settle_exit(here, code)
        if failure is not None:
            return failure


def read_shard_end(delivered: Path) -> str | None:
    """Return the failure of a shard that has ended ("" for none) by its delivered file, None where more will come."""
    with StoredRun.open(delivered) as stored:
        return stored.about.get(SHARD_END_KEY)


def _copy_store_here(shard: RunShard, home: Path) -> Path:
    """Return a local copy of a shard's store. Artefacts, which go beside stores, still reach their shared folder."""
    artefacts = artefact_folder(shard.store)
    artefacts.mkdir(parents=True, exist_ok=True)
    (home / artefacts.name).symlink_to(artefacts)
    store = home / "runs" / shard.store.parent.name / shard.store.name
    store.parent.mkdir(parents=True)
    shutil.copyfile(shard.store, store)
    with closing(sqlite3.connect(store)) as data, data:
        data.execute("DELETE FROM about WHERE key = ?", (SHARD_END_KEY,))
    return store


def _start_pytest(remote: RemoteShard, store: Path) -> ShardProcess:
    """Start pytest on local copies of the store, and of the ledger where that is a file in the shared folder."""
    shard, environment = remote.shard, dict(remote.shard.environment)
    ledger = Path(environment.get(SHARD_LEDGER_VARIABLE, os.environ.get(SHARD_LEDGER_VARIABLE, "")))
    if ledger.parent == remote.folder:
        environment[SHARD_LEDGER_VARIABLE] = str(shutil.copyfile(ledger, store.with_name(ledger.name)))
    command = [str(store) if word == str(shard.store) else word for word in shard.command]
    return start_pytest(shard, command, environment)


def _wait_and_deliver(process: ShardProcess, signals: list[int], store: Path, delivered: Path) -> int:
    """Deliver the store while pytest runs, and return its exit code. After a signal, pytest gets time to end.

    A delivery that fails, as when the shared folder is away, is repeated.
    """
    next_delivery, delivered_state = time.monotonic() + DELIVERY_INTERVAL_S, _read_file_state(store)
    while (code := process.poll()) is None:
        if signals:
            return _interrupt_pytest(process)
        if time.monotonic() >= next_delivery:
            if (state := _read_file_state(store)) != delivered_state:
                with suppress(OSError, sqlite3.Error):
                    _publish_store(store, delivered)
                    delivered_state = state
            next_delivery = time.monotonic() + DELIVERY_INTERVAL_S
        time.sleep(PROCESS_POLL_S)
    return code


def _interrupt_pytest(process: ShardProcess) -> int:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does, so that it writes what it has
    try:
        return process.wait(INTERRUPT_GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def _read_file_state(store: Path) -> list[tuple[int, int]]:
    """Return times and sizes that change whenever a store is written to."""
    files = [path.stat() for path in (store, store.with_name(f"{store.name}-wal")) if path.exists()]
    return [(status.st_mtime_ns, status.st_size) for status in files]


def _write_shard_end(store: Path, failure: str) -> None:
    with closing(sqlite3.connect(store)) as data, data:
        data.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (SHARD_END_KEY, failure))


def _publish_store(store: Path, delivered: Path) -> None:
    """Replace the shared copy of a store by its present content, atomically."""
    state, part = store.with_name("state"), delivered.with_suffix(".part")
    delete_run_file(state)
    copy_database(store, state)
    with state.open("rb") as source, part.open("wb") as file:
        shutil.copyfileobj(source, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(delivered)


def copy_database(database: Path, to: Path) -> None:
    """Copy an SQLite file that others may be writing to, to one file without write-ahead log."""
    with closing(sqlite3.connect(database, timeout=60)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")


if __name__ == "__main__":
    run_remote_shard(read_shard_job(Path(sys.argv[1]), int(sys.argv[2])))
