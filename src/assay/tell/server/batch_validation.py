"""Parses a batch of an agent strictly: the sender is known, but the content is trusted only if its form is right."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from assay.model.evidence import encode_canonical_json
from assay.observe.transports.evidence_from_agents import DeliveredItem

MAX_BATCH_ITEMS = 5000
MAX_READING_DEPTH = 40
Text = Annotated[str, Field(max_length=16384)]
Number = Annotated[int, Field(ge=0, lt=2**62)]
Seconds = Annotated[float, Field(ge=0, lt=1e10, allow_inf_nan=False)]


STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


class BatchRefused(Exception):
    """Why a batch is refused. The text repeats nothing of the batch but the path of the entry."""


class StrictPayload(BaseModel):
    """A part of a batch: values are not converted, unknown keys are refused."""

    model_config = STRICT


class AgentLogLine(TypedDict):
    """A kernel line, or an NVML event as text. `t_s`: seconds since boot."""

    __pydantic_config__ = STRICT  # type: ignore[misc]  # pydantic's way to configure a TypedDict
    boot: Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{0,64}$")]
    seq: Number
    t_s: Seconds
    text: Text


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
    """One batch. `life` identifies the agent's buffer, `after` the last acknowledged item (see agent.batch_sender)."""

    schema_: Literal["assay.agent/1"] = Field(alias="schema")
    node: str = Field(max_length=255)
    life: str = Field(pattern=r"^[0-9a-f-]{36}$")
    after: Number
    now: Seconds
    items: list[Annotated[LogLineItem | ProbeItem, Field(discriminator="kind")]] = Field(max_length=MAX_BATCH_ITEMS)
    agent: AgentState

    def list_deliveries(self) -> list[DeliveredItem]:
        """Return the items of the batch."""
        return [DeliveredItem(item["seq"], item["kind"], item["at"], item["body"]) for item in self.items]


def parse_batch(body: bytes, node: str) -> AgentBatch:
    """Return the batch that `node` sent. Raises BatchRefused."""
    try:
        batch = AgentBatch.model_validate(from_json(body, allow_inf_nan=False))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        raise BatchRefused(f"{'.'.join(map(str, first['loc'])) or 'the batch'}: {first['msg']}"[:300]) from None
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
