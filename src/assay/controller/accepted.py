"""The gate before a pass: where the policy asks for signed commits, nothing is done on any other.

What is asked, and whose keys count, is taken from the last commit that was accepted, never from the one at the door:
it can neither switch the question off nor bring its own signer along. The ledger says which commit that is.
"""

from __future__ import annotations

from assay.controller.desk import Desk
from assay.fleet import signing
from assay.fleet.signing import Signature
from assay.model.entry import Entry, derived_id
from assay.model.errors import Trouble
from assay.model.policy import Commits

KIND = "commit.accepted"


def accept_commit(desk: Desk) -> None:
    """Return when the fleet's commit may be acted on. Raises Trouble when not; then nothing may be done."""
    last = last_accepted(desk)
    try:
        trusted, wanted = _asked(desk, last)
        signature = _examined(desk, wanted, trusted, last) if wanted and wanted.signed else None
    except Trouble as trouble:
        raise _refused(desk, last, trouble) from None
    if signature is not None:
        _write_down(desk, signature, last, trusted)


def last_accepted(desk: Desk) -> str:
    """Return the commit that was accepted last, "" before the first."""
    entries = desk.ledger.entries(kinds=[KIND])
    return str(entries[-1].body["commit"]) if entries else ""


def _asked(desk: Desk, last: str) -> tuple[str, Commits | None]:
    """Return what is asked, and the commit that asks: the last accepted one, else ("") the one at the door itself.

    Of itself, what was committed counts; the working tree may ask for more, never for less.
    """
    root, commit = desk.fleet.root, desk.fleet.commit
    wanted = signing.asked(root, last) if last else None
    if wanted and wanted.signed:
        return last, wanted
    committed = signing.asked(root, commit) if commit else None
    written = [policy.commits for policy in desk.fleet.policies.values()]
    return "", next((one for one in (committed, *written) if one and one.signed), None)


def _examined(desk: Desk, wanted: Commits, trusted: str, last: str) -> Signature | None:
    """Return who signed the fleet's commit, None where it is the one that was accepted last."""
    root, commit = desk.fleet.root, desk.fleet.commit
    if not commit:
        raise Trouble("this fleet is in no git repository with a commit", fix="`git init`, and commit it signed")
    if signing.head(root) != commit:
        raise Trouble("another commit was checked out since it was read", fix="start again")
    if changed := signing.uncommitted(root):
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise Trouble(f"{changed[0]}{more} is not as committed", fix="commit it signed, or `git restore` it")
    if commit == last:
        return None
    if trusted and not signing.descends(root, commit, trusted):
        what = f"the last good commit {trusted[:12]} is not part of its history"
        raise Trouble(what, fix="`git revert` what should go, and sign that; in CI, fetch with `fetch-depth: 0`")
    source = trusted or commit
    signers = signing.content_of(root, source, wanted.allowed_signers)
    signature = signing.signature_of(root, commit, signers, f"{wanted.allowed_signers} of commit {source[:12]}")
    _leaves_signers(desk)
    return signature


def _leaves_signers(desk: Desk) -> None:
    """Raise Trouble where the commit asks for signatures that nobody could give after it."""
    own = signing.asked(desk.fleet.root, desk.fleet.commit)
    if own and own.signed and not signing.content_of(desk.fleet.root, desk.fleet.commit, own.allowed_signers).strip():
        raise Trouble(f"its {own.allowed_signers} names nobody, so no later commit could be signed")


def _refused(desk: Desk, last: str, trouble: Trouble) -> Trouble:
    which = f"commit {desk.fleet.commit[:12]}" if desk.fleet.commit else "this fleet"
    stays = f"the fleet stays on the last good commit, {last[:12]}" if last else "no commit was accepted before"
    what = f"{which} is not acted on, as the policy asks for signed commits: {trouble.what}. Nothing was done; {stays}"
    return Trouble(what, where=trouble.where or str(desk.fleet.root), fix=trouble.fix)


def _write_down(desk: Desk, signature: Signature, last: str, trusted: str) -> None:
    commit = desk.fleet.commit
    if not trusted:
        desk.progress(
            f"signed commits: first use. Commit {commit[:12]} by {signature.signer} is trusted because of the signers "
            "that it names itself; from now on each commit is held to those of the last accepted one"
        )
    body = {"commit": commit, "signer": signature.signer, "key": signature.key}
    desk.ledger.append(Entry(derived_id(KIND, last, commit), desk.now, KIND, "", body))
