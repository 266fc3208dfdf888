"""`assay ledger backup`, `restore`, `archive`: the whole ledger or old entries in a file, and a ledger from a file.

Also what `assay ledger` says: whether the ledger is unchanged, how far anchors prove it, and where it was sealed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import print_answer
from assay.cli.operator_orders import Who, find_operator_name
from assay.cli.options import FleetDir, OutputFormat, argument, option
from assay.cli.workspace import Workspace
from assay.ledger.copies.archive import CheckedArchive
from assay.ledger.copies.seal import LedgerSeal
from assay.ledger.copies.sealing import AnchorReport, SealedAnchor, count_unproven, format_contradictions, format_extent
from assay.ledger.errors import BROKEN_LEDGER_FIX
from assay.model.errors import AssayError
from assay.model.facts import extend, fact, frozen
from assay.model.text.lists import format_count
from assay.model.timestamps import format_minute, parse_time

if TYPE_CHECKING:
    from assay.ledger.copies.archive import ArchivePlan
    from assay.ledger.copies.backup import CopiedLedger
    from assay.ledger.copies.seal import Anchor
    from assay.ledger.errors import BrokenLedgerError


UNANCHORED = "nothing outside of the ledger proves it; to change that: assay ledger seal --anchor ANCHOR"
EMPTY_LEDGER_FIX = "  → `assay reconcile --once` begins it; if it had entries before: assay ledger restore"


@fact
class LedgerVerifyAnswer:
    """Whether the ledger is unchanged, and what proves it."""

    whole: bool
    """Whether nothing is wrong; else the exit code is 1."""
    problems: list[str]
    """What was changed, removed, reordered or inserted, and the anchors that cannot be read."""
    ends: LedgerSeal
    """The ends of its chains."""
    seal: str
    """The seal of the ledger as it is now: the same in one word."""
    archives: tuple[CheckedArchive, ...]
    """The archives of old entries."""
    anchors: tuple[AnchorReport, ...]
    """What the anchors say."""


@fact
class LedgerSealAnswer:
    """The seal of the ledger, and the anchors that keep it."""

    seal: str
    """The seal."""
    problems: list[str]
    """Why the ledger is broken, so that nothing was sealed; empty if it is not."""
    anchors: list[SealedAnchor]
    """The anchors."""


@fact
class LedgerCopyAnswer:
    """A copy of the ledger that was written now."""

    file: str
    """The file of the copy that was written or read."""
    entries: int
    """How many entries it has."""
    runs: int
    """How many runs it has."""
    seal: str
    """The seal of the copied ledger."""
    schema: int
    """The version of the schema of its tables."""


@fact
class LedgerArchiveAnswer:
    """The old entries that were moved into an archive, or that would be."""

    moved: bool
    """Whether they were moved; false without --yes, and if there was none to move."""
    file: str
    """The archive."""
    before: str
    """Entries before this time were looked at: ISO 8601 with an offset."""
    entries: int
    """How many entries."""
    kinds: dict[str, int]
    """How many entries of each kind."""
    bytes: int
    """The size of their bodies in bytes."""
    until: str
    """The time of the last of them: ISO 8601 UTC; "" if there is none."""


@fact
class BrokenLedgerAnswer:
    """Why nothing was done: the ledger is broken."""

    problems: list[str]
    """What was changed, removed, reordered or inserted."""


def backup(
    file: Annotated[Path, argument("FILE", "The new file.")], fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """Copy the whole ledger, as it is now, into a new file. Others may write into the ledger meanwhile.

    The copy is verified by every hash before it gets its name. It is an SQLite file, also of a ledger on PostgreSQL:
    `ASSAY_LEDGER=FILE` reads it as it is, and `assay ledger restore` makes a ledger from it, on either database.

    Exit codes: 0 copied and verified; 1 the ledger was changed by somebody, and no copy was made; 2 it cannot be read,
    or FILE cannot be written or exists already.
    """
    from assay.ledger.copies.backup import back_up
    from assay.ledger.errors import BrokenLedgerError

    workspace = open_ledger_workspace(fleet)
    try:
        copied = back_up(workspace.ledger_location, file)
    except BrokenLedgerError as error:
        raise end_broken(error, "no copy was made", form) from None
    _print_copy(copied, f"{file} is a copy of the ledger", str(file), form)


def restore(
    file: Annotated[Path, argument("FILE", "A file of `assay ledger backup`.")],
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Make the ledger from a file of `assay ledger backup`. It replaces no ledger that holds entries.

    ASSAY_LEDGER names where the ledger shall be: a path, or `postgresql://…` to move it to a server. A backup of an
    older assay is upgraded. The ledger appears as a whole, when all its hashes are verified, or not at all. Orders that
    are open in it wait for a person: nobody knows what was done since the backup.

    Exit codes: 0 restored and verified; 1 somebody changed the backup; 2 it cannot be read, or the ledger cannot be
    written or holds entries already.
    """
    from assay.act.effects.gates import hold_restored_orders
    from assay.ledger.copies.backup import restore as restore_ledger
    from assay.ledger.errors import BrokenLedgerError

    workspace = Workspace(fleet.resolve())
    try:
        copied = restore_ledger(file, workspace.ledger_location, workspace.home.context)
    except BrokenLedgerError as error:
        raise end_broken(error, "nothing was restored", form) from None
    hold_restored_orders(workspace.ledger, file, workspace.clock.now())
    _print_copy(copied, f"the ledger is restored from {file}", str(file), form)


