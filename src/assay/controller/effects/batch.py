"""Cordons and uncordons of many nodes in one go: intents, one order to each scheduler, one reading, ends.

Both may be done twice without harm and are proved by one reading, so they need no workflow: what a killed process left
is found in the ledger and done in the next batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from assay.actions import cordon, uncordon
from assay.actions.action import Context, Intent, Verification
from assay.actions.workloads import Standing, Workloads
from assay.controller.effects import journal
from assay.controller.effects.effect import Deed, by, earned, said, with_trouble, words
from assay.model.entry import Entry

AT_ONCE = 16
JUDGED = {"cordon": cordon.judged, "uncordon": uncordon.judged}


@dataclass(frozen=True, slots=True)
class Read:
    """What one reading of all schedulers told: how nodes stand, and of the others why nobody can say."""

    standing: Mapping[str, Standing]
    silent: Mapping[str, str]


def carry_many(ctx: Context, wishes: Sequence[tuple[Intent, journal.Effect | None]]) -> None:
    """Carry these effects as far as they get, each with what the ledger has of it; all are of `IN_ONE_GO`."""
    intents = {intent.node: intent for intent, _ in wishes}
    known = {intent.node: before for intent, before in wishes}
    schedulers = _by_scheduler(ctx, intents)
    seen = _read(schedulers)
    _journal(ctx, [intent for intent, before in wishes if before is None], seen)
    todo = [intent for intent in intents.values() if not _told(intent, seen).done]
    deeds = _do(schedulers, todo)
    seen = _read(schedulers) if todo else seen
    ends = []
    for intent in intents.values():
        ends += _ends(ctx, intent, known[intent.node], deeds.get(intent.node), _told(intent, seen))
    ctx.ledger.append(*ends)


def _by_scheduler(ctx: Context, nodes: Iterable[str]) -> dict[Workloads | str, list[str]]:
    """Return the nodes of each scheduler; of those without one that can be asked, by what is wrong."""
    found: dict[Workloads | str, list[str]] = defaultdict(list)
    for node in nodes:
        try:
            found[ctx.scheduler(node)].append(node)
        except Exception as error:  # whatever it is, its other nodes go on
            found[words(error)].append(node)
    return found


def _read(schedulers: Mapping[Workloads | str, Collection[str]]) -> Read:
    standing: dict[str, Standing] = {}
    silent: dict[str, str] = {}
    for scheduler, nodes in schedulers.items():
        try:
            told = {} if isinstance(scheduler, str) else scheduler.standings(nodes)
            wrong = scheduler if isinstance(scheduler, str) else "the scheduler does not know this node"
        except Exception as error:  # whatever it is, it is no proof
            told, wrong = {}, words(error)
        standing |= told
        silent |= {node: wrong for node in nodes if node not in told}
    return Read(standing, silent)


def _journal(ctx: Context, intents: Sequence[Intent], seen: Read) -> None:
    at = ctx.clock.now().isoformat()
    for intent in intents:
        ctx.tell(f"{intent.node}: {intent.action} …")
    ctx.ledger.append(*(journal.intent_entry(one, at, _before(one.node, seen), by(ctx, one.action)) for one in intents))


def _before(node: str, seen: Read) -> dict[str, str]:
    return {"cordon": seen.standing[node].cordon} if node in seen.standing else {"unread": seen.silent[node]}


def _do(schedulers: Mapping[Workloads | str, Collection[str]], todo: Sequence[Intent]) -> dict[str, Deed]:
    """Do it; return by node what the doing says of itself."""
    wanted = {intent.node: intent for intent in todo}
    deeds: dict[str, Deed] = {}
    for scheduler, nodes in schedulers.items():
        if not isinstance(scheduler, str):
            deeds |= _done_by(scheduler, [wanted[node] for node in nodes if node in wanted])
    return deeds


def _done_by(scheduler: Workloads, intents: Sequence[Intent]) -> dict[str, Deed]:
    cordons = {intent.node: intent.reason for intent in intents if intent.action == "cordon"}
    deeds = dict.fromkeys(cordons, _try(lambda: scheduler.cordon_many(cordons))) if cordons else {}
    others = [intent.node for intent in intents if intent.action == "uncordon"]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        tries = threads.map(lambda node: _try(lambda: scheduler.uncordon(node)), others)
        return deeds | dict(zip(others, tries, strict=True))


def _try(deed: Callable[[], None]) -> Deed:
    try:
        deed()
    except Exception as error:  # whatever it is, the world is read afterwards and decides
        return Deed(words(error))
    return Deed()


def _told(intent: Intent, seen: Read) -> Verification:
    if intent.node not in seen.standing:
        return Verification(None, seen.silent[intent.node])
    return JUDGED[intent.action](seen.standing[intent.node])


def _ends(
    ctx: Context, intent: Intent, known: journal.Effect | None, deed: Deed | None, told: Verification
) -> list[Entry]:
    """Return the lines that end an effect, or leave it open."""
    wrong = deed.wrong if deed else ""
    told = with_trouble(told, wrong)
    ctx.tell(f"{intent.node}: {intent.action}: {said(told)}")
    tried = known.tried if known else 0
    done = [journal.done_entry(intent, ctx.clock.now().isoformat(), wrong, tried)] if deed else []
    return [*done, earned(ctx, intent, told, known, again=bool(wrong))]
