"""Renders machines that were seen: which node each is, what contradicts that, and which machines nobody has seen."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import TypeAdapter

from assay.model.text.text_lists import fold_names, format_count
from assay.tell.views.machine_list import VERDICT_WORDS, MachineList


def machines_as_json(listed: MachineList) -> str:
    """Return what `/api/v1/machines` answers."""
    return TypeAdapter(MachineList).dump_json(listed, indent=1).decode()


def format_machines(listed: MachineList) -> Iterator[str]:
    """Yield the lines: by verdict, the urgent ones first. Nodes that are as declared are only counted."""
    if not listed.machines:
        yield "no machine was seen yet: assay discover --scan 10.0.0.0/24"
    for verdict, words in VERDICT_WORDS.items():
        some = [one for one in listed.machines if one.verdict == verdict]
        if some:
            yield f"{format_count(len(some), 'machine')} {words}"
        for one in some if verdict != "node" else ():
            yield f"  {one.node or '?'}  {one.describe()}"
            yield from (f"      {problem}" for problem in one.problems)
    if listed.factory_logins:
        nodes = format_count(len(listed.factory_logins), "node")
        yield f"{nodes} may still have the factory login: end it with `assay discover take-over`"
        yield f"  {', '.join(fold_names(listed.factory_logins))}"
    if listed.not_seen:
        yield f"{format_count(len(listed.not_seen), 'machine')} expected and not seen yet"
        for unseen in listed.not_seen:
            yield f"  {unseen.node}  serial {unseen.serial}, {unseen.rack} U{unseen.u}, delivery {unseen.delivery}"
