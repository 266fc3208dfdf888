"""A batch of an agent's, read strictly: whoever sends it is known, but what it sends is believed for its form only."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from assay.model.evidence import encode_canonical_json
from assay.observe.agent_delivery import DeliveredItem

MAX_BATCH_ITEMS = 5000
MAX_READING_DEPTH = 40
Text = Annotated[str, Field(max_length=16384)]
Number = Annotated[int, Field(ge=0, lt=2**62)]
Seconds = Annotated[float, Field(ge=0, lt=1e10, allow_inf_nan=False)]


STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


class BatchRefused(Exception):
    """Why a batch is not taken, in plain words that repeat nothing of it but the place."""


class StrictPayload(BaseModel):
    """A part of a batch: nothing is coerced, nothing strange is passed on."""

    model_config = STRICT


class AgentLogLine(TypedDict):
    """A kernel line, or an NVML event in its words."""

    __pydantic_config__ = STRICT  # type: ignore[misc]  # as pydantic has it
    boot: Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{0,64}$")]
    seq: Number
    t_s: Seconds
    text: Text


class LogLineItem(TypedDict):
    """A line in its place. Thousands come at once: plain mappings take a third of the time of models."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    seq: Number
    kind: Literal["kernel", "nvml"]
    at: Seconds
    body: AgentLogLine


class ProbeItem(TypedDict):
    """All that the probe read."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    seq: Number
    kind: Literal["probe"]
    at: Seconds
    body: dict[str, Any]


class AgentState(StrictPayload):
    """What the agent says of itself."""

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
    """See assay.agent.batch_sender."""

    schema_: Literal["assay.agent/1"] = Field(alias="schema")
    node: str = Field(max_length=255)
    life: str = Field(pattern=r"^[0-9a-f-]{36}$")
    after: Number
    now: Seconds
    items: list[Annotated[LogLineItem | ProbeItem, Field(discriminator="kind")]] = Field(max_length=MAX_BATCH_ITEMS)
    agent: AgentState

    def list_deliveries(self) -> list[DeliveredItem]:
        """Return the items as what was delivered."""
        return [DeliveredItem(one["seq"], one["kind"], one["at"], one["body"]) for one in self.items]


def parse_batch(body: bytes, node: str) -> AgentBatch:
    """Return the batch that `node` sent. Raises Refused."""
    try:
        batch = AgentBatch.model_validate(from_json(body, allow_inf_nan=False))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        raise BatchRefused(f"{'.'.join(map(str, first['loc'])) or 'the batch'}: {first['msg']}"[:300]) from None
    except (ValueError, RecursionError):
        raise BatchRefused("not a JSON document") from None
    if batch.node != node:
        raise BatchRefused("a node speaks for itself only")
    numbers = [one["seq"] for one in batch.items]
    if any(here >= there for here, there in pairwise(numbers)):
        raise BatchRefused("the items are not in their order")
    _check_storable(batch)
    return batch


def _check_storable(batch: AgentBatch) -> None:
    """Refuse readings that could not be kept as evidence."""
    for one in batch.items:
        if one["kind"] == "probe":
            try:
                encode_canonical_json(one["body"])
            except (ValueError, RecursionError):
                raise BatchRefused(f"item {one['seq']}: these readings cannot be kept") from None
            if _depth(one["body"]) > MAX_READING_DEPTH:
                raise BatchRefused(f"item {one['seq']}: these readings are nested too deep")


def _depth(tree: Any) -> int:
    below = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return 1 + max(map(_depth, below), default=0)
