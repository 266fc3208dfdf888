"""Verifies every commit since the accepted one with git, in a way that the repository's configuration cannot influence.

The signers of the accepted commit count. A signer that a verified commit adds counts for the commits that build on it.
A signer that the newest commit no longer names counts for no earlier commit: whoever is taken out, is out at once.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from assay.declare.problems import explain_violations
from assay.declare.repository.git import DECLARED_FOLDERS, read_git_error, read_git_objects, run_git
from assay.declare.yaml import UnreadableYaml, parse_yaml
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.specs.policy_sections import CommitTrust
from assay.model.timestamps import format_minute, format_time

SIGNED_PATHS = (*DECLARED_FOLDERS, "ansible.cfg")
CACHE_PATHS = re.compile(r"(^|/)(__pycache__|\.\w+_cache)/|\.pyc$")
SIGNATURE = re.compile(rb"^gpgsig(?:-sha256)? (-----BEGIN ([A-Z ]+)-----\n(?: .*\n)*)", re.MULTILINE)
FINGERPRINT = re.compile(r"key (SHA256:\S+)")
SIGNATURE_FAILURES = {
    "B": "its signature does not fit its content: it was changed after it was signed",
    "E": "its signature cannot be checked",
    "N": "it is not signed",
}
GPG_SETTINGS = "no-autostart\nno-auto-key-retrieve\ntrust-model always\n"


def read_head_commit(root: Path) -> str:
    """Return the commit that is checked out at `root`, "" without commits or without a git repository.

    Raises AssayError if git takes another folder for the working tree, or cannot be run where there is a repository.
    """
    try:
        run = run_git(root, "rev-parse", "--show-toplevel", "--verify", "--end-of-options", "HEAD^{commit}")
    except AssayError:
        if any((folder / ".git").exists() for folder in (root.resolve(), *root.resolve().parents)):
            raise
        return ""
    if run.returncode:
        return ""
    top, commit = run.stdout.decode(errors="surrogateescape").rstrip("\n").rsplit("\n", 1)
    if not root.resolve().is_relative_to(Path(top).resolve()):
        raise AssayError(
            f"git takes {top} for the working tree", where=str(root), fix="`git config --unset core.worktree`"
        )
    return commit


def read_commit_trust(root: Path, commit: str) -> CommitTrust | None:
    """Return the section `commits` of the policy in a commit, None if it has none.

    Other parts of the specs are not read: an old commit's trust must work even if its specs no longer fit their models.
    Raises AssayError if git does not have the commit, or the section does not fit its model.
    """
    options = ("-l", "-z", "-a", "-F", "--no-full-name", "--no-recurse-submodules", "--no-textconv")
    listed = run_git(root, "grep", *options, "LifecyclePolicy", commit, "--", "specs")
    if listed.returncode > 1:
        fix = "`git fetch --unshallow`, or fetch its branch"
        raise AssayError(f"git does not have the commit {commit}", where=str(root), fix=fix)
    paths = [line.removeprefix(f"{commit}:") for line in _split_output(listed)]
    sections = [_read_trust_section(root, commit, path) for path in paths if path.endswith((".yaml", ".yml"))]
    trusts = [section for section in sections if section is not None]
    return next((section for section in trusts if section.signed), next(iter(trusts), None))


def _read_trust_section(root: Path, commit: str, path: str) -> CommitTrust | None:
    """Return the section of one spec, None if it has none. A file that is not YAML was never accepted: it has none."""
    try:
        spec = parse_yaml(read_committed_file(root, commit, path), f"{commit[:12]}:{path}").data
    except UnreadableYaml:
        return None
    section = spec.get("commits") if isinstance(spec, dict) and spec.get("kind") == "LifecyclePolicy" else None
    try:
        return CommitTrust.model_validate(section) if section is not None else None
    except ValidationError as error:
        message = f"its commits cannot be read: {explain_violations(error, CommitTrust)[0][1]}"
        raise AssayError(message, where=f"{commit[:12]}:{path}") from None


def read_committed_file(root: Path, commit: str, path: str) -> bytes:
    """Return the content of a file in a commit; `path` is relative to `root`. Raises AssayError if it is not there."""
    shown = run_git(root, "cat-file", "blob", f"{commit}:./{path}")
    if shown.returncode:
        raise AssayError(f"there is no {path} in commit {commit[:12]}", where=str(root / path), fix="commit that file")
    return shown.stdout


def list_allowed_signers(root: Path, commit: str, path: str) -> frozenset[bytes]:
    """Return the lines of an allowed_signers file in a commit; none if the commit does not have the file."""
    shown = run_git(root, "cat-file", "blob", f"{commit}:./{path}")
    lines = () if shown.returncode else (line.strip() for line in shown.stdout.splitlines())
    return frozenset(line for line in lines if line and not line.startswith(b"#"))


def list_new_commits(root: Path, accepted: str, commit: str) -> list[tuple[str, list[str]]]:
    """Return each commit between the two, parents first, each with its parents; without `accepted`, with `commit`.

    Raises AssayError where a commit has other parents than git goes to, as in a shallow clone: some are not listed.
    """
    listed = run_git(root, "rev-list", "--topo-order", "--reverse", "--parents", commit, f"^{accepted}")
    if listed.returncode:
        raise AssayError(
            f"git cannot list the commits since {accepted[:12]}: {read_git_error(listed)}", where=str(root)
        )
    words = (line.split() for line in listed.stdout.decode().splitlines())
    commits = [(name, parents) for name, *parents in words]
    contents = read_git_objects(root, [name for name, _ in commits]) if commits else {}
    for name, parents in commits:
        head = contents[name].partition(b"\n\n")[0].decode(errors="replace").splitlines()
        if parents != [line.removeprefix("parent ") for line in head if line.startswith("parent ")]:
            fix = "`git fetch --unshallow`; see .git/shallow"
            raise AssayError(f"git hides commits before {name[:12]}", where=str(root), fix=fix)
    return commits


def is_descendant(root: Path, commit: str, ancestor: str) -> bool:
    """Whether `commit` is `ancestor` or descends from it."""
    return run_git(root, "merge-base", "--is-ancestor", ancestor, commit).returncode == 0


def has_commit(root: Path, commit: str) -> bool:
    """Whether git has a commit."""
    return run_git(root, "cat-file", "-e", f"{commit}^{{commit}}").returncode == 0


def has_whole_history(root: Path) -> bool:
    """Whether git has all commits, because the clone is not shallow."""
    return run_git(root, "rev-parse", "--is-shallow-repository").stdout.strip() == b"false"


def find_uncommitted(root: Path) -> list[str]:
    """Return the declared files that differ from the commit, including files that git is configured to ignore.

    Raises AssayError if git cannot tell.
    """
    options = ("--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching")
    status = run_git(root, "status", *options, "--ignore-submodules=none", "--", *SIGNED_PATHS)
    hidden = run_git(root, "ls-files", "-z", "-v", "--", *SIGNED_PATHS)
    if status.returncode or hidden.returncode:
        raise AssayError(
            f"git cannot say what is committed: {read_git_error(status) or read_git_error(hidden)}", where=str(root)
        )
    changed = [
        line[3:] for line in _split_output(status) if line[:2] not in ("!!", "??") or not CACHE_PATHS.search(line)
    ]
    return changed + [line[2:] for line in _split_output(hidden) if not line.startswith("H ")]


def _split_output(run: subprocess.CompletedProcess[bytes]) -> list[str]:
    return [line for line in run.stdout.decode(errors="surrogateescape").split("\0") if line]


@frozen
class CommitSignature:
    """The signer's name in `allowed_signers`, and the fingerprint of the key."""

    signer: str
    key: str


