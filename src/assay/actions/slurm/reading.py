"""What sinfo and squeue print as JSON, as far as a node's lifecycle needs it.

Field names: Slurm's openapi v0.0.38 (22.05), whose states are a word and a list of flags and whose times are numbers.
Newer versions make lists of states and objects `{"set", "infinite", "number"}` of numbers: both are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from assay.actions.slurm.hosts import hosts
from assay.model.errors import Trouble

NONE = 2**32 - 2
"""Slurm writes "not set" and "without end" as the largest numbers of 32 and of 64 bits, from here on."""


def _number(value: Any) -> Any:
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") and not value.get("infinite") else 0
    return 0 if not value or (isinstance(value, int | float) and not 0 <= value < NONE) else value


def _words(value: Any) -> Any:
    return [str(word).upper() for word in ([value] if isinstance(value, str) else value or ())]


Number = Annotated[int, BeforeValidator(_number)]
Text = Annotated[str, BeforeValidator(lambda value: value or "")]
Unquoted = Annotated[str, BeforeValidator(lambda value: (value or "").strip('"'))]
"""scontrol takes the quotes around a comment for its own words, but those around a reason for quotes (22.05)."""
Words = Annotated[frozenset[str], BeforeValidator(_words)]
Hosts = Annotated[tuple[str, ...], BeforeValidator(lambda value: hosts(value or ""))]


class _Read(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class SlurmNode(_Read):
    """A node as Slurm has it. `changed` is when its reason was set, in seconds since 1970."""

    name: str
    state: Words
    state_flags: Words = frozenset()
    reason: Text = ""
    reason_set_by_user: Text = ""
    changed: Number = Field(default=0, alias="reason_changed_at")
    comment: Unquoted = ""

    @property
    def states(self) -> frozenset[str]:
        """Its state and all flags of it, in capitals."""
        return self.state | self.state_flags


class SlurmJob(_Read):
    """A job as Slurm has it. Times are seconds since 1970, 0 where there is none."""

    job_id: int
    name: Text = ""
    user_name: Text = ""
    job_state: Words
    nodes: Hosts = ()
    start_time: Number = 0
    end_time: Number = 0
    preempt_time: Number = 0
    requeue: bool = False
    batch_flag: bool = False

    @property
    def since(self) -> str:
        """When it began, ISO 8601 UTC."""
        return moment(self.start_time)


Kind = TypeVar("Kind", bound=_Read)


def nodes_of(document: Mapping[str, Any]) -> dict[str, SlurmNode]:
    """Return the nodes of `sinfo --json` by name. Raises Trouble where it cannot be understood."""
    return {node.name: node for node in _read(document, "nodes", SlurmNode.model_validate)}


def jobs_of(document: Mapping[str, Any]) -> list[SlurmJob]:
    """Return the jobs of `squeue --json`, also those that are over. Raises Trouble as above."""
    return _read(document, "jobs", SlurmJob.model_validate)


def moment(seconds: int) -> str:
    """Return seconds since 1970 as ISO 8601 UTC, "" for none."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else ""


def _read(document: Mapping[str, Any], field: str, one: Callable[[Any], Kind]) -> list[Kind]:
    try:
        return [one(entry) for entry in document[field]]
    except (AttributeError, KeyError, TypeError, ValidationError, ValueError) as error:
        said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else repr(error)
        raise Trouble(f"Slurm's JSON of {field} is not understood: {said}", where="Slurm") from None
