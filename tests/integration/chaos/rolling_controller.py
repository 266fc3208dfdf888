"""Controllers that roll changes out, to be killed.

`python -m tests.integration.chaos.rolling_controller FOLDER LEDGER NODES RATE` reads the words that chaos_controller
reads. The fleet is the folder's own repository.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from assay.decide.rollouts.rollout_history import ROLLOUTS
from assay.declare.loader import load_fleet
from assay.declare.spec_values_read_by_checks import JudgingHashes
from assay.fabric.design.node_cables import digest_node_cables
from assay.ledger.store import Ledger
from assay.model.clock import ScaledClock
from assay.model.evidence import EvidenceBasis
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, SuiteRun
from assay.validate.runs.subjects import list_declared_outcomes
from tests.integration.chaos.chaos_controller import Controller, serve
from tests.integration.chaos.rolling_world import Flash, LoggingScheduler, RollingWorld


class RollingController(Controller):
    """A controller whose nodes have firmware, and which follows the commits of its fleet."""

    world: RollingWorld
    lease_s, each_s = 1.0, 600.0

    def __init__(self, root: Path, ledger: str, clock: ScaledClock, seed: int) -> None:
        super().__init__(root, ledger, load_fleet(root), clock, seed, refused=0)
        self.world = RollingWorld(root)
        sys.modules["assay.act.actions.zap"] = Flash(self.world)  # type: ignore[assignment]

    def read_fleet(self) -> Fleet:
        return load_fleet(self.root)

    @property
    def scheduler(self) -> LoggingScheduler:
        return LoggingScheduler(self.world)

    def settled(self, ledger: Ledger) -> bool:
        """Whether no rollout goes on either."""
        return ROLLOUTS.fold(ledger.entries(kinds=ROLLOUTS.kinds)).find_active() is None and super().settled(ledger)

    def _validate(self, fleet: Fleet, *_: object, nodes: Sequence[str], phases: Sequence[str], **with_: Any) -> Any:
        """Judge by the fleet's own catalogue: whether a node has the firmware of its bundle, and is not hot."""
        basis, now = EvidenceBasis(with_["ledger"].head()), with_["clock"].now().isoformat()  # before the world is read
        hashes = JudgingHashes(fleet, digest_node_cables)
        seen, ill = self.world.versions(), self.world.ill()
        told: list[Outcome] = []
        for name in nodes:
            wanted = {one.name: one.version for one in fleet.bundle_of(name).components}
            bad = {"firmware.drift": seen[name] != wanted, "gpu.hot": name in ill}
            for check, subject in list_declared_outcomes(fleet, name, phases):
                about: dict[str, Any] = {"phases": tuple(check.phases), "evidence_at": now, "basis": basis}
                about |= {"judged_by": hashes.of_node(name).get(check.id, "")}
                if bad[check.fault]:
                    about |= {"reason": f"{seen[name]}, wanted {wanted}", "fault": check.fault}
                told.append(Outcome(check.id, str(subject), name, "fail" if bad[check.fault] else "pass", **about))
        run = SuiteRun(f"{now}-{self.chance.getrandbits(64):016x}", now, tuple(phases), tuple(nodes), who="chaos")
        with_["ledger"].record(run, told)
        return SimpleNamespace(run=run)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    serve(folder, float(sys.argv[4]), partial(RollingController, folder, sys.argv[2]))