@frozen
class AllowedSigners:
    """Lines of allowed_signers that count, the name of their source in messages, and the time at which they count."""

    lines: frozenset[bytes]
    called: str
    at: datetime


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
        read_committed_file(self.root, self.accepted or self.newest, self.trust.allowed_signers)
        if not self.accepted:
            return self._verify_commit(self.newest, (), self._read_signers(self.newest))
        accepted = self._read_signers(self.accepted)
        added: dict[str, frozenset[bytes]] = {}
        signature = None
        for commit, parents in list_new_commits(self.root, self.accepted, self.newest):
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
            keys = read_committed_file(self.root, source, self.trust.forge_keys)
            called = f"{self.trust.forge_keys} of commit {source[:12]}"
            return verify_forge_merge(self.root, commit, [*parents], keys, called)
        called = f"{self.trust.allowed_signers} of commit {source[:12]}"
        return verify_ssh_signature(self.root, commit, AllowedSigners(signers, called, self.at))

    def _read_signers(self, commit: str) -> frozenset[bytes]:
        return list_allowed_signers(self.root, commit, self.trust.allowed_signers)

    @cached_property
    def _newest_signers(self) -> frozenset[bytes]:
        """The signers that the newest commit names; those of the accepted one if it asks for signatures no more."""
        own = read_commit_trust(self.root, self.newest)
        if own is None or not own.signed:
            return self._read_signers(self.accepted)
        return list_allowed_signers(self.root, self.newest, own.allowed_signers)

    def _name_commit(self, commit: str, error: AssayError) -> AssayError:
        if commit == self.newest:
            return error
        sign_each = f"git rebase --exec 'git commit --amend --no-edit -S' {self.accepted[:12]}"
        fix = f"sign each commit since then: `{sign_each}`"
        return AssayError(f"of commit {commit[:12]}, on which it builds: {error.what}", fix=fix)


