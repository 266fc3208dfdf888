"""What follows when the process of a shard ends: the shard is through, lost, or goes on in a fresh process.

Only the mark that pytest writes after its last check says that a shard is through; no exit code does. A process that
ends during a check costs that check its outcome on that subject, and nothing else.
"""

from __future__ import annotations

import signal

from assay.validate.judging.current_check import JudgingNote, locate_note, read_note
from assay.validate.judging.unjudged_checks import UnjudgedChecks
from assay.validate.runs.sharding import RunShard, describe_code, describe_exit, is_shard_judged

OUTSIDE_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
"""Signals that people, Slurm or the kernel's lack of memory send: the check is to blame only if it happens again."""
MAX_CRASHES = 3
"""A check that has crashed so often in a shard is not tried on its other subjects."""


def settle_exit(shard: RunShard, code: int) -> str | None:
    """Return the failure of a shard whose process has ended ("" for none), None where a fresh process must go on."""
    if is_shard_judged(shard):
        return ""
    note = read_note(shard.store)
    locate_note(shard.store).unlink(missing_ok=True)
    if note is None:
        return describe_exit(code, shard.log)
    with UnjudgedChecks.open(shard.store) as unjudged:
        if _is_from_outside(code, note) and unjudged.replace_suspect(note) != note:
            return None
        _blame(unjudged, note, describe_code(code))
    return None


def _blame(unjudged: UnjudgedChecks, note: JudgingNote, how: str) -> None:
    if not note.subject:
        unjudged.add(note.check, "", f"{note.check} cannot be imported: {how} meanwhile")
        return
    unjudged.add(note.check, note.subject, f"the check crashed: {how} meanwhile")
    if unjudged.count(note.check) >= MAX_CRASHES:
        unjudged.add(note.check, "", f"not judged: the check has crashed {MAX_CRASHES} times, at last {how}")


def _is_from_outside(code: int, note: JudgingNote) -> bool:
    return note.signalled or -code in OUTSIDE_SIGNALS
