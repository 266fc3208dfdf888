"""Schedules: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import Case

FILE = "specs/schedules.yaml"
SCAN = "does: fabric-scan"
IDLE = "does: idle-verification, cron: 0 * * * *"


def schedules(*lines: str, name: str = "ours", file: str = FILE) -> dict[str, str | None]:
    listed = "".join(f"  {line}\n" for line in lines)
    return {file: f"kind: Schedules\nname: {name}\nsources: [us]\nschedules:\n{listed}"}


def verified(phase: str, pools: str = "") -> str:
    how = f"phase: {phase}, parts: [memory], seconds: 60, within_minutes: 30, at_once: 1, told_after: 2"
    return f"idle: {{{IDLE}, pools: [{pools}], verification: {{{how}}}}}"


def swept(phase: str) -> str:
    return f"sweep: {{does: staleness-sweep, every_minutes: 9, stale_minutes: {{{phase}: 30}}}}"


def with_check(loads: bool, *lines: str) -> dict[str, str | None]:
    """Return schedules in a fleet whose one check loads its node, or does not."""
    check = (
        f"{{id: 'suites/test_heat.py::test_heat', subject: gpu, phases: [production], active: {str(loads).lower()}}}"
    )
    return {**schedules(*lines), "specs/checks.yaml": f"kind: CheckCatalog\nname: checks\nchecks: [{check}]\n"}


OTHER = "specs/others.yaml"
WORKLOAD = (
    "{kind: CollectiveWorkload, name: nccl, sources: [us], pair: {command: ['{a}', '{b}'], deadline_seconds: 9}}\n"
)


def searched(workload: str) -> dict[str, str | None]:
    line = f"a: {{does: collectives-search, cron: 0 3 * * SUN, search: {{workload: {workload}}}}}"
    return schedules(line) | {"specs/nccl.yaml": WORKLOAD}


CASES: dict[str, Case] = {
    "ASY0200": Case(
        schedules(f"a: {{{SCAN}, cron: 0 0 31 2 *}}"), schedules(f"a: {{{SCAN}, cron: 0 0 29 2 *}}"), f"{FILE}:5:26"
    ),
    "ASY0201": Case(
        schedules(f"a: {{{SCAN}, every_minutes: 9}}", file=OTHER, name="others")
        | schedules(f"a: {{{SCAN}, every_minutes: 9}}"),
        schedules(f"a: {{{SCAN}, every_minutes: 9}}", file=OTHER, name="others")
        | schedules(f"b: {{{SCAN}, every_minutes: 9}}"),
        f"{FILE}:5:3",
    ),
    "ASY0202": Case(
        schedules(f"a: {{{SCAN}, every_minutes: 9, pools: [pool-b]}}"),
        schedules(f"a: {{{SCAN}, every_minutes: 9, pools: [pool-a]}}"),
        f"{FILE}:5:52",
    ),
    "ASY0203": Case(
        with_check(False, verified("production")), with_check(True, verified("production")), f"{FILE}:5:78"
    ),
    "ASY0204": Case(
        with_check(True, verified("production", "pool-a")), with_check(True, verified("production")), f"{FILE}:5:60"
    ),
    "ASY0206": Case(searched("ncll"), searched("nccl"), f"{FILE}:5:61"),
    "ASY0205": Case(
        with_check(False, swept("prodution")),
        with_check(False, swept("production")),
        f"{FILE}:5:68",
    ),
}