def read_signature(root: Path, commit: str) -> tuple[str, bytes]:
    """Return the kind of a commit's signature, such as "SSH SIGNATURE", and its text. Both are empty without one."""
    header = run_git(root, "cat-file", "commit", commit).stdout.partition(b"\n\n")[0] + b"\n"
    match = SIGNATURE.search(header)
    return (match[2].decode(), match[1].replace(b"\n ", b"\n")) if match else ("", b"")


def verify_ssh_signature(root: Path, commit: str, signers: AllowedSigners) -> CommitSignature:
    """Return who signed a commit. Raises AssayError if it is not signed, or not by an allowed signer.

    The exit status of `verify-commit`, the status letter and the trust level must agree, and the key must also be valid
    now: git judges a key by the date in the commit, which its author chooses.
    """
    kind, text = read_signature(root, commit)
    if not kind:
        raise AssayError("it is not signed", fix="`git commit --amend --no-edit -S`, with gpg.format ssh")
    if kind != "SSH SIGNATURE":
        fix = "`git config gpg.format ssh`, and sign it with an SSH key; merges by the forge: see docs/plans.md"
        raise AssayError(f"it has a {kind.lower()}, and only SSH signatures count", fix=fix)
    program = shutil.which("ssh-keygen")
    if program is None:
        raise AssayError("its signature cannot be checked without ssh-keygen", fix="install openssh-client")
    with tempfile.TemporaryDirectory(prefix="assay-signers-") as folder:
        file = Path(folder, "allowed_signers")
        file.write_bytes(b"".join(line + b"\n" for line in sorted(signers.lines)))
        signature = _verify_at_its_own_date(root, commit, _list_signing_options(program, file), signers.called)
        _require_key_now(program, file, text, signature, signers)
    return signature


def _list_signing_options(program: str, signers: Path) -> Sequence[str]:
    wanted = {
        "gpg.format": "ssh",
        "gpg.program": "false",
        "gpg.openpgp.program": "false",
        "gpg.x509.program": "false",
        "gpg.ssh.program": program,
        "gpg.ssh.allowedSignersFile": str(signers),
        "gpg.minTrustLevel": "fully",
    }
    return list_git_settings(wanted.items())


def list_git_settings(settings: Iterable[tuple[str, str]]) -> list[str]:
    """Return git's options that set these values for one command."""
    return [word for name, value in settings for word in ("-c", f"{name}={value}")]


