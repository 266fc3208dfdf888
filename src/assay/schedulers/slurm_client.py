"""Slurm's own programs, each with a deadline. What they cannot do is said in words that a person can act on.

`sinfo --json` and `squeue --json` end with exit code 0 and an empty list where slurmctld is down (seen with 22.05):
what the document itself calls errors is believed, never the code alone.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from assay.model.errors import AssayError

SLURM_TIMEOUT_S = 15.0
"""More than slurmctld's clients try by themselves (9 s with Slurm's defaults), so that their own words are heard."""
DOWN_MESSAGES = ("Unable to contact slurm controller", " is DOWN", "no answer within")
NO_JSON_MESSAGES = ("unrecognized option", "serializer", "not supported")


@dataclass(frozen=True, slots=True)
class SlurmClient:
    """The programs of one cluster. `conf` is the path of its slurm.conf; "" leaves it to the environment."""

    conf: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """The environment that the programs run in."""
        return {**os.environ, "SLURM_CONF": self.conf} if self.conf else dict(os.environ)

    def read_json(self, program: str, *words: str) -> dict[str, Any]:
        """Return the document that a program prints. Raises Trouble where it prints none, or tells of errors."""
        done = self._run([program, "--json", *words])
        said = done.stderr.strip()
        try:
            document = json.loads(done.stdout)
        except ValueError:
            raise self._make_error(program, said or f"it printed no JSON and ended with {done.returncode}") from None
        if not isinstance(document, dict):
            raise self._make_error(program, "its JSON is no document")
        if done.returncode or document.get("errors"):
            raise self._make_error(program, said or f"{json.dumps(document.get('errors'))}; {self._ping()}")
        return document

    def read_lines(self, *command: str) -> list[str]:
        """Return what a program without JSON prints. Raises Trouble where it fails."""
        done = self._run(command)
        if done.returncode:
            raise self._make_error(command[0], done.stderr.strip() or done.stdout.strip())
        return done.stdout.splitlines()

    def run_scontrol(self, orders: Iterable[str]) -> None:
        """Give scontrol orders, one a line, in one process: a hundred cost as much as one.

        All are tried. Raises Trouble with what scontrol said of those that were refused.
        """
        text = "".join(f"{line}\n" for line in orders)
        if not text:
            return
        done = self._run(["scontrol"], text)
        if done.returncode or done.stderr.strip():
            raise self._make_error("scontrol", done.stderr.strip() or f"it ended with {done.returncode}")

    def _ping(self) -> str:
        """Return what Slurm says of its own slurmctld: the documents' errors are "Unspecified"."""
        return " ".join(self._run(["scontrol", "ping"]).stdout.replace("*", "").split())

    def _run(self, command: Iterable[str], given: str = "") -> subprocess.CompletedProcess[str]:
        words = list(command)
        try:
            return subprocess.run(
                words,
                input=given,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SLURM_TIMEOUT_S,
                check=False,
                env=self.environment,
            )
        except FileNotFoundError:
            raise AssayError(
                f"there is no {words[0]} here", where="Slurm", fix="install Slurm's client programs where assay runs"
            ) from None
        except OSError as error:
            raise self._make_error(words[0], str(error.strerror)) from None
        except subprocess.TimeoutExpired:
            raise self._make_error(words[0], f"{words[0]}: no answer within {SLURM_TIMEOUT_S:g} s") from None

    def _make_error(self, program: str, said: str) -> AssayError:
        where = self.conf or "Slurm"
        words = " ".join(said.split())[:300]
        if any(sign in words for sign in DOWN_MESSAGES):
            return AssayError(f"slurmctld does not answer: {words}", where=where, fix="look at `scontrol ping`")
        if any(sign in words for sign in NO_JSON_MESSAGES):
            fix = "use Slurm 21.08 or newer, with its JSON serializer plugin"
            return AssayError(f"this Slurm's {program} prints no JSON: {words}", where=where, fix=fix)
        return AssayError(f"{program} refuses: {words}", where=where)
