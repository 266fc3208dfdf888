"""Parses the batches of agents strictly, and writes them: one thread writes all that wait, and then acknowledges them.

Faults go to the ledger before the agents' positions. If the process dies in between, agents send the same items again,
and their sequence numbers show which ones are known.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from assay.act.ingest.fault_recording import record_agent_faults
from assay.act.ingest.right_clock import find_wrong_clock, read_agent_clocks
from assay.act.ingest.silent_nodes import open_last_seen, record_listening
from assay.act.loop.context import ControllerContext
from assay.act.loop.fleet_reload import CurrentContext
from assay.model.entries.faults import ObservationFailedEntry
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.outside_documents import describe_mistakes
from assay.observe.last_seen import CLOCK_OFF, DeliveryPosition
from assay.observe.transports.push import ClockOffset, DeliveredItem, build_delivered_evidence, store_pushed_document

MAX_BATCH_ITEMS = 5000
MAX_READING_DEPTH = 40
Text = Annotated[str, Field(max_length=16384)]
Number = Annotated[int, Field(ge=0, lt=2**62)]
Seconds = Annotated[float, Field(ge=0, lt=1e10, allow_inf_nan=False)]


STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)
LISTENING_NOTE_S, CLOCKS_LOOK_S = 2.0, 60.0
MAX_BATCHES_AT_ONCE = 200
GATHER_S = 0.02
"""So long the thread waits for more batches after the first: a transaction costs as much as 60 batches in one."""


class BatchRefused(Exception):
    """Why a batch is refused. The text repeats nothing of the batch but the path of the entry."""


class StrictPayload(BaseModel):
    """A part of a batch: values are not converted, unknown keys are refused."""

    model_config = STRICT


class AgentLogLine(TypedDict):
    """A kernel line, or an NVML event as text. `t_s`: seconds since boot. `level`: the kernel's, 0 is the worst."""

    __pydantic_config__ = STRICT  # type: ignore[misc]  # pydantic's way to configure a TypedDict
    boot: Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{0,64}$")]
    seq: Number
    t_s: Seconds
    text: Text
    level: NotRequired[Annotated[int, Field(ge=0, le=7)]]


class LogLineItem(TypedDict):
    """One line with its sequence number. A mapping: validating thousands takes a third of the time of models."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    seq: Number
    kind: Literal["kernel", "nvml"]
    at: Seconds
    body: AgentLogLine


class ProbeItem(TypedDict):
    """One document of the probe."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    seq: Number
    kind: Literal["probe"]
    at: Seconds
    body: dict[str, Any]


class AgentState(StrictPayload):
    """The agent's own state: its costs, its buffer, what it lost, and the kernel words it searches for."""

    cpu_s: Seconds
    rss_bytes: Number
    buffered: Number
    buffered_bytes: Number
    dropped: dict[Annotated[str, Field(max_length=32)], Number] = Field(max_length=16)
    missed: Number
    log: Text
    nvml: Text
    words: list[Text] = Field(max_length=4096)


class AgentBatch(StrictPayload):
    """One batch. `life` identifies the agent's buffer, `after` the last acknowledged item (see agent.batch_sender).

    `machine`: the serial number of the machine that the agent runs on, "" if nobody told it.
    """

    schema_: Literal["assay.agent/1"] = Field(alias="schema")
    node: str = Field(max_length=255)
    life: str = Field(pattern=r"^[0-9a-f-]{36}$")
    after: Number
    now: Seconds
    items: list[Annotated[LogLineItem | ProbeItem, Field(discriminator="kind")]] = Field(max_length=MAX_BATCH_ITEMS)
    agent: AgentState
    machine: str = Field(default="", max_length=255)

    def list_deliveries(self) -> list[DeliveredItem]:
        """Return the items of the batch."""
        return [DeliveredItem(item["seq"], item["kind"], item["at"], item["body"]) for item in self.items]


def parse_batch(body: bytes, node: str) -> AgentBatch:
    """Return the batch that `node` sent. Raises BatchRefused."""
    try:
        batch = AgentBatch.model_validate(from_json(body, allow_inf_nan=False))
    except ValidationError as error:
        raise BatchRefused(describe_mistakes(error, "the batch")[:600]) from None
    except (ValueError, RecursionError):
        raise BatchRefused("not a JSON document") from None
    if batch.node != node:
        raise BatchRefused("a node speaks for itself only")
    numbers = [item["seq"] for item in batch.items]
    if any(number >= following for number, following in pairwise(numbers)):
        raise BatchRefused("the items are not in their order")
    _check_storable(batch)
    return batch


def _check_storable(batch: AgentBatch) -> None:
    """Refuse readings that cannot be stored as evidence."""
    for item in batch.items:
        if item["kind"] == "probe":
            try:
                encode_canonical_json(item["body"])
            except (ValueError, RecursionError):
                raise BatchRefused(f"item {item['seq']}: these readings cannot be kept") from None
            if _measure_depth(item["body"]) > MAX_READING_DEPTH:
                raise BatchRefused(f"item {item['seq']}: these readings are nested too deep")


def _measure_depth(tree: Any) -> int:
    children = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return 1 + max(map(_measure_depth, children), default=0)


class WrittenBatch(NamedTuple):
    """The sequence number of the last item written, how many ledger entries the batch has cost, and the last entry."""

    acked: int
    entries: int
    last_entry: int


@dataclass
class PendingBatch:
    """A batch, and the future of its acknowledgement."""

    batch: AgentBatch
    acknowledged: asyncio.Future[WrittenBatch]
    loop: asyncio.AbstractEventLoop

    def resolve(self, result: WrittenBatch | Exception) -> None:
        """Resolve the future, from any thread."""
        self.loop.call_soon_threadsafe(self._resolve, result)

    def _resolve(self, result: WrittenBatch | Exception) -> None:
        if self.acknowledged.done():
            return
        if isinstance(result, Exception):
            self.acknowledged.set_exception(result)
        else:
            self.acknowledged.set_result(result)


