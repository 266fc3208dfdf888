"""What `assay ledger` says: whether the ledger is unchanged, up to where anchors prove it, and where it was sealed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from assay.ledger.copies.archive_comparison import CheckedArchive
from assay.ledger.copies.seal import HASH_OF_NOTHING, LedgerSeal
from assay.ledger.copies.seal_comparison import AnchorReport, count_unproven, format_contradictions, format_extent
from assay.ledger.copies.sealing import SealedAnchor
from assay.ledger.errors import BROKEN_LEDGER_FIX
from assay.model.text.text_lists import format_count

if TYPE_CHECKING:
    from assay.cli.answers.ledger_answers import (
        AnchorProof,
        ArchiveCheck,
        LedgerSealAnswer,
        LedgerVerifyAnswer,
        ProvenSeal,
        SealedIn,
    )

UNANCHORED = "nothing outside of the ledger proves it; to change that: assay ledger seal --anchor ANCHOR"
OLD_SEAL = "this seal of an older assay covers the entries only, no runs and no outcomes: keep the new one"


@dataclass(frozen=True, slots=True)
class LedgerVerification:
    """The result of a verification: of the chains, of a seal that was given, and of each anchor."""

    chain_problems: tuple[str, ...]
    given_seal: LedgerSeal | None
    seal_problems: tuple[str, ...]
    anchors: tuple[AnchorReport, ...]
    ends: LedgerSeal
    archives: tuple[CheckedArchive, ...] = ()

    @property
    def contradictions(self) -> list[str]:
        """What shows that the ledger was altered."""
        anchored = [format_contradictions(report) for report in self.anchors if report.contradictions]
        archived = [problem for one in self.archives for problem in one.problems]
        return [*self.chain_problems, *archived, *self.seal_problems, *anchored]

    @property
    def problems(self) -> list[str]:
        """What shows that the ledger was altered, and the anchors that cannot be read."""
        return [*self.contradictions, *(report.unreadable for report in self.anchors if report.unreadable)]

    def to_json(self) -> LedgerVerifyAnswer:
        """Return it as JSON data."""
        entry, run = self.ends.entry, self.ends.run
        assert run
        return {
            "whole": not self.problems,
            "problems": self.problems,
            "entry": {"count": entry.seq, "hash": _hash_of(entry.hash)},
            "run": {"count": run.seq, "hash": _hash_of(run.hash)},
            "seal": str(self.ends),
            "archives": [_archive_as_json(one) for one in self.archives],
            "anchors": [_report_as_json(report, self.ends) for report in self.anchors],
        }

    def to_text(self) -> str:
        """Return it as text: what is wrong and what to do, or the size of the ledger, its anchors and its seal."""
        lines = self._headline()
        if self.given_seal and not self.given_seal.run:
            lines.append(f"  {OLD_SEAL}")
        lines += [f"  {_format_archive(one)}" for one in self.archives if not one.problems]
        lines += [f"  {format_proof(report, self.ends)}" for report in self.anchors if _is_proof(report)]
        if not self.contradictions:
            if not self.anchors:
                lines.append(f"  {UNANCHORED}")
            lines.append(f"  its seal is {self.ends}")
        if self.contradictions:
            lines.append(f"  → {BROKEN_LEDGER_FIX}")
        return "\n".join(lines)

    def _headline(self) -> list[str]:
        if self.contradictions:
            return ["the ledger is broken", *(_indent(line) for line in self.problems)]
        size = f"the ledger is unchanged: {count_lines(self.ends)}"
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
    return f"{_count_entries(ends.entry.seq)}, {format_count(ends.run.seq if ends.run else 0, 'run')}"


def format_broken(what: str, problems: Sequence[str]) -> str:
    """Return that a ledger is broken: `what` was not done with it, and why."""
    return "\n".join([f"the ledger is broken: {what}", *map(_indent, problems), f"  → {BROKEN_LEDGER_FIX}"])


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
    done = [f"{one.anchor} keeps the seal" for one in sealed if not one.refusal]
    failed = [f"not sealed: {one.refusal}" for one in sealed if one.refusal]
    pushed = [
        f"push it: git push origin refs/notes/{one.anchor.partition(':')[2] or 'assay-seals'}"
        for one in sealed
        if one.anchor.startswith("git-note") and not one.refusal
    ]
    return "\n".join([f"the seal of the ledger is {ends}", *map(_indent, [*done, *pushed, *failed])])


def format_sealing_json(problems: Sequence[str], sealed: Sequence[SealedAnchor], ends: LedgerSeal) -> LedgerSealAnswer:
    """Return it as JSON data."""
    anchors: list[SealedIn] = [
        {"anchor": one.anchor, "sealed": not one.refusal, "refusal": one.refusal} for one in sealed
    ]
    return {"seal": str(ends), "problems": list(problems), "anchors": anchors}


def _archive_as_json(one: CheckedArchive) -> ArchiveCheck:
    return {"file": one.file, "entries": one.entries, "is_here": one.is_here, "problems": list(one.problems)}


def _report_as_json(report: AnchorReport, ends: LedgerSeal) -> AnchorProof:
    proven = report.proven
    entries, runs = count_unproven(proven.seal, ends) if proven else (ends.entry.seq, ends.run.seq if ends.run else 0)
    return {
        "anchor": report.anchor,
        "seals": report.seals,
        "proven": cast("ProvenSeal", {**proven.to_body(), "anchor": report.anchor}) if proven else None,
        "after": {"entry": entries, "run": runs},
        "problems": [*report.contradictions, *([report.unreadable] if report.unreadable else [])],
    }


def _is_proof(report: AnchorReport) -> bool:
    return bool(report.proven) and not report.contradictions


def _hash_of(hash_: str) -> str:
    return "" if hash_ == HASH_OF_NOTHING else hash_


def _count_entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"


def _indent(text: str) -> str:
    return "  " + text.replace("\n", "\n  ")