def archive(
    file: Annotated[Path, argument("FILE", "The new archive, such as 2025.gz.")],
    before: Annotated[str, option("--before DATE", "Entries before this day (UTC).")] = "",
    older_than: Annotated[float | None, option("--older-than DAYS", "Entries older than so many days.", min=1)] = None,
    yes: Annotated[bool, option("--yes", "Move them. Without it, only show what would be moved.")] = False,
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Move old entries on which nothing rests any more into a compressed file.

    These are slots of schedules (the newest of each stays), observations that failed, verifications that were missed.
    What states, tickets, rollouts and parts follow from stays in the ledger. Number, time, kind, node and hash of each
    moved entry stay too, and the ledger keeps the hash of the file, so `assay ledger verify` checks both.

    Exit codes: 0 moved, or shown; 1 the ledger was changed by somebody, and nothing was moved; 2 it cannot be read or
    written, or FILE exists already.
    """
    from assay.ledger.copies.archive import archive_entries, plan_archive
    from assay.ledger.errors import BrokenLedgerError

    workspace = open_ledger_workspace(fleet)
    now = workspace.clock.now()
    until = _parse_cut(before, older_than, now)
    head = workspace.ledger_for_reading.head()
    try:
        if yes:
            moved = archive_entries(workspace.ledger_location, file.absolute(), until, find_operator_name(who), now)
        else:
            moved = plan_archive(workspace.ledger_location, until)
    except BrokenLedgerError as error:
        raise end_broken(error, "nothing was moved", form) from None
    _print_archive(moved, file, until, form, moved_now=yes)
    seal_removals(workspace, head, who)


def _parse_cut(before: str, older_than: float | None, now: datetime) -> datetime:
    if bool(before) == (older_than is not None):
        raise AssayError("no day is given, or two are", fix="give one: --before 2026-01-01, or --older-than 365")
    if older_than is not None:
        return now - timedelta(days=older_than)
    try:
        until = parse_time(before)
    except ValueError:
        raise AssayError(f"{before!r} is no date", where="--before", fix="write it as 2026-01-01") from None
    if until > now:
        raise AssayError(f"{before} is in the future", where="--before", fix="name a day in the past")
    return until


def _print_archive(moved: ArchivePlan, file: Path, until: datetime, form: str, *, moved_now: bool) -> None:
    answer = LedgerArchiveAnswer(
        moved=moved_now and bool(moved.entries),
        file=str(file),
        before=until.isoformat(),
        entries=moved.entries,
        kinds=moved.kinds,
        bytes=moved.size,
        until=moved.until,
    )
    lines = [f"  {count:>9,} {kind}" for kind, count in sorted(moved.kinds.items())]
    if not moved.entries:
        lines.append(f"no entry before {format_minute(until.isoformat())} can be moved; no archive was made")
    else:
        extent = f"{moved.entries:,} entries until {format_minute(moved.until)}, {moved.size / 1e3:,.0f} kB"
        done = f"moved to {file}; keep this file: the ledger does not have them any more"
        lines.append(f"{extent}, {done if moved_now else f'would move to {file}; nothing is moved without --yes'}")
    print_answer(answer, form, lines)


def open_ledger_workspace(fleet: Path) -> Workspace:
    """Return the workspace of a fleet that has a ledger. Raises AssayError if there is none."""
    workspace = Workspace(fleet.resolve())
    if not workspace.has_ledger:
        where = str(workspace.ledger_location)
        raise AssayError("there is no ledger yet", where=where, fix="run: assay reconcile --once")
    return workspace


def _print_copy(copied: CopiedLedger, headline: str, file: str, form: str) -> None:
    from assay.ledger.copies.seal import make_seal

    seal = make_seal(copied.ends)
    entries, runs = copied.ends["entry"][0], copied.ends["run"][0]
    answer = LedgerCopyAnswer(file, entries, runs, str(seal), copied.version)
    print_answer(answer, form, [f"{headline}: {count_lines(seal)}; every hash is verified", f"  its seal is {seal}"])


def end_broken(error: BrokenLedgerError, consequence: str, form: str) -> typer.Exit:
    """Say that a ledger is broken, and what follows; return the end of the command."""
    print_answer(BrokenLedgerAnswer([*error.problems]), form, [format_broken(consequence, error.problems)])
    return typer.Exit(1)


@frozen
class LedgerVerification:
    """The result of a verification: of the chains, of a seal that was given, and of each anchor."""

    chain_problems: tuple[str, ...]
    seal_problems: tuple[str, ...]
    anchors: tuple[AnchorReport, ...]
    ends: LedgerSeal
    archives: tuple[CheckedArchive, ...] = ()

    @property
    def contradictions(self) -> list[str]:
        """What shows that the ledger was altered."""
        anchored = [format_contradictions(report) for report in self.anchors if report.contradictions]
        archived = [problem for archive in self.archives for problem in archive.problems]
        return [*self.chain_problems, *archived, *self.seal_problems, *anchored]

    @property
    def problems(self) -> list[str]:
        """What shows that the ledger was altered, and the anchors that cannot be read."""
        return [*self.contradictions, *(report.unreadable for report in self.anchors if report.unreadable)]

    def to_json(self) -> LedgerVerifyAnswer:
        """Return it as JSON data."""
        return extend(LedgerVerifyAnswer, self, whole=not self.problems and not self.is_empty, seal=str(self.ends))

    @property
    def is_empty(self) -> bool:
        """Whether the ledger has nothing that could be verified."""
        return not self.ends.entry.seq and not (self.ends.run and self.ends.run.seq)

    def to_text(self) -> str:
        """Return it as text: what is wrong and what to do, or the size of the ledger, its anchors and its seal."""
        lines = self._headline()
        lines += [f"  {_format_archive(archive)}" for archive in self.archives if not archive.problems]
        proofs = [report for report in self.anchors if report.proven and not report.contradictions]
        lines += [f"  {format_proof(report, self.ends)}" for report in proofs]
        if not self.contradictions:
            if not self.anchors:
                lines.append(f"  {UNANCHORED}")
            lines.append(EMPTY_LEDGER_FIX if self.is_empty else f"  its seal is {self.ends}")
        if self.contradictions:
            lines.append(f"  → {BROKEN_LEDGER_FIX}")
        return "\n".join(lines)

    def _headline(self) -> list[str]:
        if self.contradictions:
            return ["the ledger is broken", *(_indent(line) for line in self.problems)]
        verdict = "empty, which proves nothing" if self.is_empty else f"unchanged: {count_lines(self.ends)}"
        size = f"the ledger is {verdict}"
        if not self.problems:
            return [size]
        return [f"{size}; but not every anchor says so", *(_indent(line) for line in self.problems)]


def _format_archive(archive: CheckedArchive) -> str:
    entries = _count_entries(archive.entries)
    if archive.is_here:
        return f"{archive.file} holds {entries}, each of them the one that the ledger knows"
    return f"{archive.file} is not here: nobody can verify {entries}. If it was moved: --archive FILE"


def count_lines(ends: LedgerSeal) -> str:
    """Return how many entries and runs a ledger with these ends has, in words."""
    return f"{_count_entries(ends.entry.seq)}, {format_count(ends.run.seq, 'run')}"


def format_broken(consequence: str, problems: Sequence[str]) -> str:
    """Return that a ledger is broken, the `consequence` of that, and each problem."""
    return "\n".join([f"the ledger is broken: {consequence}", *map(_indent, problems), f"  → {BROKEN_LEDGER_FIX}"])


def format_proof(report: AnchorReport, ends: LedgerSeal) -> str:
    """Return up to where an anchor proves a ledger that ends with `ends`, and what came after that."""
    assert report.proven
    entries, runs = count_unproven(report.proven.seal, ends)
    after = f"after that came {_count_entries(entries)} and {format_count(runs, 'run')}"
    return f"{report.anchor} proves it up to {format_extent(report.proven)} by {report.proven.who}; {after}"


def format_sealing(problems: Sequence[str], sealed: Sequence[SealedAnchor], ends: LedgerSeal) -> str:
    """Return in which anchors a ledger was sealed, or why not."""
    if problems:
        return format_broken("nothing was sealed", problems)
    done = [f"{result.anchor} keeps the seal" for result in sealed if not result.refusal]
    failed = [f"not sealed: {result.refusal}" for result in sealed if result.refusal]
    pushed = [
        f"push it: git push origin refs/notes/{result.anchor.partition(':')[2] or 'assay-seals'}"
        for result in sealed
        if result.anchor.startswith("git-note") and not result.refusal
    ]
    return "\n".join([f"the seal of the ledger is {ends}", *map(_indent, [*done, *pushed, *failed])])


def _count_entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"


def _indent(text: str) -> str:
    return "  " + text.replace("\n", "\n  ")


def find_anchors(workspace: Workspace, given: Sequence[str]) -> tuple[list[Anchor], list[AnchorReport]]:
    """Return the given anchors, else those of schedules and those in use; and reports of the unknown ones."""
    from assay.ledger.copies.anchors import parse_anchor
    from assay.ledger.copies.seal import AnchoredFleet
    from assay.ledger.copies.sealing import AnchorReport

    names, lost = list(given), list[AnchorReport]()
    for source in () if given or workspace.home.is_lab else (_list_scheduled_anchors, _list_used_anchors):
        try:
            names += source(workspace)
        except AssayError as error:
            reason = f"the ledger's anchors are not all known: {error}\n  → or name them with --anchor"
            lost.append(AnchorReport("unknown", unreadable=reason))
    fleet = AnchoredFleet(workspace.root, workspace.ledger_location, workspace.seal_register)
    anchors: list[Anchor] = []
    for name in dict.fromkeys(names):
        try:
            anchors.append(parse_anchor(name, fleet))
        except AssayError as error:
            if name in given:
                raise
            lost.append(AnchorReport(name, unreadable=str(error)))
    return anchors, lost


def _list_used_anchors(workspace: Workspace) -> list[str]:
    from assay.ledger.copies.sealing import list_registered_anchors

    return list_registered_anchors(workspace.seal_register)


def _list_scheduled_anchors(workspace: Workspace) -> list[str]:
    if not (workspace.root / "specs").exists():
        return []
    documents = workspace.fleet.schedules.values()
    return [name for document in documents for schedule in document.schedules.values() for name in schedule.anchors]


def seal_removals(workspace: Workspace, after: int, who: str) -> None:
    """Seal the ledger at once, in the anchors in use, if entries above the number `after` took lines from it.

    Else nothing would prove later what they left of lines that were sealed before. How it went goes to stderr.
    """
    from assay.ledger.copies.seal import make_seal
    from assay.ledger.copies.sealing import seal_ledger
    from assay.ledger.hash_chain import REMOVING_KINDS

    ledger, at = workspace.ledger_for_reading, workspace.clock.now().isoformat()
    removals = [entry.seq for entry in ledger.entries(kinds=REMOVING_KINDS, after=after)]
    if not removals or workspace.home.is_lab:
        return
    anchors, lost = find_anchors(workspace, ())
    sealed = seal_ledger(ledger, anchors, workspace.seal_register, at, find_operator_name(who), removals)
    lines = [format_sealing([], sealed, make_seal(ledger.chain_ends()))] if anchors else []
    for line in (*lines, *(report.unreadable for report in lost)):
        typer.echo(line, err=True)
