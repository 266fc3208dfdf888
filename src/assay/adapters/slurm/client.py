"""The one place that starts Slurm's programs, each with a deadline, and turns their failures into messages.

While slurmctld is down, `sinfo --json` and `squeue --json` end with exit code 0 and an empty list (seen with 22.05). So
the errors in the document decide, not the exit code. No accounting database is needed.

Field names are those of Slurm's openapi v0.0.38 (22.05). There a state is a word and a list of flags, and a time is a
number. Newer versions write lists of states, and numbers as `{"set", "infinite", "number"}`. Both forms are read.
A job state that is not listed here counts as the cautious one: the job goes on, and is on its node.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.text.lists import expand_node_set

SLURM_TIMEOUT_S = 15.0
"""Longer than Slurm's programs try to reach slurmctld (9 s by default), so that their own messages are read."""
DOWN_MESSAGES = ("Unable to contact slurm controller", " is DOWN", "no answer within")
NO_JSON_MESSAGES = ("unrecognized option", "serializer", "not supported")
MAX_MESSAGE_LENGTH = 300
PLAIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ONE_TASK_OPTIONS = ("--nodes=1", "--ntasks=1", "--chdir=/", f"--export=PATH={PLAIN_PATH}")
"""Options of srun for one task on one node. srun would pass on our whole environment, credentials included."""
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
"""The job is over: nothing of it runs any more (the meanings of states: `man squeue`)."""
WAITING_JOB_STATES = frozenset(
    {"PENDING", "RECONFIG_FAIL", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
)
"""The job waits to start, or to start again: nothing of it is on a node."""
SELF_ENDED_JOB_STATES = frozenset({"COMPLETED", "FAILED", "OUT_OF_MEMORY"})
"""The job's own command ended."""
UNSET_FROM = 2**32 - 2
"""Slurm writes "not set" and "infinite" as the largest numbers of 32 and of 64 bits, from here on."""
MAX_HOSTS = 1_000_000


@frozen
class SlurmClient:
    """The programs of one cluster. `conf` is the path of its slurm.conf; "" leaves it to the environment.

    Every method raises AssayError if a program is missing, does not end in time, or fails.
    """

    conf: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the programs. scontrol shows times in seconds since 1970: no time zone changes them."""
        return {**os.environ, "SLURM_TIME_FORMAT": "%s"} | ({"SLURM_CONF": self.conf} if self.conf else {})

    def run(
        self, command: Sequence[str], stdin: str = "", timeout_s: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program and return how it ended, whatever its exit code. The default limit is SLURM_TIMEOUT_S."""
        limit_s = SLURM_TIMEOUT_S if timeout_s is None else timeout_s
        try:
            return subprocess.run(
                command,
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=limit_s,
                check=False,
                env=self.environment,
            )
        except OSError as error:
            raise self._start_error(command[0], error) from None
        except subprocess.TimeoutExpired:
            raise self.make_error(command[0], f"{command[0]}: no answer within {limit_s:g} s") from None

    def start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a program in a process group of its own, with pipes for all three streams."""
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, env=self.environment, process_group=0
            )
        except OSError as error:
            raise self._start_error(command[0], error) from None

    def read_json(self, program: str, *options: str) -> dict[str, Any]:
        """Return the JSON document that a program prints. A document that lists errors is a failure too."""
        done = self.run([program, "--json", *options])
        message = done.stderr.strip()
        try:
            document = json.loads(done.stdout)
        except ValueError:
            raise self.make_error(program, message or f"no JSON, and exit code {done.returncode}") from None
        if not isinstance(document, dict):
            raise self.make_error(program, "its JSON is no object")
        if done.returncode or document.get("errors"):
            if not message:  # the document's errors are only "Unspecified", so say how slurmctld is
                ping = self.run(["scontrol", "ping"]).stdout.replace("*", "").split()
                message = f"{json.dumps(document.get('errors'))}; {' '.join(ping)}"
            raise self.make_error(program, message)
        return document

    def read_lines(self, *command: str, timeout_s: float | None = None) -> list[str]:
        """Return the lines that a program prints."""
        done = self.run(command, timeout_s=timeout_s)
        if done.returncode:
            raise self.make_error(command[0], done.stderr.strip() or done.stdout.strip())
        return done.stdout.splitlines()

    def run_scontrol(self, orders: Iterable[str]) -> None:
        """Give scontrol orders, one a line, to one process: a hundred cost as much as one.

        scontrol tries all of them. The AssayError has its messages on those that it refused.
        """
        text = "".join(f"{line}\n" for line in orders)
        if not text:
            return
        done = self.run(["scontrol"], text)
        if done.returncode or done.stderr.strip():
            raise self.make_error("scontrol", done.stderr.strip() or f"exit code {done.returncode}")

    def make_error(self, program: str, message: str) -> AssayError:
        """Return the error for what a program printed, with a fix for the messages that are known."""
        where = self.conf or "Slurm"
        words = " ".join(message.split())[:MAX_MESSAGE_LENGTH]
        if any(sign in words for sign in DOWN_MESSAGES):
            return AssayError(f"slurmctld does not answer: {words}", where=where, fix="look at `scontrol ping`")
        if any(sign in words for sign in NO_JSON_MESSAGES):
            fix = "use Slurm 21.08 or newer, with its JSON serializer plugin"
            return AssayError(f"this Slurm's {program} prints no JSON: {words}", where=where, fix=fix)
        return AssayError(f"{program} failed: {words}", where=where)

    def _start_error(self, program: str, error: OSError) -> AssayError:
        if isinstance(error, FileNotFoundError):
            return make_missing_program_error(program)
        return self.make_error(program, f"it cannot be started: {error.strerror}")


def read_user_name() -> str:
    """Return the user whose jobs are ours. Slurm goes by the user of the process, not by environment variables."""
    return pwd.getpwuid(os.geteuid()).pw_name


def require_slurm(*programs: str) -> None:
    """Raise AssayError if one of Slurm's programs is not on the PATH."""
    if missing := [program for program in programs if not shutil.which(program)]:
        raise make_missing_program_error(missing[0])


def make_missing_program_error(program: str) -> AssayError:
    """Return the error for a program of Slurm that is not installed here."""
    fix = "install Slurm's client programs on this machine, or use a machine that submits jobs to the cluster"
    return AssayError(f"there is no {program} here", where="Slurm", fix=fix)


def _parse_number(value: Any) -> Any:
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") and not value.get("infinite") else 0
    return 0 if not value or (isinstance(value, int | float) and not 0 <= value < UNSET_FROM) else value


SlurmNumber = Annotated[int, BeforeValidator(_parse_number)]
SlurmText = Annotated[str, BeforeValidator(lambda value: value or "")]
UnquotedText = Annotated[str, BeforeValidator(lambda value: (value or "").strip('"'))]
"""scontrol keeps the quotes around a comment as a part of it, but removes those around a reason (22.05)."""
StateWords = Annotated[
    frozenset[str],
    BeforeValidator(lambda value: [str(word).upper() for word in ([value] if isinstance(value, str) else value or ())]),
]
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
    weight: SlurmNumber = 0

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
