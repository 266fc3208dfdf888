"""The JSON of sinfo and squeue, and Slurm's short form of many host names (`gpu[01-03,7],login1`).

Field names are those of Slurm's openapi v0.0.38 (22.05). There a state is a word and a list of flags, and a time is a
number. Newer versions write lists of states, and numbers as `{"set", "infinite", "number"}`. Both forms are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import product
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from assay.model.errors import AssayError

_ENTRY = re.compile(r"(?:[^,\[\]]|\[[^\]]*\])+")
_PART = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
MAX_HOST_RANGE = 1_000_000


def expand_host_list(text: str) -> tuple[str, ...]:
    """Return each host name of a list, in its order. Raises ValueError for ranges of over MAX_HOST_RANGE hosts."""
    return tuple(name for entry in _ENTRY.findall(text) for name in _expand_entry(entry))


def _expand_entry(entry: str) -> Iterator[str]:
    parts = [tuple(_expand_range(inside)) if inside else (plain,) for inside, plain in _PART.findall(entry)]
    return ("".join(chosen) for chosen in product(*parts))


def _expand_range(inside: str) -> Iterator[str]:
    for item in inside.split(","):
        first, dash, last = item.partition("-")
        if not dash:
            yield first
        elif int(last) - int(first) > MAX_HOST_RANGE:
            raise ValueError(f"{item} is no range of hosts")
        else:
            yield from (f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1))


UNSET_FROM = 2**32 - 2
"""Slurm writes "not set" and "infinite" as the largest numbers of 32 and of 64 bits, from here on."""


def _parse_number(value: Any) -> Any:
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") and not value.get("infinite") else 0
    return 0 if not value or (isinstance(value, int | float) and not 0 <= value < UNSET_FROM) else value


def _parse_states(value: Any) -> Any:
    return [str(word).upper() for word in ([value] if isinstance(value, str) else value or ())]


SlurmNumber = Annotated[int, BeforeValidator(_parse_number)]
SlurmText = Annotated[str, BeforeValidator(lambda value: value or "")]
UnquotedText = Annotated[str, BeforeValidator(lambda value: (value or "").strip('"'))]
"""scontrol keeps the quotes around a comment as a part of it, but removes those around a reason (22.05)."""
StateWords = Annotated[frozenset[str], BeforeValidator(_parse_states)]
HostNames = Annotated[tuple[str, ...], BeforeValidator(lambda value: expand_host_list(value or ""))]


class _SlurmRecord(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class SlurmNode(_SlurmRecord):
    """A node in Slurm. `changed` is when its reason was set, in seconds since 1970."""

    name: str
    state: StateWords
    state_flags: StateWords = frozenset()
    reason: SlurmText = ""
    reason_set_by_user: SlurmText = ""
    changed: SlurmNumber = Field(default=0, alias="reason_changed_at")
    comment: UnquotedText = ""

    @property
    def states(self) -> frozenset[str]:
        """Its state and all its flags, in capitals."""
        return self.state | self.state_flags


class SlurmJob(_SlurmRecord):
    """A job in Slurm. Times are seconds since 1970, 0 for none."""

    job_id: int
    name: SlurmText = ""
    user_name: SlurmText = ""
    job_state: StateWords
    nodes: HostNames = ()
    start_time: SlurmNumber = 0
    end_time: SlurmNumber = 0
    preempt_time: SlurmNumber = 0
    requeue: bool = False
    batch_flag: bool = False

    @property
    def since(self) -> str:
        """When it started (ISO 8601 UTC)."""
        return format_epoch(self.start_time)


Record = TypeVar("Record", bound=_SlurmRecord)


def parse_nodes(document: Mapping[str, Any]) -> dict[str, SlurmNode]:
    """Return the nodes of a `sinfo --json` document by name. Raises AssayError for an unknown form."""
    return {node.name: node for node in _parse_records(document, "nodes", SlurmNode.model_validate)}


def parse_jobs(document: Mapping[str, Any]) -> list[SlurmJob]:
    """Return the jobs of a `squeue --json` document, ended ones too. Raises AssayError for an unknown form."""
    return _parse_records(document, "jobs", SlurmJob.model_validate)


def format_epoch(seconds: int) -> str:
    """Return seconds since 1970 as ISO 8601 UTC, "" for none."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else ""


def _parse_records(document: Mapping[str, Any], field: str, parse: Callable[[Any], Record]) -> list[Record]:
    try:
        return [parse(entry) for entry in document[field]]
    except (AttributeError, KeyError, TypeError, ValidationError, ValueError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else repr(error)
        raise AssayError(f"Slurm's JSON of {field} is not understood: {reason}", where="Slurm") from None
