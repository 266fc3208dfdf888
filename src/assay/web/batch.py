"""A batch of an agent's, read strictly: whoever sends it is known, but what it sends is believed for its form only."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from assay.model.evidence import canonical
from assay.observe.delivered import Delivered

MOST_ITEMS = 5000
DEEPEST = 40
Text = Annotated[str, Field(max_length=16384)]
Number = Annotated[int, Field(ge=0, lt=2**62)]
Seconds = Annotated[float, Field(ge=0, lt=1e10, allow_inf_nan=False)]


STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


class Refused(Exception):
    """Why a batch is not taken, in plain words that repeat nothing of it but the place."""


class Plain(BaseModel):
    """A part of a batch: nothing is coerced, nothing strange is passed on."""

    model_config = STRICT


class Line(TypedDict):
    """A kernel line, or an NVML event in its words."""

    __pydantic_config__ = STRICT  # type: ignore[misc]  # as pydantic has it
    boot: Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{0,64}$")]
    seq: Number
    t_s: Seconds
    text: Text


class LineItem(TypedDict):
    """A line in its place. Thousands come at once: plain mappings take a third of the time of models."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    seq: Number
    kind: Literal["kernel", "nvml"]
    at: Seconds
    body: Line


class ProbeItem(TypedDict):
    """All that the probe read."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    seq: Number
    kind: Literal["probe"]
    at: Seconds
    body: dict[str, Any]


class AgentState(Plain):
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


class Batch(Plain):
    """See assay.agent.push."""

    schema_: Literal["assay.agent/1"] = Field(alias="schema")
    node: str = Field(max_length=255)
    life: str = Field(pattern=r"^[0-9a-f-]{36}$")
    after: Number
    now: Seconds
    items: list[Annotated[LineItem | ProbeItem, Field(discriminator="kind")]] = Field(max_length=MOST_ITEMS)
    agent: AgentState

    def delivered(self) -> list[Delivered]:
        """Return the items as what was delivered."""
        return [Delivered(one["seq"], one["kind"], one["at"], one["body"]) for one in self.items]


def read(body: bytes, node: str) -> Batch:
    """Return the batch that `node` sent. Raises Refused."""
    try:
        batch = Batch.model_validate(from_json(body, allow_inf_nan=False))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        raise Refused(f"{'.'.join(map(str, first['loc'])) or 'the batch'}: {first['msg']}"[:300]) from None
    except (ValueError, RecursionError):
        raise Refused("not a JSON document") from None
    if batch.node != node:
        raise Refused("a node speaks for itself only")
    numbers = [one["seq"] for one in batch.items]
    if any(here >= there for here, there in pairwise(numbers)):
        raise Refused("the items are not in their order")
    _must_be_kept(batch)
    return batch


def _must_be_kept(batch: Batch) -> None:
    """Refuse readings that could not be kept as evidence."""
    for one in batch.items:
        if one["kind"] == "probe":
            try:
                canonical(one["body"])
            except (ValueError, RecursionError):
                raise Refused(f"item {one['seq']}: these readings cannot be kept") from None
            if _depth(one["body"]) > DEEPEST:
                raise Refused(f"item {one['seq']}: these readings are nested too deep")


def _depth(tree: Any) -> int:
    below = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return 1 + max(map(_depth, below), default=0)
