"""Schedules that never come to anything, or not to what they say."""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.check import FilePosition, RuleFinding, rule
from assay.fleet.repository_draft import HostDeclaration, RepositoryDraft
from assay.fleet.rules.dangling_names import format_few_names, suggest_name
from assay.model.specs.check_catalog_and_gates import CheckCatalog
from assay.model.specs.schedules import FleetSchedule, Schedules, find_next_slot


@rule("ASY0200", "a schedule that never comes due", why="It looks as if something were done, and nothing ever is.")
def never_due_schedule(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find crons that ask for a day that no month has."""
    for document, name, schedule in _schedules(draft):
        if find_next_slot(schedule, document.time_zone, draft.now) is None:
            said = f"{name}: {schedule.cron!r} asks for a day that never comes"
            yield RuleFinding(_place(draft, document, name, "cron"), said, "name a day that its months have")


@rule("ASY0201", "two schedules of one name", why="History tells them by their names: one would pass for the other.")
def repeated_schedule_name(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find names that schedules of another document have too."""
    first: dict[str, str] = {}
    for document, name, _ in _schedules(draft):
        if first.setdefault(name, document.name) != document.name:
            said = f"{name} is in the schedules {first[name]} already"
            yield RuleFinding(_place(draft, document, name), said, "rename one of the two")


@rule("ASY0202", "a schedule for a pool that does not exist", why="It would come due, and do nothing.")
def unknown_schedule_pool(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find pools of schedules that the inventory does not have."""
    pools = {host.pool for host in draft.hosts}
    for document, name, schedule in _schedules(draft) if draft.all_hosts_read else ():
        for number, pool in enumerate(schedule.pools):
            if pool not in pools:
                place = _place(draft, document, name, "pools", number)
                yield RuleFinding(place, f"{name}: there is no pool {pool}", suggest_name(pool, pools))


@rule(
    "ASY0203",
    "a verification by a phase that loads nothing",
    why="Idle nodes would be loaded, and nothing would judge what came of it.",
    needs=(CheckCatalog,),
)
def idle_phase(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find phases of verifications without an active check."""
    loaded = {
        phase
        for one in draft.specs_of_model(CheckCatalog).values()
        for check in one.checks
        if check.active
        for phase in check.phases
    }
    for document, name, schedule in _schedules(draft):
        wanted = schedule.verification.phase if schedule.verification else None
        if wanted and wanted not in loaded:
            place = _place(draft, document, name, "verification", "phase")
            yield RuleFinding(
                place, f"{name}: no active check is declared for phase {wanted}", suggest_name(wanted, loaded)
            )


@rule(
    "ASY0204",
    "idle verification of nodes without a scheduler",
    why="Nobody could say whether such a node is idle, nor make room for its users.",
)
def pool_without_spare_time(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find verifications that name a pool in which no scheduler places jobs. All pools means all that have one."""
    without = _without_scheduler(draft)
    for document, name, schedule in _schedules(draft) if draft.all_hosts_read else ():
        for number, pool in enumerate(schedule.pools if schedule.does == "idle-verification" else ()):
            if pool in without:
                place = _place(draft, document, name, "pools", number)
                said = f"{name}: no scheduler places jobs on {format_few_names(without[pool])} of pool {pool}"
                yield RuleFinding(place, said, "set the pool's variable `workloads`, or leave the pool out")


def _schedules(draft: RepositoryDraft) -> Iterator[tuple[Schedules, str, FleetSchedule]]:
    for document in draft.specs_of_model(Schedules).values():
        for name, schedule in document.schedules.items():
            yield document, name, schedule


def _place(draft: RepositoryDraft, document: Schedules, name: str, *path: str | int) -> FilePosition:
    return draft.find_position(f"Schedules/{document.name}", "schedules", name, *path)


def _without_scheduler(draft: RepositoryDraft) -> dict[str, list[str]]:
    """Return the nodes without a scheduler, by pool."""
    found: dict[str, list[str]] = {}
    for host in draft.hosts:
        if _is_alone(host):
            found.setdefault(host.pool, []).append(host.name)
    return found


def _is_alone(host: HostDeclaration) -> bool:
    return host.settings is not None and host.settings.workloads == "none"
