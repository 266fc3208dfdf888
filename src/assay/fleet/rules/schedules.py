"""Schedules that never come to anything, or not to what they say."""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.draft import Draft, HostEntry
from assay.fleet.rules.book import Finding, Place, rule
from assay.fleet.rules.names import few, nearest
from assay.model.checks import CheckCatalog
from assay.model.schedule import Schedule, Schedules
from assay.model.slots import slot_after


@rule("ASY0200", "a schedule that never comes due", why="It looks as if something were done, and nothing ever is.")
def never_due(draft: Draft) -> Iterator[Finding]:
    """Find crons that ask for a day that no month has."""
    for document, name, schedule in _schedules(draft):
        if slot_after(schedule, document.time_zone, draft.now) is None:
            said = f"{name}: {schedule.cron!r} asks for a day that never comes"
            yield Finding(_place(draft, document, name, "cron"), said, "name a day that its months have")


@rule("ASY0201", "two schedules of one name", why="History tells them by their names: one would pass for the other.")
def same_name(draft: Draft) -> Iterator[Finding]:
    """Find names that schedules of another document have too."""
    first: dict[str, str] = {}
    for document, name, _ in _schedules(draft):
        if first.setdefault(name, document.name) != document.name:
            said = f"{name} is in the schedules {first[name]} already"
            yield Finding(_place(draft, document, name), said, "rename one of the two")


@rule("ASY0202", "a schedule for a pool that does not exist", why="It would come due, and do nothing.")
def strange_pool(draft: Draft) -> Iterator[Finding]:
    """Find pools of schedules that the inventory does not have."""
    pools = {host.pool for host in draft.hosts}
    for document, name, schedule in _schedules(draft) if draft.all_hosts_read else ():
        for number, pool in enumerate(schedule.pools):
            if pool not in pools:
                place = _place(draft, document, name, "pools", number)
                yield Finding(place, f"{name}: there is no pool {pool}", nearest(pool, pools))


@rule(
    "ASY0203",
    "a verification by a phase that loads nothing",
    why="Idle nodes would be loaded, and nothing would judge what came of it.",
    needs=(CheckCatalog,),
)
def idle_phase(draft: Draft) -> Iterator[Finding]:
    """Find phases of verifications without an active check."""
    loaded = {
        phase
        for one in draft.of(CheckCatalog).values()
        for check in one.checks
        if check.active
        for phase in check.phases
    }
    for document, name, schedule in _schedules(draft):
        wanted = schedule.verification.phase if schedule.verification else None
        if wanted and wanted not in loaded:
            place = _place(draft, document, name, "verification", "phase")
            yield Finding(place, f"{name}: no active check is declared for phase {wanted}", nearest(wanted, loaded))


@rule(
    "ASY0204",
    "idle verification of nodes without a scheduler",
    why="Nobody could say whether such a node is idle, nor make room for its users.",
)
def no_spare_time(draft: Draft) -> Iterator[Finding]:
    """Find verifications that name a pool in which no scheduler places jobs. All pools means all that have one."""
    without = _without_scheduler(draft)
    for document, name, schedule in _schedules(draft) if draft.all_hosts_read else ():
        for number, pool in enumerate(schedule.pools if schedule.does == "idle-verification" else ()):
            if pool in without:
                place = _place(draft, document, name, "pools", number)
                said = f"{name}: no scheduler places jobs on {few(without[pool])} of pool {pool}"
                yield Finding(place, said, "set the pool's variable `workloads`, or leave the pool out")


def _schedules(draft: Draft) -> Iterator[tuple[Schedules, str, Schedule]]:
    for document in draft.of(Schedules).values():
        for name, schedule in document.schedules.items():
            yield document, name, schedule


def _place(draft: Draft, document: Schedules, name: str, *path: str | int) -> Place:
    return draft.at(f"Schedules/{document.name}", "schedules", name, *path)


def _without_scheduler(draft: Draft) -> dict[str, list[str]]:
    """Return the nodes without a scheduler, by pool."""
    found: dict[str, list[str]] = {}
    for host in draft.hosts:
        if _is_alone(host):
            found.setdefault(host.pool, []).append(host.name)
    return found


def _is_alone(host: HostEntry) -> bool:
    return host.read is not None and host.read.workloads == "none"
