"""The content of a plan with its digest, and what differs between the reviewed plan and that of now.

File lines are left out, because they move when somebody edits the file above them. So are names of revisions.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from assay.model.errors import AssayError
from assay.model.text.lists import format_list, format_nodes

DIGEST_PREFIX = "sha256:"
PLAN_TRAILER = "Assay-Plan"
"""The trailer of a commit, and the line of a comment or a git note, that carries a digest."""
CONTENT_VERSION = 1
NEEDS_NOTHING = "has not left for the rollout, and keeps what it has"


@dataclass(frozen=True)
class PlanContent:
    """What happens to each node that the merge touches, in lines; the names of each wave, in order.

    `changes` are those that belong to no single node, such as a setting of the policy. `risks` are in words. `facts`
    say of each node that needs the change and is in no wave how it stands; None where the fleet's facts were missing.
    """

    nodes: Mapping[str, tuple[str, ...]]
    waves: tuple[tuple[str, ...], ...] = ()
    changes: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    facts: Mapping[str, str] | None = None

    @cached_property
    def digest(self) -> str:
        """`sha256:` and the hash of the canonical JSON."""
        plain = json.dumps(self.as_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return DIGEST_PREFIX + sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data, the same whatever the order of nodes and changes."""
        alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name in sorted(self.nodes):
            alike[tuple(sorted(set(self.nodes[name])))].append(name)
        return {
            **({} if self.facts is None else {"facts": dict(sorted(self.facts.items()))}),
            "version": CONTENT_VERSION,
            "nodes": [{"nodes": names, "what": list(changes)} for changes, names in alike.items()],
            "waves": [sorted(wave) for wave in self.waves],
            "changes": sorted(set(self.changes)),
            "risks": sorted(set(self.risks)),
        }


NO_CONTENT = PlanContent({})


def format_plan_line(digest: str, position: int) -> str:
    """Return the line that names a plan. `position`: how far the ledger was when its facts were read, 0 without."""
    return f"{PLAN_TRAILER}: {digest}{f' at {position}' if position else ''}"


def parse_plan_content(plain: Any) -> PlanContent:
    """Return the content of JSON data. Raises AssayError if it is none, or of another version."""
    try:
        if plain["version"] != CONTENT_VERSION:
            raise AssayError(f"the plan was stored by another version of assay ({plain['version']})")
        nodes = {str(name): tuple(map(str, group["what"])) for group in plain["nodes"] for name in group["nodes"]}
        waves = tuple(tuple(map(str, wave)) for wave in plain["waves"])
        facts = {str(name): str(text) for name, text in plain["facts"].items()} if "facts" in plain else None
        return PlanContent(nodes, waves, _read_words(plain["changes"]), _read_words(plain["risks"]), facts)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AssayError(f"the stored plan cannot be read: {error!r}") from None


def _read_words(words: Iterable[object]) -> tuple[str, ...]:
    return tuple(map(str, words))


MAX_ITEMS_SHOWN = 3


def list_content_differences(reviewed: PlanContent, present: PlanContent) -> tuple[str, ...]:
    """Return each difference as a line; none if, and only if, both have the same digest."""
    nodes = tuple(_list_node_differences(reviewed, present))
    return (
        *nodes,
        *_list_word_differences("risk", reviewed.risks, present.risks),
        *_list_word_differences("change", reviewed.changes, present.changes),
        *(() if nodes else _list_wave_differences(reviewed, present)),  # other nodes make other waves
        *_list_fact_differences(reviewed.facts, present.facts),
    )


def find_new_exits(reviewed: PlanContent, present: PlanContent) -> list[str]:
    """Return the nodes that leave service by the present plan, and did not by the reviewed one.

    One that has left for the rollout since then must get the change as the others do: that is no other plan.
    """
    expected = {name for name, standing in (reviewed.facts or {}).items() if standing == NEEDS_NOTHING}
    return sorted({*_number_waves(present)} - {*_number_waves(reviewed)} - expected)


def _list_fact_differences(reviewed: Mapping[str, str] | None, present: Mapping[str, str] | None) -> Iterator[str]:
    if reviewed is None or present is None:
        if reviewed is not present:
            missing, known = ("reviewed", "now") if reviewed is None else ("now", "reviewed")
            yield f"the fleet's facts: {missing} missing, {known} known"
        return
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in sorted({*reviewed, *present}):
        was, now = reviewed.get(name, "in a wave"), present.get(name, "in a wave")
        if was != now:
            alike[was, now].append(name)
    yield from (f"{format_nodes(names)}: reviewed was {was}; now {now}" for (was, now), names in alike.items())


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
            gone = [change for change in was if change not in now]
            come = [change for change in now if change not in was]
            yield f"{many}: reviewed was {_shorten(gone)}; now {_shorten(come)}"


def _read_sorted(content: PlanContent, name: str) -> tuple[str, ...] | None:
    return tuple(sorted(set(content.nodes[name]))) if name in content.nodes else None


def _shorten(words: Sequence[str]) -> str:
    return format_list(words, MAX_ITEMS_SHOWN) if words else "nothing"


def _list_word_differences(kind: str, reviewed: Sequence[str], present: Sequence[str]) -> Iterator[str]:
    yield from (f"{kind} not in the reviewed plan: {word}" for word in sorted({*present}.difference(reviewed)))
    yield from (f"{kind} no longer in the plan: {word}" for word in sorted({*reviewed}.difference(present)))


def _list_wave_differences(reviewed: PlanContent, present: PlanContent) -> Iterator[str]:
    was, now = _number_waves(reviewed), _number_waves(present)
    if was != now:
        moved = sorted(name for name in {*was, *now} if was.get(name) != now.get(name))
        yield f"waves: {len(reviewed.waves)} reviewed, {len(present.waves)} now; another wave for {format_nodes(moved)}"


def _number_waves(content: PlanContent) -> dict[str, int]:
    return {name: number for number, wave in enumerate(content.waves, 1) for name in wave}
