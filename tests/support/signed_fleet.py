"""The smallest fleet in a real git repository, its policy asking for signatures by real SSH keys."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from assay.act.loop.context import ControllerContext
from assay.act.loop.fleet_reload import accept_commit
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import SMALLEST
from tests.support.trusted import TRUSTED

ASKS = "commits: {signed: true}\n"
ASKS_WITH_FORGE = "commits: {signed: true, forge_keys: specs/forge.asc}\n"
HERE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
ROLLOUT_POLICY = (
    """
kind: LifecyclePolicy
name: policy
sources: [us]
states:
  onboard: {summary: new, certified_to: production}
  production: {summary: in use, in_service: true, entry: [uncordon], watch: [production]}
  draining: {summary: leaves, entry: [cordon, drain-now], until_idle: true, pass_to: triage}
  zap: {summary: firmware, entry: [zap], pass_to: test, effect_failed_to: triage}
  test:
    summary: proof
    requires: [{phase: production, fresh_hours: 24}]
    pass_to: production
    fail_to: triage
  triage: {summary: a person looks, entry: [ticket], certified_to: test}
edges:
  onboard: [production]
  production: [draining]
  draining: [zap, triage]
  zap: [test, triage]
  test: [production, triage, zap]
  triage: [test, zap]
faults:
  any: {timing: record, remedy: ticket}
ladder: {window_hours: 1, rungs: {}}
holds: {remind_hours: 99}
settle_minutes: 0
"""
    + TRUSTED
)


@dataclass
class SignedFleet:
    """A fleet at `root` that alice may sign; `told` is what the gate says on the way."""

    root: Path
    keys: Path
    told: list[str] = field(default_factory=list)

    def lay_out(self) -> None:
        shutil.copytree(SMALLEST, self.root, ignore=shutil.ignore_patterns("__pycache__"))
        self.write(".gitignore", ".assay/\nreports/\n")
        self.write("specs/allowed_signers", self.signer("alice"))
        self.write("specs/policy.yaml", self.text("specs/policy.yaml") + ASKS)
        self.git("init", "--quiet", "--initial-branch=main")

    def text(self, name: str) -> str:
        return (self.root / name).read_text()

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def key(self, who: str) -> Path:
        """Return the path of a person's private key, made on first use."""
        path = self.keys / who
        if not path.exists():
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", who, "-f", str(path))
        return path

    def signer(self, who: str, options: str = "") -> str:
        """Return a person's line in allowed_signers."""
        public = self.key(who).with_suffix(".pub").read_text()
        return f'{who}@example.org {options}{"," if options else ""}namespaces="git" {public}'

    def git(self, *command: str, **environment: str) -> str:
        author = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"]
        return run("git", "-C", str(self.root), *author, *command, **environment)

    def commit(self, by: str = "", *, at: str = "") -> str:
        """Commit all that there is, signed by somebody or by nobody; return the commit."""
        self.git("add", "--all")
        key = ["-c", "gpg.format=ssh", "-c", f"user.signingKey={self.key(by)}"] if by else []
        dates = {"GIT_COMMITTER_DATE": at, "GIT_AUTHOR_DATE": at} if at else {}
        sign = "--gpg-sign" if by else "--no-gpg-sign"
        self.git(*key, "commit", "--quiet", "--allow-empty", "--message=change", sign, **dates)
        return self.git("rev-parse", "HEAD").strip()

    def merge(self, other: str, by: str) -> None:
        """Merge another commit, with our own files where both changed one, signed by somebody."""
        key = ["-c", "gpg.format=ssh", "-c", f"user.signingKey={self.key(by)}"]
        self.git(*key, "merge", "--quiet", "--no-ff", "--strategy=ours", "--gpg-sign", "--message=merge", other)

    def branch_and_merge(self, by: str, forge: Forge, smuggled: str = "") -> str:
        """Merge a branch of one commit, signed by somebody or by nobody, as a forge does; return the merge."""
        self.git("checkout", "--quiet", "-b", "branch")
        self.write("specs/note.txt", "of the branch")
        self.commit(by)
        self.git("checkout", "--quiet", "main")
        self.git("merge", "--quiet", "--no-ff", "--no-commit", "branch")
        if smuggled:
            self.write("specs/smuggled.txt", smuggled)
            self.git("add", "--all")
        forge.commit(self, "--message=merge")
        return self.git("rev-parse", "HEAD").strip()

    def desk(self) -> ControllerContext:
        home, fleet = self.root / ".assay", load_fleet(self.root)
        ledger = Ledger.open(home / "ledger.sqlite")
        store = EvidenceStore(home / "evidence")
        return ControllerContext(
            fleet, ledger, store, SystemClock(), home, self.root / "reports", progress=self.told.append
        )

    def accept(self) -> None:
        accept_commit(self.desk())

    def accepted(self) -> list[tuple[str, str]]:
        """Return commit and signer of what the ledger says was accepted."""
        entries = self.desk().ledger.entries(kinds=["commit.accepted"])
        return [(entry.body["commit"], entry.body["signer"]) for entry in entries]


class Forge:
    """A forge with a PGP key of its own, which signs what its users merge."""

    def __enter__(self) -> Forge:
        self.home = tempfile.mkdtemp(prefix="forge-")  # short, because gpg's agent has a socket in it
        self.gpg("--passphrase", "", "--quick-gen-key", "Forge <forge@example.org>", "ed25519", "sign", "never")
        return self

    def __exit__(self, *_: object) -> None:
        run("gpgconf", "--homedir", self.home, "--kill", "all")
        shutil.rmtree(self.home, ignore_errors=True)  # the agent, as it ends, removes its sockets at the same time

    def gpg(self, *command: str) -> str:
        return run("gpg", "--homedir", self.home, "--batch", "--quiet", *command)

    def public_keys(self) -> str:
        return self.gpg("--armor", "--export")

    def commit(self, fleet: SignedFleet, *options: str) -> None:
        """Commit what is staged, signed by the forge."""
        key = ["-c", "gpg.format=openpgp", "-c", "user.signingKey=forge@example.org"]
        fleet.git(*key, "commit", "--quiet", "--gpg-sign", *options, GNUPGHOME=self.home)


def run(*command: str, **environment: str) -> str:
    """Run a program as on a machine where nobody configured git, and return what it prints."""
    assert shutil.which(command[0]), f"{command[0]} is missing: as root, `make system` installs it"
    told = subprocess.run(command, env=os.environ | HERE | environment, capture_output=True, text=True, check=False)
    assert told.returncode == 0, f"{' '.join(command)}: {told.stderr}"
    return told.stdout
