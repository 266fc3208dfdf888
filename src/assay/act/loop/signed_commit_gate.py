"""Refuses to act on an unsigned commit, where the lifecycle policy asks for signed ones.

Whether signatures are required, and whose keys count, comes from the last accepted commit, never from the new one. So
a commit can neither switch the requirement off nor bring its own signer. The ledger says which commit was accepted.
"""

from __future__ import annotations

from datetime import datetime

from assay.act.loop.context import ControllerContext
from assay.declare.repository import commit_facts
from assay.declare.repository.commit_chain import CommitChain
from assay.declare.repository.signature_verification import CommitSignature
from assay.model.entries.operator_entries import CommitAcceptedEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import derive_id
from assay.model.specs.policy_sections import CommitTrust
from assay.model.timestamps import parse_time

ACCEPTED_COMMIT_KIND = "commit.accepted"


def accept_commit(context: ControllerContext) -> None:
    """Return if the fleet's commit may be acted on. Raises AssayError if not; then nothing may be done."""
    last = find_last_accepted_commit(context)
    try:
        trusted, trust = _read_signing_policy(context, last)
        signature = _verify_signature(context, trust, trusted, last) if trust and trust.signed else None
    except AssayError as error:
        raise _make_refusal(context, last, error) from None
    if signature is not None:
        _record_acceptance(context, signature, last, trusted)


def requires_signed_commits(context: ControllerContext) -> bool:
    """Return whether the fleet's policy asks for signed commits, or an accepted commit once did."""
    policies = context.fleet.policies.values()
    is_asked = any(policy.commits and policy.commits.signed for policy in policies)
    return is_asked or bool(find_last_accepted_commit(context))


def find_last_accepted_commit(context: ControllerContext) -> str:
    """Return the last accepted commit, "" before the first."""
    entries = context.ledger.entries(kinds=[ACCEPTED_COMMIT_KIND])
    return CommitAcceptedEntry.read(entries[-1]).commit if entries else ""


def _read_signing_policy(context: ControllerContext, last: str) -> tuple[str, CommitTrust | None]:
    """Return the commit whose policy counts, and that policy: the last accepted commit, else "" for the new one itself.

    Of the new commit, what was committed counts; the working tree may ask for more, never for less.
    """
    root, commit = context.fleet.root, context.fleet.commit
    trust = commit_facts.read_commit_trust(root, last) if last else None
    if trust and trust.signed:
        return last, trust
    committed = commit_facts.read_commit_trust(root, commit) if commit else None
    in_tree = [policy.commits for policy in context.fleet.policies.values()]
    return "", next((one for one in (committed, *in_tree) if one and one.signed), None)


def _verify_signature(
    context: ControllerContext, trust: CommitTrust, trusted: str, last: str
) -> CommitSignature | None:
    """Return the signature of the fleet's commit, None if the commit was accepted before."""
    root, commit = context.fleet.root, context.fleet.commit
    if not commit:
        raise AssayError("this fleet is in no git repository with a commit", fix="`git init`, and commit it signed")
    if commit_facts.read_head_commit(root) != commit:
        raise AssayError("another commit was checked out since it was read", fix="start again")
    if changed := commit_facts.find_uncommitted(root):
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise AssayError(f"{changed[0]}{more} is not as committed", fix="commit it signed, or `git restore` it")
    if commit == last:
        return None
    if trusted and not commit_facts.is_descendant(root, commit, trusted):
        what = f"the last good commit {trusted[:12]} is not part of its history"
        raise AssayError(what, fix="`git revert` what should go, and sign that; in CI, fetch with `fetch-depth: 0`")
    signature = CommitChain(root, trusted, commit, trust, _find_key_time(context)).verify()
    _require_future_signers(context)
    return signature


def _find_key_time(context: ControllerContext) -> datetime:
    """Return the time at which keys must be valid: now, but never before a commit that was already accepted."""
    entries = context.ledger.entries(kinds=[ACCEPTED_COMMIT_KIND])
    return max(parse_time(context.now), parse_time(entries[-1].at if entries else ""))


def _require_future_signers(context: ControllerContext) -> None:
    """Raise AssayError if the commit asks for signatures that nobody could give to later ones."""
    root, commit = context.fleet.root, context.fleet.commit
    own = commit_facts.read_commit_trust(root, commit)
    if own and own.signed and not commit_facts.read_committed_file(root, commit, own.allowed_signers).strip():
        raise AssayError(f"its {own.allowed_signers} names nobody, so no later commit could be signed")


def _make_refusal(context: ControllerContext, last: str, error: AssayError) -> AssayError:
    which = f"commit {context.fleet.commit[:12]}" if context.fleet.commit else "this fleet"
    stays = f"the fleet stays on the last good commit, {last[:12]}" if last else "no commit was accepted before"
    what = f"{which} is not acted on, as the policy asks for signed commits: {error.what}. Nothing was done; {stays}"
    return AssayError(what, where=error.where or str(context.fleet.root), fix=error.fix)


def _record_acceptance(context: ControllerContext, signature: CommitSignature, last: str, trusted: str) -> None:
    commit = context.fleet.commit
    if not trusted:
        context.progress(
            f"signed commits: first use. Commit {commit[:12]} by {signature.signer} is trusted because of the signers "
            "that it names itself; from now on each commit is held to those of the last accepted one"
        )
    accepted = CommitAcceptedEntry(commit, signature.signer, signature.key)
    context.ledger.append(accepted.make_entry(derive_id(ACCEPTED_COMMIT_KIND, last, commit), context.now))