class BatchWriter:
    """One thread that writes batches, with the current fleet. `report` shows a line to people when writing fails."""

    def __init__(self, current: CurrentContext, report: Callable[[str], None] = lambda _: None) -> None:
        self._current, self._report, self._last_seen = current, report, open_last_seen(current.context)
        self._queue: SimpleQueue[PendingBatch | None] = SimpleQueue()
        self._positions = self._last_seen.positions()
        self._thread = threading.Thread(target=self._work, daemon=True, name="intake")
        self._listening_recorded, self._clocks_looked_at = -LISTENING_NOTE_S, time.monotonic()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write everything that is waiting, and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def positions(self) -> Mapping[str, DeliveryPosition]:
        """Return how far each agent has delivered."""
        return self._positions

    async def submit(self, batch: AgentBatch) -> WrittenBatch:
        """Wait until a batch is written; return the sequence number up to which items are written, and the cost.

        Raises AssayError if it cannot be written now.
        """
        loop = asyncio.get_running_loop()
        pending = PendingBatch(batch, loop.create_future(), loop)
        self._queue.put(pending)
        return await pending.acknowledged

    def _work(self) -> None:
        while True:
            try:
                first = self._queue.get(timeout=LISTENING_NOTE_S)
            except Empty:
                self._write_pending([])
                continue
            time.sleep(GATHER_S)
            waiting = [first]
            while not self._queue.empty() and len(waiting) <= MAX_BATCHES_AT_ONCE:
                waiting.append(self._queue.get())
            self._write_pending([pending for pending in waiting if pending])
            if None in waiting:
                return

    def _write_pending(self, waiting: Sequence[PendingBatch]) -> None:
        """Write batches and acknowledge them. If that fails, their agents get an error and send them again."""
        try:
            context = self._current.refresh()
            if time.monotonic() - self._listening_recorded >= LISTENING_NOTE_S:
                record_listening(context)
                self._listening_recorded = time.monotonic()
                if time.monotonic() - self._clocks_looked_at >= CLOCKS_LOOK_S:
                    self._clocks_looked_at = time.monotonic()
                    if problem := find_wrong_clock(read_agent_clocks(context).values()):
                        self._report(f"{problem}: set it by a time server; what they deliver has wrong times till then")
            acked = self._write(context, [pending.batch for pending in waiting])
        except Exception as error:  # the thread must go on; nothing was acknowledged
            self._report(str(error) if isinstance(error, AssayError) else f"{type(error).__name__}: {error}")
            for pending in waiting:
                pending.resolve(AssayError("the batch cannot be written now"))
            return
        for pending in waiting:
            pending.resolve(acked[pending.batch.node])

    def _write(self, context: ControllerContext, batches: Sequence[AgentBatch]) -> dict[str, WrittenBatch]:
        """Write faults, losses, readings and positions of batches, in this order; return the new positions by node."""
        now, positions = context.clock.now(), dict(self._positions)
        evidence: list[EvidenceDocument] = []
        probe_documents: list[EvidenceDocument] = []
        losses: list[LedgerEntry] = []
        for batch in batches:
            before = positions.get(batch.node, DeliveryPosition())
            before = before if before.buffer_id == batch.life else DeliveryPosition(batch.life, 0, before.received)
            fresh = [item for item in batch.list_deliveries() if item.seq > before.acked]
            clocks = ClockOffset(batch.now, now)
            last_probe = [item for item in fresh if item.kind == "probe"][-1:]
            evidence += build_delivered_evidence(batch.node, fresh, clocks, batch.machine)
            probe_documents += build_delivered_evidence(batch.node, last_probe, clocks)
            losses += _make_loss_entries(batch, before, context.now)
            acked = max(before.acked, fresh[-1].seq if fresh else 0)
            state = batch.agent.model_dump(exclude={"words"}) | {CLOCK_OFF: round(batch.now - now.timestamp(), 1)}
            positions[batch.node] = replace(before, acked=acked, received=before.received + len(fresh), state=state)
        added = [*record_agent_faults(context, evidence), *losses]
        context.ledger.append(*losses)
        head = context.ledger.head()
        for document in probe_documents:
            known = document.after_entry  # of another ledger, if it is higher than ours
            bounded = replace(document, after_entry=None if known is None else min(known, head))
            store_pushed_document(context.evidence, context.fleet, bounded.as_json())
        updated = {batch.node: positions[batch.node] for batch in batches}
        if updated:
            self._last_seen.record_delivery(updated, now)
        self._positions = positions
        cost = Counter(entry.node for entry in added)
        return {node: WrittenBatch(position.acked, cost[node], head) for node, position in updated.items()}


def _make_loss_entries(batch: AgentBatch, before: DeliveryPosition, at: str) -> Iterator[LedgerEntry]:
    """Yield an entry if an agent lost more items since: its buffer was full, or the kernel overwrote its log."""
    state = batch.agent
    losses = {**state.dropped, "overwritten": state.missed}
    known = {**before.state.get("dropped", {}), "overwritten": before.state.get("missed", 0)}
    more = {name: count - known.get(name, 0) for name, count in losses.items() if count > known.get(name, 0)}
    if more:
        reason = "lost before they could be delivered: " + ", ".join(f"{count} {name}" for name, count in more.items())
        ident = derive_id("agent.lost", batch.node, batch.life, *(f"{name} {losses[name]}" for name in sorted(losses)))
        yield ObservationFailedEntry("agent", reason).make_entry(ident, at, batch.node)
