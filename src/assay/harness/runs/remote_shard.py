"""One shard of a run on another machine that shares a folder with us: `python -m assay.harness.runs.remote_shard FOLDER NUMBER`.

SQLite's write-ahead log is not safe across machines. So a shard is judged into a file of its own machine. What that
holds is copied every few seconds, and at the end, into a file that takes its place in the shared folder at once. So
what lies there is a whole state, whoever is killed at any moment.
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
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from assay.harness.judging.failure_artefacts import artefact_folder
from assay.harness.judging.outcome_delivery import delete_run_file, merge_worker_files
from assay.harness.runs.local_processes import start_pytest
from assay.harness.runs.sharding import RunShard, describe_exit
from assay.results.store.reader import StoredRun

SHARD_JOBS_FILE = "errands.json"
SHARD_END_KEY = "errand"
"""Says in a file that was delivered that it is the last, and how the shard ended: "" where all was judged."""
DELIVERY_INTERVAL_S, PROCESS_POLL_S, INTERRUPT_GRACE_S = 5.0, 0.2, 10.0
SHARD_LEDGER_VARIABLE = "ASSAY_LEDGER"


@dataclass(frozen=True)
class RemoteShard:
    """A shard to judge, and the `folder` of all that both machines must see of it besides the fleet's."""

    shard: RunShard
    folder: Path

    @property
    def delivered_store(self) -> Path:
        """Where what was judged so far is put."""
        return self.folder / self.shard.store.name


def write_shard_jobs(folder: Path, shards: Sequence[RunShard], environment: Mapping[str, str]) -> list[RemoteShard]:
    """Write down what is to be judged, for nobody else to read: a ledger's URL may hold a password."""
    told = {one.number: asdict(one) | {"environment": {**environment, **one.environment}} for one in shards}
    with os.fdopen(os.open(folder / SHARD_JOBS_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(told, file, default=str)
    return [RemoteShard(shard, folder) for shard in shards]


def read_shard_job(folder: Path, number: int) -> RemoteShard:
    """Return what was written down of a shard."""
    told: dict[str, Any] = json.loads((folder / SHARD_JOBS_FILE).read_text())[str(number)]
    paths = {name: Path(told[name]) for name in ("folder", "store", "log")}
    return RemoteShard(RunShard(number, tuple(told["command"]), environment=told["environment"], **paths), folder)


def run_remote_shard(errand: RemoteShard) -> None:
    """Judge the shard, and deliver what that came to, also when this is told to end."""
    told_to_end: list[int] = []
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda number, _: told_to_end.append(number))
    with tempfile.TemporaryDirectory(prefix="assay-") as home:
        store = _copy_store_here(errand.shard, Path(home))
        code = _wait_and_deliver(_start_pytest(errand, store), told_to_end, store, errand.delivered_store)
        merge_worker_files(store)
        said = describe_exit(code, errand.shard.log)
        if not said or not told_to_end:
            _write_shard_end(store, said)
        _publish_store(store, errand.delivered_store)


def read_shard_end(delivered: Path) -> str | None:
    """Return how a shard ended by what it delivered, None where there is more to come."""
    with StoredRun.open(delivered) as stored:
        return stored.about.get(SHARD_END_KEY)


def _copy_store_here(shard: RunShard, home: Path) -> Path:
    """Return this machine's copy of a shard's store. What is kept beside stores goes to where it would without us."""
    artefacts = artefact_folder(shard.store)
    artefacts.mkdir(parents=True, exist_ok=True)
    (home / artefacts.name).symlink_to(artefacts)
    store = home / "runs" / shard.store.parent.name / shard.store.name
    store.parent.mkdir(parents=True)
    shutil.copyfile(shard.store, store)
    with closing(sqlite3.connect(store)) as data, data:
        data.execute("DELETE FROM about WHERE key = ?", (SHARD_END_KEY,))
    return store


def _start_pytest(errand: RemoteShard, store: Path) -> subprocess.Popen[bytes]:
    shard = errand.shard
    ledger = Path(shard.environment.get(SHARD_LEDGER_VARIABLE, os.environ.get(SHARD_LEDGER_VARIABLE, "")))
    own = (
        {SHARD_LEDGER_VARIABLE: str(shutil.copyfile(ledger, store.with_name(ledger.name)))}
        if ledger.parent == errand.folder
        else {}
    )
    command = [str(store) if word == str(shard.store) else word for word in shard.command]
    return start_pytest(shard, command, {**shard.environment, **own})


def _wait_and_deliver(process: subprocess.Popen[bytes], told_to_end: list[int], store: Path, delivered: Path) -> int:
    """Return pytest's exit code, and deliver what there is while it runs. One that is to end gets a moment for that.

    A shared folder that cannot be written to just now is tried again.
    """
    next_at, seen = time.monotonic() + DELIVERY_INTERVAL_S, _read_file_state(store)
    while (code := process.poll()) is None:
        if told_to_end:
            return _interrupt_pytest(process)
        if time.monotonic() >= next_at:
            if (state := _read_file_state(store)) != seen:
                with suppress(OSError, sqlite3.Error):
                    _publish_store(store, delivered)
                    seen = state
            next_at = time.monotonic() + DELIVERY_INTERVAL_S
        time.sleep(PROCESS_POLL_S)
    return code


def _interrupt_pytest(process: subprocess.Popen[bytes]) -> int:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does, so that it puts on disk what it has
    try:
        return process.wait(INTERRUPT_GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def _read_file_state(store: Path) -> list[tuple[int, int]]:
    """Return what changes whenever something is written to a store."""
    files = [path.stat() for path in (store, store.with_name(f"{store.name}-wal")) if path.exists()]
    return [(one.st_mtime_ns, one.st_size) for one in files]


def _write_shard_end(store: Path, said: str) -> None:
    with closing(sqlite3.connect(store)) as data, data:
        data.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (SHARD_END_KEY, said))


def _publish_store(store: Path, delivered: Path) -> None:
    """Put a whole state of a store into the shared folder, in the place of the one before."""
    state, part = store.with_name("state"), delivered.with_suffix(".part")
    delete_run_file(state)
    copy_database(store, state)
    with state.open("rb") as source, part.open("wb") as file:
        shutil.copyfileobj(source, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(delivered)


def copy_database(database: Path, to: Path) -> None:
    """Copy an SQLite file that others may be writing to, as one file that may be read from anywhere."""
    with closing(sqlite3.connect(database, timeout=60)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")


if __name__ == "__main__":
    run_remote_shard(read_shard_job(Path(sys.argv[1]), int(sys.argv[2])))
