"""Asks each scheduler of the inventory about its nodes, as a pass would: `assay check --schedulers`. Only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assay.adapters.scheduler_adapter import SchedulerAdapter, load_scheduler_adapter
from assay.adapters.status_readings import group_by_scheduler
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.text.text_lists import fold_names, format_count, format_list


@dataclass(frozen=True, slots=True)
class SchedulerAnswer:
    """One scheduler's answer about its `nodes`; `trouble` is "" if it knows all of them."""

    nodes: tuple[str, ...]
    trouble: str = ""

    def __str__(self) -> str:
        names = format_list(fold_names(self.nodes), 4)
        return f"{names}: {self.trouble or 'the scheduler says who uses ' + format_count(len(self.nodes), 'node')}"


def ask_schedulers(
    fleet: Fleet, workloads: Callable[[Node], SchedulerAdapter] = load_scheduler_adapter
) -> Iterator[SchedulerAnswer]:
    """Yield the answer of each scheduler, and of nodes that it does not know."""
    groups = group_by_scheduler(fleet.nodes.values(), workloads)
    for node, reason in groups.errors.items():
        yield SchedulerAnswer((node,), reason)
    for scheduler, names in groups.nodes.items():
        try:
            known = scheduler.read_statuses(names)
        except AssayError as error:
            yield SchedulerAnswer(tuple(names), str(error) + (f"\n  → {error.fix}" if error.fix else ""))
            continue
        if answered := tuple(name for name in names if name in known):
            yield SchedulerAnswer(answered)
        if strangers := tuple(name for name in names if name not in known):
            fix = "give the node the same name in the inventory and in its scheduler"
            yield SchedulerAnswer(strangers, f"the scheduler does not know them\n  → {fix}")
