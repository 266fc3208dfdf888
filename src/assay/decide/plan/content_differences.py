"""Says what differs between the plan that was reviewed and the plan of now, node by node, in lines for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from assay.decide.plan.plan_content import PlanContent
from assay.model.text.text_lists import format_list, format_nodes

MAX_ITEMS_SHOWN = 3


def list_content_differences(reviewed: PlanContent, present: PlanContent) -> tuple[str, ...]:
    """Return each difference as a line; none if, and only if, both have the same digest."""
    nodes = tuple(_list_node_differences(reviewed, present))
    return (
        *nodes,
        *_list_word_differences("risk", reviewed.risks, present.risks),
        *_list_word_differences("change", reviewed.changes, present.changes),
        *(() if nodes else _list_wave_differences(reviewed, present)),  # other nodes make other waves
    )


def _list_node_differences(reviewed: PlanContent, present: PlanContent) -> Iterator[str]:
    """Yield a line for all nodes that differ in the same way."""
    alike: dict[tuple[tuple[str, ...] | None, tuple[str, ...] | None], list[str]] = defaultdict(list)
    for name in sorted({*reviewed.nodes, *present.nodes}):
        was, now = _read_sorted(reviewed, name), _read_sorted(present, name)
        if was != now:
            alike[was, now].append(name)
    for (was, now), names in alike.items():
        many = format_nodes(names)
        if was is None:
            yield f"{many}: not in the reviewed plan; now {_shorten(now or ())}"
        elif now is None:
            yield f"{many}: no longer in the plan; reviewed was {_shorten(was)}"
        else:
            gone, come = [one for one in was if one not in now], [one for one in now if one not in was]
            yield f"{many}: reviewed was {_shorten(gone)}; now {_shorten(come)}"


def _read_sorted(content: PlanContent, name: str) -> tuple[str, ...] | None:
    return tuple(sorted(set(content.nodes[name]))) if name in content.nodes else None


def _shorten(words: Sequence[str]) -> str:
    return format_list(words, MAX_ITEMS_SHOWN) if words else "nothing"


def _list_word_differences(what: str, reviewed: Sequence[str], present: Sequence[str]) -> Iterator[str]:
    yield from (f"{what} not in the reviewed plan: {one}" for one in sorted(present) if one not in set(reviewed))
    yield from (f"{what} no longer in the plan: {one}" for one in sorted(reviewed) if one not in set(present))


def _list_wave_differences(reviewed: PlanContent, present: PlanContent) -> Iterator[str]:
    was, now = _number_waves(reviewed), _number_waves(present)
    if was != now:
        moved = sorted(name for name in {*was, *now} if was.get(name) != now.get(name))
        yield f"waves: {len(reviewed.waves)} reviewed, {len(present.waves)} now; another wave for {format_nodes(moved)}"


def _number_waves(content: PlanContent) -> dict[str, int]:
    return {name: number for number, wave in enumerate(content.waves, 1) for name in wave}