def _verify_at_its_own_date(root: Path, commit: str, options: Sequence[str], called: str) -> CommitSignature:
    checked = run_git(root, *options, "verify-commit", "--raw", commit)
    shown = run_git(root, *options, "log", "-1", "--format=%G?%x00%GT%x00%GF%x00%GS", commit)
    letter, trust, key, signer = (shown.stdout.decode(errors="replace").rstrip("\n").split("\0") + [""] * 4)[:4]
    if (checked.returncode, letter, trust) == (0, "G", "fully") and signer and key:
        return CommitSignature(signer, key)
    if letter in SIGNATURE_FAILURES:
        raise AssayError(SIGNATURE_FAILURES[letter], fix="sign it again, with an allowed key")
    fingerprint = FINGERPRINT.search(read_git_error(checked))
    by = f"the key {fingerprint[1]}" if fingerprint else "a key"
    raise AssayError(
        f"it is signed by {by}, which {called} does not allow at the time of the commit",
        fix="let an allowed signer sign it, or let one add the key in a signed commit",
    )


def _require_key_now(
    program: str, file: Path, text: bytes, signature: CommitSignature, signers: AllowedSigners
) -> None:
    stored = file.with_name("signature")
    stored.write_bytes(text)
    at = signers.at.astimezone(UTC)
    words = [program, "-Y", "find-principals", "-s", str(stored), "-f", str(file)]
    words.append(f"-Overify-time={at:%Y%m%d%H%M%S}")  # ssh-keygen reads it in the local time zone
    answer = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, env={"TZ": "UTC"})
    if answer.returncode or signature.signer not in answer.stdout.split():
        raise AssayError(
            f"{signers.called} allows the key of {signature.signer} at the date in the commit, but not now, "
            f"{format_minute(format_time(at))}",
            fix="sign it again with a key that is valid now",
        )


def verify_forge_merge(root: Path, commit: str, parents: Sequence[str], keys: bytes, called: str) -> CommitSignature:
    """Return the forge's name and key, of a merge that it signed, as by the merge button on GitHub.

    Anybody with access to the forge can make it sign. So its key counts for merges alone, and only for those that hold
    nothing but what git makes of the two parents: people signed all of that. `keys` are armored PGP keys, from the file
    that messages call `called`. Raises AssayError if the commit is no such merge. The caller verifies the parents.
    """
    _require_plain_merge(root, commit, parents)
    program = shutil.which("gpg")
    if program is None:
        raise AssayError("the forge's signature cannot be checked without gpg", fix="install gnupg")
    with tempfile.TemporaryDirectory(prefix="assay-forge-") as home:  # only its owner can enter it
        Path(home, "gpg.conf").write_text(GPG_SETTINGS)
        imported = subprocess.run(
            [program, "--homedir", home, "--batch", "--quiet", "--import"], input=keys, capture_output=True, check=False
        )
        if imported.returncode:
            fix = "the forge publishes its key in armored form; GitHub: https://github.com/web-flow.gpg"
            raise AssayError(f"gpg cannot read the keys in {called}", fix=fix)
        options = list_git_settings({"gpg.program": program, "gpg.openpgp.program": program}.items())
        world = {"GNUPGHOME": home}
        checked = run_git(root, *options, "verify-commit", "--raw", commit, environment=world)
        shown = run_git(root, *options, "log", "-1", "--format=%G?%x00%GF%x00%GS", commit, environment=world)
    letter, key, signer = (shown.stdout.decode(errors="replace").rstrip("\n").split("\0") + [""] * 3)[:3]
    if checked.returncode or letter != "G" or not key:
        raise AssayError(f"its PGP signature is not a good one by a key in {called}", fix="merge it again, signed")
    return CommitSignature(signer, key)


def _require_plain_merge(root: Path, commit: str, parents: Sequence[str]) -> None:
    if len(parents) != 2:
        raise AssayError(
            "the forge signed it, but it is no merge of two commits",
            fix="merge with a merge commit: squashing and rebasing replace the commits that people signed",
        )
    merged = run_git(root, "merge-tree", "--write-tree", "--no-messages", *parents)
    if merged.returncode > 1:
        raise AssayError(f"git cannot repeat the merge: {read_git_error(merged)}", fix="install git 2.38 or newer")
    tree = run_git(root, "rev-parse", "--verify", f"{commit}^{{tree}}").stdout.strip()
    if merged.returncode or merged.stdout.strip() != tree:
        raise AssayError(
            "the forge signed it, but its files are not what git makes of its two parents",
            fix="merge the branch on your machine, and sign that merge",
        )
