"""The JSON of sinfo and squeue, and the states of jobs that decide something (meanings: `man squeue`).

Field names are those of Slurm's openapi v0.0.38 (22.05). There a state is a word and a list of flags, and a time is a
number. Newer versions write lists of states, and numbers as `{"set", "infinite", "number"}`. Both forms are read.
A job state that is not listed here counts as the cautious one: the job goes on, and is on its node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from assay.model.errors import AssayError
from assay.model.text.node_sets import expand_node_set

ENDED_JOB_STATES = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
"""The job is over: nothing of it runs any more."""
WAITING_JOB_STATES = frozenset(
    {
        "PENDING",
        "RECONFIG_FAIL",
        "REQUEUED",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "RESV_DEL_HOLD",
        "SPECIAL_EXIT",
    }
)
"""The job waits to start, or to start again: nothing of it is on a node."""
SELF_ENDED_JOB_STATES = frozenset({"COMPLETED", "FAILED", "OUT_OF_MEMORY"})
"""The job's own command ended."""
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
MAX_HOSTS = 1_000_000
HostNames = Annotated[tuple[str, ...], BeforeValidator(lambda value: expand_node_set(value or "", MAX_HOSTS))]


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
    extra: UnquotedText = ""

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
