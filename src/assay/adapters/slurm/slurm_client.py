"""The one place that starts Slurm's programs, each with a deadline, and turns their failures into messages.

While slurmctld is down, `sinfo --json` and `squeue --json` end with exit code 0 and an empty list (seen with 22.05). So
the errors in the document decide, not the exit code. No accounting database is needed.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model.errors import AssayError

SLURM_TIMEOUT_S = 15.0
"""Longer than Slurm's programs try to reach slurmctld (9 s by default), so that their own messages are read."""
DOWN_MESSAGES = ("Unable to contact slurm controller", " is DOWN", "no answer within")
NO_JSON_MESSAGES = ("unrecognized option", "serializer", "not supported")
MAX_MESSAGE_LENGTH = 300
PLAIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ONE_TASK_OPTIONS = ("--nodes=1", "--ntasks=1", "--chdir=/", f"--export=PATH={PLAIN_PATH}")
"""Options of srun for one task on one node. srun would pass on our whole environment, credentials included."""


@dataclass(frozen=True, slots=True)
class SlurmClient:
    """The programs of one cluster. `conf` is the path of its slurm.conf; "" leaves it to the environment.

    Every method raises AssayError if a program is missing, does not end in time, or fails.
    """

    conf: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the programs."""
        return {**os.environ, "SLURM_CONF": self.conf} if self.conf else dict(os.environ)

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
            raise self.make_error(program, message or f"{json.dumps(document.get('errors'))}; {self._ping()}")
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

    def _ping(self) -> str:
        """Return the state of slurmctld: in the documents, its errors are only "Unspecified"."""
        return " ".join(self.run(["scontrol", "ping"]).stdout.replace("*", "").split())


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
