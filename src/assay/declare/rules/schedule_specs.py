"""Schedules that never come due, or that cannot do what they are for."""

from __future__ import annotations

from collections.abc import Iterator

from assay.declare.check import FilePosition, RuleFinding, rule
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.rules.dangling_names import format_few_names, suggest_name
from assay.model.specs.check_catalog import CheckCatalog
from assay.model.specs.schedules import FleetSchedule, Schedules, find_next_slot
from assay.model.specs.workload import CollectiveWorkload


@rule("ASY0200", "a schedule that is never due")
def never_due_schedule(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The schedule looks active, but it never runs."""
    for document, name, schedule in _list_schedules(draft):
        if find_next_slot(schedule, document.time_zone, draft.now) is None:
            message = f"{name}: {schedule.cron!r} names a day that never comes"
            yield RuleFinding(_place(draft, document, name, "cron"), message, "name a day that its months have")


@rule("ASY0201", "two schedules with the same name")
def repeated_schedule_name(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The history knows schedules by their names, so it mixes up these two."""
    first: dict[str, str] = {}
    for document, name, _ in _list_schedules(draft):
        if first.setdefault(name, document.name) != document.name:
            message = f"{name} is in the schedules {first[name]} already"
            yield RuleFinding(_place(draft, document, name), message, "rename one of the two")


@rule("ASY0202", "a schedule for a pool that does not exist")
def unknown_schedule_pool(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The schedule runs, but it does nothing for this pool."""
    pools = {host.pool for host in draft.hosts}
    for document, name, schedule in _list_schedules(draft) if draft.all_hosts_read else ():
        for number, pool in enumerate(schedule.pools):
            if pool not in pools:
                place = _place(draft, document, name, "pools", number)
                yield RuleFinding(place, f"{name}: there is no pool {pool}", suggest_name(pool, pools))


@rule("ASY0203", "a verification whose phase has no active check", needs=(CheckCatalog,))
def idle_phase(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay loads idle nodes, but no check judges the result."""
    loaded = {
        phase
        for catalog in draft.specs_of_model(CheckCatalog).values()
        for check in catalog.checks
        if check.active
        for phase in check.phases
    }
    for document, name, schedule in _list_schedules(draft):
        wanted = schedule.verification.phase if schedule.verification else None
        if wanted and wanted not in loaded:
            place = _place(draft, document, name, "verification", "phase")
            message = f"{name}: no active check is declared for phase {wanted}"
            yield RuleFinding(place, message, suggest_name(wanted, loaded))


@rule("ASY0206", "a search with a workload that is not declared", needs=(CollectiveWorkload,))
def unknown_workload(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The search fails each time that it is due."""
    known = {spec.name for spec in draft.specs_of_model(CollectiveWorkload).values()}
    for document, name, schedule in _list_schedules(draft):
        if schedule.search and schedule.search.workload not in known:
            place = _place(draft, document, name, "search", "workload")
            wanted = schedule.search.workload
            message = f"{name}: there is no CollectiveWorkload {wanted}"
            yield RuleFinding(place, message, suggest_name(wanted, known))


@rule("ASY0205", "a greatest age for a phase without checks", needs=(CheckCatalog,))
def unknown_stale_phase(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The sweep never finds anything stale, because no check belongs to this phase."""
    phases = {phase for _, check in draft.declared_checks for phase in check.phases}
    for document, name, schedule in _list_schedules(draft):
        for phase in sorted(schedule.stale_minutes.keys() - phases):
            place = _place(draft, document, name, "stale_minutes", phase)
            yield RuleFinding(place, f"{name}: no check is declared for phase {phase}", suggest_name(phase, phases))


@rule("ASY0204", "idle verification of nodes without a scheduler")
def pool_without_spare_time(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay cannot find out whether such a node is idle, and cannot make room for its users."""
    # A schedule for all pools skips such pools.
    without: dict[str, list[str]] = {}
    for host in draft.hosts:
        if host.settings and host.settings.workloads == "none":
            without.setdefault(host.pool, []).append(host.name)
    for document, name, schedule in _list_schedules(draft) if draft.all_hosts_read else ():
        for number, pool in enumerate(schedule.pools if schedule.does == "idle-verification" else ()):
            if pool in without:
                place = _place(draft, document, name, "pools", number)
                message = f"{name}: no scheduler places jobs on {format_few_names(without[pool])} of pool {pool}"
                yield RuleFinding(place, message, "set the pool's variable `workloads`, or leave the pool out")


def _list_schedules(draft: RepositoryDraft) -> Iterator[tuple[Schedules, str, FleetSchedule]]:
    for document in draft.specs_of_model(Schedules).values():
        for name, schedule in document.schedules.items():
            yield document, name, schedule


def _place(draft: RepositoryDraft, document: Schedules, name: str, *path: str | int) -> FilePosition:
    return draft.find_position(f"Schedules/{document.name}", "schedules", name, *path)
