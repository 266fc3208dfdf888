"""Takes in what agents send: what has come meanwhile is written together, and only then is any of it acknowledged.

Faults go to the ledger first, then how far each agent has delivered. Killed between the two, agents send again what was
taken, and their lines' numbers say that it is known.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue

from assay.controller.context import ControllerContext
from assay.controller.fleet_reload import CurrentContext
from assay.controller.ingest.fault_recording import record_agent_faults
from assay.controller.ingest.silent_nodes import open_last_seen, record_listening
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.observe.agent_delivery import ClockOffset, build_delivered_evidence, store_pushed_document
from assay.observe.last_seen import DeliveryPosition
from assay.web.agent_batch import AgentBatch

LISTENING_NOTE_S = 2.0
MAX_BATCHES_AT_ONCE = 200


@dataclass
class PendingBatch:
    """A batch, and who waits for it."""

    batch: AgentBatch
    taken: asyncio.Future[int]
    loop: asyncio.AbstractEventLoop

    def answer(self, outcome: int | Exception) -> None:
        """Tell who waits, from any thread: up to where it was taken, or why not."""
        self.loop.call_soon_threadsafe(self._answer, outcome)

    def _answer(self, outcome: int | Exception) -> None:
        if self.taken.done():
            return
        if isinstance(outcome, Exception):
            self.taken.set_exception(outcome)
        else:
            self.taken.set_result(outcome)


class BatchIntake:
    """One thread that writes, with the fleet as it is declared then. `tell` shows a line for what goes wrong here."""

    def __init__(self, current: CurrentContext, tell: Callable[[str], None] = lambda _: None) -> None:
        self._current, self._tell, self._heard = current, tell, open_last_seen(current.context)
        self._queue: SimpleQueue[PendingBatch | None] = SimpleQueue()
        self._positions = self._heard.positions()
        self._thread = threading.Thread(target=self._work, daemon=True, name="intake")
        self._listened = -LISTENING_NOTE_S

    def start(self) -> None:
        """Begin to take in."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what has come, and end."""
        self._queue.put(None)
        self._thread.join()

    def alive(self) -> bool:
        """Whether anything can be taken in."""
        return self._thread.is_alive()

    def positions(self) -> Mapping[str, DeliveryPosition]:
        """Return how far each agent has delivered."""
        return self._positions

    async def submit(self, batch: AgentBatch) -> int:
        """Return up to where the agent's items are taken, once they are. Raises Trouble."""
        loop = asyncio.get_running_loop()
        waiting = PendingBatch(batch, loop.create_future(), loop)
        self._queue.put(waiting)
        return await waiting.taken

    def _work(self) -> None:
        while True:
            try:
                first = self._queue.get(timeout=LISTENING_NOTE_S)
            except Empty:
                self._safely([])
                continue
            some = [first, *self._more()]
            self._safely([one for one in some if one])
            if None in some:
                return

    def _more(self) -> list[PendingBatch | None]:
        found: list[PendingBatch | None] = []
        while not self._queue.empty() and len(found) < MAX_BATCHES_AT_ONCE:
            found.append(self._queue.get())
        return found

    def _safely(self, some: Sequence[PendingBatch]) -> None:
        """Write what has come; whoever sent it is told when that fails, and sends it again."""
        try:
            context = self._current.refresh()
            self._listen(context)
            acked = self._write(context, [one.batch for one in some])
        except Exception as error:  # the thread must live; nothing was acknowledged
            self._tell(str(error) if isinstance(error, AssayError) else f"{type(error).__name__}: {error}")
            for one in some:
                one.answer(AssayError("what was sent cannot be written down now"))
            return
        for one in some:
            one.answer(acked[one.batch.node])

    def _listen(self, context: ControllerContext) -> None:
        if time.monotonic() - self._listened >= LISTENING_NOTE_S:
            record_listening(context)
            self._listened = time.monotonic()

    def _write(self, context: ControllerContext, batches: Sequence[AgentBatch]) -> dict[str, int]:
        """Write batches in their order: faults, readings, what agents lost, and how far they are."""
        now, positions = context.clock.now(), dict(self._positions)
        evidence: list[EvidenceDocument] = []
        looks: list[EvidenceDocument] = []
        lost: list[LedgerEntry] = []
        for batch in batches:
            before = positions.get(batch.node, DeliveryPosition())
            before = before if before.buffer_id == batch.life else DeliveryPosition(batch.life, 0, before.received)
            fresh = [one for one in batch.list_deliveries() if one.seq > before.acked]
            clocks = ClockOffset(batch.now, now)
            evidence += build_delivered_evidence(batch.node, fresh, clocks)
            looks += build_delivered_evidence(batch.node, [one for one in fresh if one.kind == "probe"][-1:], clocks)
            lost += _losses(batch, before, context.now)
            acked = max(before.acked, fresh[-1].seq if fresh else 0)
            state = batch.agent.model_dump(exclude={"words"})
            positions[batch.node] = replace(before, acked=acked, received=before.received + len(fresh), state=state)
        record_agent_faults(context, evidence)
        context.ledger.append(*lost)
        for look in looks:
            store_pushed_document(context.evidence, context.fleet, look.as_json())
        told = {batch.node: positions[batch.node] for batch in batches}
        if told:
            self._heard.record_delivery(told, now)
        self._positions = positions
        return {node: position.acked for node, position in told.items()}


def _losses(batch: AgentBatch, before: DeliveryPosition, at: str) -> Iterator[LedgerEntry]:
    """Yield an entry where an agent has lost more than it had: its buffer was full, or the kernel's was overwritten."""
    said = batch.agent
    losses = {**said.dropped, "overwritten": said.missed}
    known = {**before.state.get("dropped", {}), "overwritten": before.state.get("missed", 0)}
    more = {name: count - known.get(name, 0) for name, count in losses.items() if count > known.get(name, 0)}
    if more:
        reason = "lost before they could be delivered: " + ", ".join(f"{count} {name}" for name, count in more.items())
        ident = derive_id("agent.lost", batch.node, batch.life, *(f"{name} {losses[name]}" for name in sorted(losses)))
        yield LedgerEntry(ident, at, "observe.failed", batch.node, {"channel": "agent", "reason": reason})
