"""Reads the fleet again when its files or its commit change, and keeps the last good one while they are in error.

`assay reconcile` and `assay serve` both use it, so that they work with the same fleet without a restart. Where the
policy asks for signed commits, an unsigned one is refused. Whether it asks, and whose keys count, comes from the last
accepted commit (the ledger says which), never from the new one: no commit can switch that off or bring its own signer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from assay.act.loop.background_worker import IntervalThrottle
from assay.act.loop.context import ControllerContext
from assay.act.loop.enrollment import enroll_nodes
from assay.declare.check import check_repository
from assay.declare.repository import signed_commits
from assay.declare.repository.signed_commits import CommitChain, CommitSignature
from assay.declare.yaml import ParseCache
from assay.ledger.ledger_reader import read_projection
from assay.model.clock import Clock
from assay.model.entries.node_entries import CommitAcceptedEntry
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, Projection, derive_id
from assay.model.specs.policy_sections import CommitTrust
from assay.model.timestamps import parse_time

ACCEPTED_COMMIT = Projection[LedgerEntry | None]((CommitAcceptedEntry.kind,), lambda: None, lambda _, entry: entry)
"""The newest entry about an accepted commit."""


def accept_commit(context: ControllerContext) -> None:
    """Return if the fleet's commit may be acted on. Raises AssayError if not; then nothing may be done."""
    last = find_last_accepted_commit(context)
    try:
        trusted, trust = _read_signing_policy(context, last)
        signature = _verify_signature(context, trust, trusted, last) if trust and trust.signed else None
    except AssayError as error:
        raise _make_refusal(context, last, error) from None
    if signature is not None:
        commit = context.fleet.commit
        if not trusted:
            context.progress(
                f"signed commits: first use. Commit {commit[:12]} by {signature.signer} is trusted because of the "
                "signers that it names itself; from now on each commit is held to those of the last accepted one"
            )
        accepted = CommitAcceptedEntry(commit, signature.signer, signature.key)
        context.ledger.append(accepted.make_entry(derive_id(CommitAcceptedEntry.kind, last, commit), context.now))


def requires_signed_commits(context: ControllerContext) -> bool:
    """Return whether the fleet's policy asks for signed commits, or an accepted commit once did."""
    policies = context.fleet.policies.values()
    is_asked = any(policy.commits and policy.commits.signed for policy in policies)
    return is_asked or bool(find_last_accepted_commit(context))


def find_last_accepted_commit(context: ControllerContext) -> str:
    """Return the last accepted commit, "" before the first."""
    accepted = read_projection(context.ledger, ACCEPTED_COMMIT)
    return CommitAcceptedEntry.read(accepted).commit if accepted else ""


def _read_signing_policy(context: ControllerContext, last: str) -> tuple[str, CommitTrust | None]:
    """Return the commit whose policy counts, and that policy: the last accepted commit, else "" for the new one itself.

    Of the new commit, what was committed counts; the working tree may ask for more, never for less.
    """
    root, commit = context.fleet.root, context.fleet.commit
    trust = signed_commits.read_commit_trust(root, last) if last else None
    if trust and trust.signed:
        return last, trust
    committed = signed_commits.read_commit_trust(root, commit) if commit else None
    in_tree = [policy.commits for policy in context.fleet.policies.values()]
    return "", next((trust for trust in (committed, *in_tree) if trust and trust.signed), None)


def _verify_signature(
    context: ControllerContext, trust: CommitTrust, trusted: str, last: str
) -> CommitSignature | None:
    """Return the signature of the fleet's commit, None if the commit was accepted before."""
    root, commit = context.fleet.root, context.fleet.commit
    if not commit:
        raise AssayError("this fleet is in no git repository with a commit", fix="`git init`, and commit it signed")
    if signed_commits.read_head_commit(root) != commit:
        raise AssayError("another commit was checked out since it was read", fix="start again")
    if changed := signed_commits.find_uncommitted(root):
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise AssayError(f"{changed[0]}{more} is not as committed", fix="commit it signed, or `git restore` it")
    if commit == last:
        return None
    if trusted and not signed_commits.is_descendant(root, commit, trusted):
        message = f"the last good commit {trusted[:12]} is not part of its history"
        raise AssayError(message, fix="`git revert` what should go, and sign that; in CI, fetch with `fetch-depth: 0`")
    # keys must be valid now, but never before a commit that was already accepted
    accepted = read_projection(context.ledger, ACCEPTED_COMMIT)
    valid_at = max(parse_time(context.now), parse_time(accepted.at if accepted else ""))
    signature = CommitChain(root, trusted, commit, trust, valid_at).verify()
    _require_future_signers(context)
    return signature


def _require_future_signers(context: ControllerContext) -> None:
    """Raise AssayError if the commit asks for signatures that nobody could give to later ones."""
    root, commit = context.fleet.root, context.fleet.commit
    own = signed_commits.read_commit_trust(root, commit)
    if own and own.signed and not signed_commits.read_committed_file(root, commit, own.allowed_signers).strip():
        raise AssayError(f"its {own.allowed_signers} names nobody, so no later commit could be signed")


def _make_refusal(context: ControllerContext, last: str, error: AssayError) -> AssayError:
    which = f"commit {context.fleet.commit[:12]}" if context.fleet.commit else "this fleet"
    stays = f"the fleet stays on the last good commit, {last[:12]}" if last else "no commit was accepted before"
    message = f"{which} is not acted on, as the policy asks for signed commits: {error.what}. Nothing was done; {stays}"
    return AssayError(message, where=error.where or str(context.fleet.root), fix=error.fix)


