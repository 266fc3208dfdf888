"""A run: pytest over the selected nodes, in processes of its own, with every declared check accounted for."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from assay.harness.declared import Selection, promised
from assay.harness.reconcile import reconcile
from assay.harness.shares import Share, judge
from assay.ledger.store import Ledger
from assay.model.clock import Clock
from assay.model.errors import Trouble
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, Run

DEADLINE_S = 600.0


@dataclass(frozen=True)
class RunResult:
    """A run with every outcome; `missing` are those that were declared and never delivered, all of them errors."""

    run: Run
    outcomes: list[Outcome]
    missing: list[Outcome]

    @property
    def counts(self) -> Counter[str]:
        """How many outcomes of each verdict there are."""
        return Counter(outcome.verdict for outcome in self.outcomes)

    @property
    def well(self) -> bool:
        """Whether something was judged, nothing failed, and nothing was left unknown."""
        return bool(self.outcomes) and not self.counts["fail"] and not self.counts["error"]


def validate(
    fleet: Fleet,
    evidence: Path,
    *,
    nodes: Sequence[str],
    phases: Collection[str],
    reports: Path,
    ledger: Ledger | None,
    jobs: int = 1,
    extra: Sequence[str] = (),
    clock: Clock,
    baseline: str = "",
    deadline_s: float = DEADLINE_S,
    progress: Callable[[int, int], None] | None = None,
) -> RunResult:
    """Judge `nodes` in `phases` (none: all) by the evidence in the folder `evidence`, and record what came out.

    `jobs` processes share the nodes. `extra` goes to pytest; what it deselects is not missed. `baseline` is the path
    or URL of the ledger that holds earlier passes (the fleet's own where none is given). `progress` is called with
    the outcomes so far and those due. Raises Trouble where there is nothing to run.
    """
    due = promised(Selection(fleet, tuple(nodes)), phases)
    if not due:
        raise Trouble("no declared check is selected", fix="see specs/checks for the checks, their phases and subjects")
    run = _run(fleet, nodes, phases, clock)
    home = reports.resolve() / "runs" / run.id
    home.mkdir(parents=True)
    options = ["--fleet", str(fleet.root), "--evidence", str(evidence.resolve()), "--node", ",".join(nodes)]
    options += ["--phase", ",".join(sorted(phases))] if phases else []
    shares, ended = judge(
        fleet.root,
        [*options, *extra],
        home,
        max(1, min(jobs, len(nodes))),
        _environment(fleet, baseline),
        deadline_s,
        lambda done: progress(done, len(due)) if progress else None,
    )
    delivered = [outcome for share in shares for outcome in read_outcomes(share.outcomes)]
    left_out = _left_out(shares) if extra else set()
    wanted = [one for one in due if (one[0].id, str(one[1])) not in left_out]
    outcomes, missing = reconcile(wanted, delivered, ended)
    _keep(home, run, outcomes, shares)
    if ledger is not None:
        ledger.record(run, outcomes)
    return RunResult(run, outcomes, missing)


def read_outcomes(file: Path) -> list[Outcome]:
    """Return the outcomes that a run has written to a file. A last line cut short by a kill is no outcome."""
    if not file.exists():
        return []
    lines = file.read_text().split("\n")[:-1]
    return [Outcome.from_json(json.loads(line)) for line in lines]


def suite_hash(suites: Path) -> str:
    """Return the sha256 over the names and contents of everything below `suites`."""
    summed = hashlib.sha256()
    for path in sorted(suites.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            summed.update(f"{path.relative_to(suites).as_posix()}\0{path.stat().st_size}\0".encode())
            summed.update(path.read_bytes())
    return summed.hexdigest()


def _run(fleet: Fleet, nodes: Iterable[str], phases: Iterable[str], clock: Clock) -> Run:
    at = clock.now()
    return Run(
        id=f"{at:%Y%m%dT%H%M%S.%f}"[:-3] + f"-{uuid.uuid4().hex[:6]}",
        at=at.isoformat(),
        phases=tuple(sorted(phases)),
        nodes=tuple(nodes),
        spec_commit=fleet.commit,
        dirty=fleet.dirty,
        suite_hash=suite_hash(fleet.root / "suites"),
        who=_who(),
    )


def _who() -> str:
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def _environment(fleet: Fleet, baseline: str) -> dict[str, str]:
    """Return what the processes learn by environment, where a URL's password is not shown to everyone."""
    own = fleet.root / ".assay" / "ledger.sqlite"
    where = baseline or (str(own) if own.exists() else "")
    return {"ASSAY_LEDGER": where}


def _left_out(shares: Iterable[Share]) -> set[tuple[str, str]]:
    """Return check and subject of what pytest was told to leave out."""
    files = [share.outcomes.with_suffix(".left-out") for share in shares]
    lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
    return {(check, subject) for check, subject in map(json.loads, lines)}


def _keep(home: Path, run: Run, outcomes: Iterable[Outcome], shares: Iterable[Share]) -> None:
    """Write the run as one file of outcomes and one about the run; keep the logs, drop the shares' files."""
    with (home / "outcomes.jsonl").open("w") as file:
        file.writelines(json.dumps(outcome.as_json(), ensure_ascii=False) + "\n" for outcome in outcomes)
    (home / "run.json").write_text(json.dumps(asdict(run), indent=1) + "\n")
    for share in shares:
        share.outcomes.unlink(missing_ok=True)
        share.outcomes.with_suffix(".left-out").unlink(missing_ok=True)
