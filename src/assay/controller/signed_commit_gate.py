"""The gate before a pass: where the policy asks for signed commits, nothing is done on any other.

What is asked, and whose keys count, is taken from the last commit that was accepted, never from the one at the door:
it can neither switch the question off nor bring its own signer along. The ledger says which commit that is.
"""

from __future__ import annotations

from assay.controller.context import ControllerContext
from assay.fleet import commit_signatures
from assay.fleet.commit_signatures import CommitSignature
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.lifecycle_policy import CommitTrust

ACCEPTED_COMMIT_KIND = "commit.accepted"


def accept_commit(desk: ControllerContext) -> None:
    """Return when the fleet's commit may be acted on. Raises Trouble when not; then nothing may be done."""
    last = find_last_accepted_commit(desk)
    try:
        trusted, wanted = _read_signing_policy(desk, last)
        signature = _verify_signature(desk, wanted, trusted, last) if wanted and wanted.signed else None
    except AssayError as trouble:
        raise _refused(desk, last, trouble) from None
    if signature is not None:
        _record_acceptance(desk, signature, last, trusted)


def find_last_accepted_commit(desk: ControllerContext) -> str:
    """Return the commit that was accepted last, "" before the first."""
    entries = desk.ledger.entries(kinds=[ACCEPTED_COMMIT_KIND])
    return str(entries[-1].body["commit"]) if entries else ""


def _read_signing_policy(desk: ControllerContext, last: str) -> tuple[str, CommitTrust | None]:
    """Return what is asked, and the commit that asks: the last accepted one, else ("") the one at the door itself.

    Of itself, what was committed counts; the working tree may ask for more, never for less.
    """
    root, commit = desk.fleet.root, desk.fleet.commit
    wanted = commit_signatures.read_commit_trust(root, last) if last else None
    if wanted and wanted.signed:
        return last, wanted
    committed = commit_signatures.read_commit_trust(root, commit) if commit else None
    written = [policy.commits for policy in desk.fleet.policies.values()]
    return "", next((one for one in (committed, *written) if one and one.signed), None)


def _verify_signature(desk: ControllerContext, wanted: CommitTrust, trusted: str, last: str) -> CommitSignature | None:
    """Return who signed the fleet's commit, None where it is the one that was accepted last."""
    root, commit = desk.fleet.root, desk.fleet.commit
    if not commit:
        raise AssayError("this fleet is in no git repository with a commit", fix="`git init`, and commit it signed")
    if commit_signatures.read_head_commit(root) != commit:
        raise AssayError("another commit was checked out since it was read", fix="start again")
    if changed := commit_signatures.find_uncommitted(root):
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise AssayError(f"{changed[0]}{more} is not as committed", fix="commit it signed, or `git restore` it")
    if commit == last:
        return None
    if trusted and not commit_signatures.is_descendant(root, commit, trusted):
        what = f"the last good commit {trusted[:12]} is not part of its history"
        raise AssayError(what, fix="`git revert` what should go, and sign that; in CI, fetch with `fetch-depth: 0`")
    source = trusted or commit
    signers = commit_signatures.read_committed_file(root, source, wanted.allowed_signers)
    signature = commit_signatures.verify_signature(
        root, commit, signers, f"{wanted.allowed_signers} of commit {source[:12]}"
    )
    _require_future_signers(desk)
    return signature


def _require_future_signers(desk: ControllerContext) -> None:
    """Raise Trouble where the commit asks for signatures that nobody could give after it."""
    own = commit_signatures.read_commit_trust(desk.fleet.root, desk.fleet.commit)
    if (
        own
        and own.signed
        and not commit_signatures.read_committed_file(desk.fleet.root, desk.fleet.commit, own.allowed_signers).strip()
    ):
        raise AssayError(f"its {own.allowed_signers} names nobody, so no later commit could be signed")


def _refused(desk: ControllerContext, last: str, trouble: AssayError) -> AssayError:
    which = f"commit {desk.fleet.commit[:12]}" if desk.fleet.commit else "this fleet"
    stays = f"the fleet stays on the last good commit, {last[:12]}" if last else "no commit was accepted before"
    what = f"{which} is not acted on, as the policy asks for signed commits: {trouble.what}. Nothing was done; {stays}"
    return AssayError(what, where=trouble.where or str(desk.fleet.root), fix=trouble.fix)


def _record_acceptance(desk: ControllerContext, signature: CommitSignature, last: str, trusted: str) -> None:
    commit = desk.fleet.commit
    if not trusted:
        desk.progress(
            f"signed commits: first use. Commit {commit[:12]} by {signature.signer} is trusted because of the signers "
            "that it names itself; from now on each commit is held to those of the last accepted one"
        )
    body = {"commit": commit, "signer": signature.signer, "key": signature.key}
    desk.ledger.append(
        LedgerEntry(derive_id(ACCEPTED_COMMIT_KIND, last, commit), desk.now, ACCEPTED_COMMIT_KIND, "", body)
    )