RELOAD_INTERVAL_S = 2.0
"""Real seconds between two looks at the fleet's files. One look costs a stat for each file."""
WATCHED_FOLDERS = ("inventory", "specs", "suites")
UNWATCHED_FOLDERS = ("__pycache__", "recordings")
RECONCILE_ADOPTS = "`assay reconcile` adopts the commit and starts its rollout"
"""What a server says of a new commit: it records, and one process decides and acts."""
FleetStamp = tuple[str, frozenset[tuple[str, int, int]]]


@dataclass
class FleetReloader:
    """Watches the fleet at `root` and its `overlays`; `read_fleet` reads it, and `report` gets errors as text.

    `is_usable` says whether the files, as they are now, make the fleet that was returned last.
    """

    root: Path
    read_fleet: Callable[[ParseCache], Fleet]
    clock: Clock
    report: Callable[[str], None]
    overlays: Sequence[Path] = ()

    def __post_init__(self) -> None:
        self._last_stamp: FleetStamp | None = self._read_stamp()
        self.note_use()
        self.is_usable = True

    def read_again(self) -> None:
        """Let the next look read the fleet, even if no file changed: what a program of the inventory says may have."""
        self._last_stamp = None

    def reload_if_changed(self) -> Fleet | None:
        """Return the fleet if it changed since the last call, None if it did not or is in error.

        An error is reported once, and the fleet that was read before it stays in force.
        """
        stamp = self._read_stamp()
        if stamp == self._last_stamp:
            return None
        self._last_stamp = stamp
        try:
            cache = ParseCache()  # of files as they are now, which are parsed once
            fleet = self.read_fleet(cache)
            self.refuse_errors(fleet, cache)
            self.is_usable = True
            return fleet
        except AssayError as error:
            self.is_usable = False
            self.report(f"the fleet's files changed, and cannot be used; goes on with what was read before: {error}")
            return None

    def note_use(self) -> None:
        """Note that the fleet that was returned last is in use now."""
        self._used_stamp = self._last_stamp

    def is_current(self) -> bool:
        """Whether checks, which read the files, would judge by the fleet that is in use."""
        return self._read_stamp() == self._used_stamp

    def refuse_errors(self, fleet: Fleet, cache: ParseCache | None = None) -> None:
        """Raise AssayError, in a sentence, for files in which `assay check` finds errors. A lab may have some."""
        if fleet.is_lab:
            return
        problems = check_repository(self.root, self.clock.now(), cache=cache).problems
        if errors := [problem for problem in problems if problem.severity == "error"]:
            more = f" (and {len(errors) - 1} more)" if errors[1:] else ""
            fix = "`assay check` lists every problem"
            raise AssayError(f"{errors[0].message}{more}", where=errors[0].where, fix=fix)

    def _read_stamp(self) -> FleetStamp:
        return signed_commits.read_head_commit(self.root), frozenset(self._stat_files())

    def _stat_files(self) -> Iterator[tuple[str, int, int]]:
        paths = list(self.overlays)
        for watched in WATCHED_FOLDERS:
            for parent, folders, names in os.walk(self.root / watched):
                folders[:] = [name for name in folders if name not in UNWATCHED_FOLDERS]
                paths += [Path(parent, name) for name in names if not name.startswith(".")]
        for path in paths:
            try:
                about = path.stat()
            except OSError:  # it was just deleted
                continue
            yield str(path), about.st_mtime_ns, about.st_size


class CurrentContext:
    """The context of a server, with the newest good fleet. Safe for threads.

    Without a `reloader` the fleet stays as it is.
    """

    def __init__(self, context: ControllerContext, reloader: FleetReloader | None = None) -> None:
        self._context, self._reloader = context, reloader
        self._throttle, self._lock = IntervalThrottle(), Lock()

    @property
    def context(self) -> ControllerContext:
        """The context as of the last refresh."""
        return self._context

    @property
    def is_usable(self) -> bool:
        """Whether the fleet's files, as they are now, make the fleet of the context."""
        return self._reloader is None or self._reloader.is_usable

    def look_again(self) -> None:
        """Let the next refresh read the fleet, even if the last look was a moment ago and no file changed."""
        with self._lock:
            self._throttle = IntervalThrottle()
            if self._reloader:
                self._reloader.read_again()

    def refresh(self) -> ControllerContext:
        """Read the fleet again if it changed, at most every RELOAD_INTERVAL_S; return the context.

        A fleet that is in error, or a commit that may not be acted on, is reported, and the last good fleet stays.
        """
        with self._lock:
            if self._reloader is None or not self._throttle.is_due("reload", RELOAD_INTERVAL_S):
                return self._context
            if fleet := self._reloader.reload_if_changed():
                try:
                    self._adopt(replace(self._context, fleet=fleet), self._reloader.report)
                except AssayError as error:
                    self._reloader.report(f"goes on with the fleet that was read before: {error}")
            return self._context

    def _adopt(self, context: ControllerContext, report: Callable[[str], None]) -> None:
        accept_commit(context)
        enroll_nodes(context)
        before, self._context = self._context.fleet, context
        rest = f"; {RECONCILE_ADOPTS}" if before.commit != context.fleet.commit else ""
        report(f"read the fleet again ({describe_change(before, context.fleet)}){rest}")


def describe_change(before: Fleet, after: Fleet) -> str:
    """Return what changed between two versions of a fleet, for people."""
    return "no new commit" if before.commit == after.commit else f"{before.commit[:12]} → {after.commit[:12]}"
