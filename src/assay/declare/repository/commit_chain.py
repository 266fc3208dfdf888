"""Verifies every commit since the accepted one, each by the signers that counted when it was made.

The signers of the accepted commit count. A signer that a verified commit adds counts for the commits that build on it.
A signer that the newest commit no longer names counts for no earlier commit: whoever is taken out, is out at once.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from assay.declare.repository import commit_facts
from assay.declare.repository.forge_merges import verify_forge_merge
from assay.declare.repository.signature_verification import (
    AllowedSigners,
    CommitSignature,
    read_signature,
    verify_ssh_signature,
)
from assay.model.errors import AssayError
from assay.model.specs.policy_sections import CommitTrust


@dataclass(frozen=True)
class CommitChain:
    """The commits from `accepted` (not included) to `newest`. `trust` is that of the accepted commit.

    `at` is the time at which keys must be valid. Without an accepted commit, only the newest one is verified, by the
    signers that it names itself.
    """

    root: Path
    accepted: str
    newest: str
    trust: CommitTrust
    at: datetime

    def verify(self) -> CommitSignature:
        """Return the signature of the newest commit. Raises AssayError for a commit without a good one."""
        commit_facts.read_committed_file(self.root, self.accepted or self.newest, self.trust.allowed_signers)
        if not self.accepted:
            return self._verify_commit(self.newest, (), self._read_signers(self.newest))
        accepted, added = self._read_signers(self.accepted), dict[str, frozenset[bytes]]()
        signature = None
        for commit, parents in commit_facts.list_new_commits(self.root, self.accepted, self.newest):
            inherited = frozenset[bytes]().union(*(added.get(parent, ()) for parent in parents))
            signers = accepted | inherited
            if commit != self.newest:
                signers &= self._newest_signers
            try:
                signature = self._verify_commit(commit, parents, signers)
            except AssayError as error:
                raise self._name_commit(commit, error) from None
            known = (self._read_signers(parent) for parent in parents)
            added[commit] = inherited | self._read_signers(commit).difference(*known)
        assert signature is not None  # the caller accepts a commit only once, and only a descendant
        return signature

    def _verify_commit(self, commit: str, parents: Collection[str], signers: frozenset[bytes]) -> CommitSignature:
        source = self.accepted or self.newest
        if self.trust.forge_keys and self.accepted and read_signature(self.root, commit)[0] == "PGP SIGNATURE":
            keys = commit_facts.read_committed_file(self.root, source, self.trust.forge_keys)
            called = f"{self.trust.forge_keys} of commit {source[:12]}"
            return verify_forge_merge(self.root, commit, [*parents], keys, called)
        called = f"{self.trust.allowed_signers} of commit {source[:12]}"
        return verify_ssh_signature(self.root, commit, AllowedSigners(signers, called, self.at))

    def _read_signers(self, commit: str) -> frozenset[bytes]:
        return commit_facts.list_allowed_signers(self.root, commit, self.trust.allowed_signers)

    @cached_property
    def _newest_signers(self) -> frozenset[bytes]:
        """The signers that the newest commit names; those of the accepted one if it asks for signatures no more."""
        own = commit_facts.read_commit_trust(self.root, self.newest)
        if own is None or not own.signed:
            return self._read_signers(self.accepted)
        return commit_facts.list_allowed_signers(self.root, self.newest, own.allowed_signers)

    def _name_commit(self, commit: str, error: AssayError) -> AssayError:
        if commit == self.newest:
            return error
        fix = (
            "sign each commit since then: `git rebase --exec 'git commit --amend --no-edit -S' "
            + self.accepted[:12]
            + "`"
        )
        return AssayError(f"of commit {commit[:12]}, on which it builds: {error.what}", fix=fix)
