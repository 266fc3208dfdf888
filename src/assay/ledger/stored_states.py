"""Keeps a state that follows from the ledger in a file, for commands that begin later and only read.

    .assay/cache/states/NAME.VERSION.json
      {seq, hash, state}: `seq` is the number of the last entry that the state has, `hash` that of this entry

The ledger chains its hashes. So while entry `seq` has this hash, all entries before it are those from which the state
follows: a copy that was restored and went on, or another ledger, is folded anew. The file may be deleted at any time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from assay.model.ledger_entry import LedgerEntry
from assay.model.projection import StateForm

S = TypeVar("S")
WORTH_KEEPING = 5_000
"""So many new entries take longer to fold than a state takes to write."""
DELETED_AFTER_S = 7 * 86_400.0
"""The file of another version is deleted after so long: two versions may work on one fleet for a while."""


class EntrySource(Protocol):
    """A ledger that is read."""

    def entries(self, *, kinds: Collection[str] = (), after: int = 0, most: int | None = None) -> list[LedgerEntry]:
        """Return entries in order: of some kinds, with numbers above `after`; the first `most`."""

    def hash_of(self, seq: int) -> str | None:
        """Return the hash of an entry, None where there is none of that number."""


def read_stored_state(form: StateForm[S], folder: Path, source: EntrySource) -> S:
    """Return the state as of now: the one that is kept, with the entries since then. Keep it if that is worth it."""
    file = folder / f"{form.name}.{form.version}.json"
    seq, state = _load(form, file, source)
    entries = source.entries(kinds=form.projection.kinds, after=seq)
    state = form.projection.fold(entries, state)
    if len(entries) >= WORTH_KEEPING and (last := source.hash_of(entries[-1].seq)):
        with suppress(OSError):  # a full or read-only disk costs time, not the answer
            _write(file, {"seq": entries[-1].seq, "hash": last, "state": form.encode(state)})
            _delete_other_versions(form, file)
    return state


def _load(form: StateForm[S], file: Path, source: EntrySource) -> tuple[int, S]:
    try:
        kept = json.loads(file.read_text())
        if source.hash_of(kept["seq"]) == kept["hash"]:
            return int(kept["seq"]), form.decode(kept["state"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # none, or none that this version wrote
        pass
    return 0, form.projection.initial()


def _write(file: Path, content: Any) -> None:
    """Replace the file at once. Of two that write, the last one wins."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(content, separators=(",", ":")))
    draft.replace(file)


def _delete_other_versions(form: StateForm[Any], file: Path) -> None:
    for other in file.parent.glob(f"{form.name}.*"):
        if other != file and time.time() - other.stat().st_mtime > DELETED_AFTER_S:
            other.unlink()
