"""The example fleet as a git repository of its own, to be changed, and planned against what was committed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.act.loop.plan_inputs import load_plan_revisions
from assay.decide.plan.change_plan import ChangePlan, make_change_plan
from assay.decide.plan.inputs import FleetFacts, FleetRevision
from assay.decide.state.node_projection import project_node_states
from assay.declare.yaml import ParseCache
from assay.model.ledger_entry import LedgerEntry, derive_id
from tests.support.places import ROOT

PARSE_CACHE = ParseCache()  # most of what a test plans was read for another, word for word
AT = "2026-11-21T12:00:00+00:00"


class Repository:
    """A fleet repository."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *words: str) -> str:
        person = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
        run = subprocess.run(["git", *person, *words], cwd=self.root, capture_output=True, text=True, check=True)
        return run.stdout.strip()

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a change")
        return self.git("rev-parse", "HEAD")

    def edit(self, path: str, old: str, new: str, times: int = -1) -> Repository:
        """Replace text that must be there."""
        file = self.root / path
        text = file.read_text()
        assert old in text, f"{path} holds no {old!r}"
        file.write_text(text.replace(old, new, times))
        return self

    def spec(self, old: str, new: str) -> Repository:
        return self.edit("specs/nodes/hgx-h100.yaml", old, new)

    def policy(self, old: str, new: str) -> Repository:
        return self.edit("specs/lifecycle/default.yaml", old, new)

    def firmware(self, old: str, new: str) -> Repository:
        return self.edit("specs/firmware/hgx-h100-2026-10.yaml", f'version: "{old}"', f'version: "{new}"')

    def host(self, name: str) -> str:
        """Return the lines of a node of pool h100-a, from its name to the next."""
        text = (self.root / "inventory/h100-a.yml").read_text()
        start = text.index(f"    {name}:\n")
        end = text.find("    n0", start + 5)
        return text[start:] if end < 0 else text[start:end]

    def remove(self, *names: str) -> Repository:
        """Take nodes out of pool h100-a, and out of the fabric, whose ends they must be."""
        for name in names:
            self.edit("inventory/h100-a.yml", self.host(name), "")
        left = [f"n{number:04}" for number in range(1, 21) if f"n{number:04}" not in names]
        return self.edit("specs/fabrics/compute.yaml", 'nodes: ["n0001..n0020"]', f"nodes: [{', '.join(left)}]")

    def declared(self, rev: str | None = None) -> FleetRevision:
        return load_plan_revisions(self.root, rev or "", rev or "", PARSE_CACHE)[1]

    def plan(self, facts: FleetFacts | None = None, base: str = "HEAD") -> ChangePlan:
        """Plan the folder as it is over a commit."""
        return make_change_plan(*load_plan_revisions(self.root, base, cache=PARSE_CACHE), facts or FleetFacts())


@pytest.fixture(scope="session")
def committed_fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example fleet as a repository with one commit, in one pack: copies are quick and need no git."""
    made = Repository(tmp_path_factory.mktemp("committed") / "fleet")
    for folder in ("inventory", "specs", "suites", "playbooks"):
        shutil.copytree(ROOT / folder, made.root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for golden in (made.root / "specs/golden").iterdir():  # as a site's own: those that stand in judge no real GPU
        lines = golden.read_text().splitlines(keepends=True)
        golden.write_text("".join(line for line in lines if not line.startswith("stands_in:")))
    made.git("init", "-q", "-b", "main", "--template=")
    made.git("config", "core.checkStat", "minimal")  # a copy's files have other inodes
    made.git("config", "core.trustctime", "false")
    made.commit()
    made.git("repack", "-adq")
    return made.root


@pytest.fixture
def repository(committed_fleet: Path, tmp_path: Path) -> Repository:
    return Repository(Path(shutil.copytree(committed_fleet, tmp_path / "fleet", symlinks=True)))


def entries_of(*path: str, node: str, start: str = "production", actions: tuple[str, ...] = ()) -> list[LedgerEntry]:
    """Return the history of a node that went along a path; `actions` were verified in the last state."""
    told = [LedgerEntry(f"enrolled {node}", AT, "node.enrolled", node, {"pool": "h100-a", "state": start})]
    here = start
    for state in path:
        decision = f"{node} to {state}"
        told.append(
            LedgerEntry(f"move {decision}", AT, "transition", node, {"from": here, "to": state, "decision": decision})
        )
        here = state
    for action in actions:
        effect, decision = derive_id(node, here, action), f"{node} to {here}"
        body = {"effect": effect, "action": action, "decision": decision}
        told.append(LedgerEntry(f"begin {effect}", AT, "effect.intent", node, body))
        told.append(
            LedgerEntry(f"end {effect}", AT, "effect.verified", node, {"effect": effect, "reason": "", "facts": {}})
        )
    return told


@pytest.fixture
def out_of_service() -> Callable[..., FleetFacts]:
    """Facts of a fleet where these nodes are drained."""

    def made(*names: str) -> FleetFacts:
        return FleetFacts(project_node_states(entry for name in names for entry in entries_of("draining", node=name)))

    return made


@pytest.fixture
def known() -> Callable[..., FleetFacts]:
    """Facts of one node that went along a path of states."""

    def made(node: str, *path: str, start: str = "production", actions: tuple[str, ...] = ()) -> FleetFacts:
        return FleetFacts(project_node_states(entries_of(*path, node=node, start=start, actions=actions)))

    return made
