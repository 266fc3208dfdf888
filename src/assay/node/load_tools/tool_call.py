"""Calls one load tool: with a deadline, in an environment of its own, and with what it printed kept apart.

A tool sees only the variables that it needs, and those that the site declares for it (`SiteSettings`). What it sees is
never returned. JSON that it printed is read without believing that it is whole, small or sensible.

`LoadRelay` passes on what a load has found so far, line by line, so that what ran before a kill counts. The first line
is `{"load": {"before": …}}`. Each part gives a line `{"load": {"begins": PART, "at": …}}`, then, if it is read in
units, the lines of its tool as they come, then `{"load": {"ends": PART, "branch": …}}`. The probe's document follows on
a line of its own.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.probe.isolated_reader import kill_tree

SCRATCH = "/var/tmp"  # noqa: S108 — on the node's own drives; each test makes a folder of its own there
RELAY_POLL_S = 0.1
MAX_PIECE_BYTES = 1 << 20
PASSED_ON = frozenset(
    {"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "ASSAY_ROOT"}
)
"""Variables of the caller that a tool gets: those to find programs, libraries, GPUs and the node's files."""
FIXED = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # so that CUDA's index is NVML's
MAX_OUTPUT_BYTES = 32 * 2**20
REAP_S = 1
TOOL_GRACE_S = 120  # to start, allocate and print
QUOTED_CHARACTERS = 120
SAYS_SOMETHING = re.compile(r"\w|[{}]")
USAGE_HINT = re.compile(r"^\s*(Run|Try|Type|For more information\b).*--help\b")
Salvage = Callable[[str, str], ReadingTree]
"""(standard output until then, why the tool was ended) → readings."""


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """The inventory's `load_tools` (model/specs/node/load_tools.py says what each means)."""

    environment: Mapping[str, str] = field(default_factory=dict)
    scratch: str = SCRATCH
    hpl: tuple[str, ...] = ()
    iperf3_server: str = ""
    rack_hosts: tuple[str, ...] = ()
    training: Mapping[str, Any] = field(default_factory=dict)
    storage: str = ""

    @classmethod
    def parse(cls, text: str) -> SiteSettings:
        """Return the settings in JSON, "" for none. Raises ValueError for any other text."""
        given: Any = json.loads(text) if text else {}
        if not isinstance(given, dict):
            raise ValueError("the settings of load tools are an object")
        return cls(
            {str(name): str(text) for name, text in dict(given.get("environment", {})).items()},
            str(given.get("scratch") or SCRATCH),
            tuple(map(str, given.get("hpl", ()))),
            str(given.get("iperf3_server", "")),
            tuple(map(str, given.get("rack_hosts", ()))),
            dict(given.get("training") or {}),
            str(given.get("storage", "")),
        )


@dataclass(slots=True)
class LoadRelay:
    """A descriptor to which lines go. A reader that has gone away ends nothing."""

    descriptor: int

    def tell(self, **content: Any) -> None:
        """Write one line of our own."""
        self.write(json.dumps({"load": content}).encode() + b"\n")

    def write(self, text: bytes) -> None:
        """Write whole lines."""
        left = memoryview(text)
        while left:
            try:
                left = left[os.write(self.descriptor, left) :]
            except OSError:
                return


@dataclass(slots=True)
class FileFollower:
    """Passes on the whole lines that a tool adds to its output file."""

    relay: LoadRelay
    file: int
    _told: int = 0

    def pass_on(self) -> None:
        """Pass on what has been added since the last call."""
        while piece := os.pread(self.file, MAX_PIECE_BYTES, self._told):
            whole = piece[: piece.rfind(b"\n") + 1]
            if not whole:
                return
            self.relay.write(whole)
            self._told += len(whole)


@dataclass(frozen=True, slots=True)
class LoadOrder:
    """What is asked of a tool: to load the node for about `seconds`, with the variables that the site declares.

    `relay`: where the lines of a tool that is read in units go as they come, if anywhere. `after_unit`: the unit of
    an earlier load after which such a tool goes on, as `SEED:TEST`. `part_seconds`: seconds by part, where they differ.
    `site`: what else the site declares.
    """

    seconds: int
    env: Mapping[str, str] = field(default_factory=dict)
    relay: LoadRelay | None = None
    after_unit: str = ""
    part_seconds: Mapping[str, int] = field(default_factory=dict)
    site: SiteSettings = field(default_factory=SiteSettings)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """How a tool ended by itself: its exit code, and what it printed."""

    tool: str
    exit_code: int
    stdout: str
    stderr: str = ""

    @property
    def text(self) -> str:
        """What it printed: standard output, then standard error."""
        return f"{self.stdout}\n{self.stderr}" if self.stderr.strip() else self.stdout

    def fail(self, reason: str) -> ReadingTree:
        """Return a failed leaf that quotes the end of what the tool printed."""
        return failed(f"{reason}{quote_ending(self.stderr if self.stderr.strip() else self.stdout)}")


@dataclass(frozen=True, slots=True)
class Readers:
    """Who reads what a tool printed: one for a tool that ended by itself, one, if at all, for a tool that did not."""

    understand: Callable[[ToolOutput], ReadingTree]
    salvage: Salvage | None = None
    relay: LoadRelay | None = None
    keeps_input: bool = False

    def read_lost(self, reason: str, output: str) -> ReadingTree:
        """Return the readings of a tool that was ended from outside."""
        return self.salvage(output, reason) if self.salvage else failed(f"{reason}{quote_ending(output)}")


def call_tool(
    command: Sequence[str],
    order: LoadOrder,
    understand: Callable[[ToolOutput], ReadingTree],
    *,
    grace_s: float = TOOL_GRACE_S,
    settings: Mapping[str, str] | None = None,
    salvage: Salvage | None = None,
    keeps_input: bool = False,
) -> ReadingTree:
    """Run `command`, found in PATH, and return what `understand` makes of how it ended.

    The leaf is absent where the tool is not installed, and failed where it does not start, does not end within the
    order's seconds and `grace_s`, is killed, or prints without end. `salvage` may read what a tool that was ended
    from outside printed until then, and what it prints is relayed if the order says so. `keeps_input`: the tool ends
    when its standard input ends.
    """
    allowed_s = order.seconds + grace_s
    try:
        out, err = (os.memfd_create(name) for name in ("stdout", "stderr"))  # a full disk stops no test
    except OSError as error:
        return failed(f"{command[0]} could not be started: {error.strerror}")
    try:
        readers = Readers(understand, salvage, order.relay if salvage else None, keeps_input)
        return _call(command, scrub_environment(order.env, settings), allowed_s, (out, err), readers)
    finally:
        os.close(out)
        os.close(err)


def scrub_environment(declared: Mapping[str, str], settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a tool's environment: what it needs of ours, what the site declares, and the adapter's settings."""
    kept = {name: text for name, text in os.environ.items() if name in PASSED_ON}
    return {**kept, **FIXED, **declared, **(settings or {})}


def _call(
    command: Sequence[str], environment: Mapping[str, str], allowed_s: float, files: tuple[int, int], readers: Readers
) -> ReadingTree:
    try:
        stdin = subprocess.PIPE if readers.keeps_input else subprocess.DEVNULL
        process = subprocess.Popen(list(command), stdin=stdin, stdout=files[0], stderr=files[1], env=dict(environment))
    except FileNotFoundError:
        return absent(f"{command[0]} is not installed")
    except OSError as error:
        return failed(f"{command[0]} could not be started: {error.strerror}")
    try:
        code = _wait(process, allowed_s, readers.relay, files[0])
    except subprocess.TimeoutExpired:
        kill_tree(process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):  # one in state D is left behind
            process.wait(REAP_S)
        return readers.read_lost(f"{command[0]} did not end within {allowed_s:g} s", _read(files[0]) or "")
    output = _read(files[0])
    errors = _read(files[1])
    if output is None or errors is None:
        return failed(f"{command[0]} printed more than {MAX_OUTPUT_BYTES // 2**20} MiB")
    if code < 0:
        return readers.read_lost(f"{command[0]} was killed ({_name_signal(-code)})", output or errors)
    return readers.understand(ToolOutput(command[0], code, output, errors))


def _wait(process: subprocess.Popen[bytes], allowed_s: float, relay: LoadRelay | None, file: int) -> int:
    """Wait for a tool's end, relaying what it prints. Raises subprocess.TimeoutExpired."""
    if relay is None:
        return process.wait(allowed_s)
    ends_at = time.monotonic() + allowed_s
    follower = FileFollower(relay, file)
    while True:
        left = ends_at - time.monotonic()
        try:
            return process.wait(min(RELAY_POLL_S, max(0.0, left)))
        except subprocess.TimeoutExpired:
            if left <= 0:
                raise
        finally:
            follower.pass_on()


def _read(file: int) -> str | None:
    """Return what a tool printed into a file, None where that is too much."""
    size = os.fstat(file).st_size
    return os.pread(file, size, 0).decode(errors="replace") if size <= MAX_OUTPUT_BYTES else None


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def quote_ending(text: str) -> str:
    """Return the end of a reason: it quotes the last line of the output that says something.

    mpirun draws boxes, and many programs end with a hint at their usage.
    """
    readable = [line.strip() for line in text.splitlines() if SAYS_SOMETHING.search(line)]
    lines = [line for line in readable if not USAGE_HINT.search(line)] or readable
    return f"; it ended with {quote_text(lines[-1])!r}" if lines else "; it printed nothing"


def quote_text(text: object) -> str:
    """Return what a tool said as a short text that a document can hold."""
    plain = " ".join(str(text).split()).encode("utf-8", "replace").decode()
    return plain if len(plain) <= QUOTED_CHARACTERS else f"{plain[:QUOTED_CHARACTERS]}…"


def parse_object(text: str) -> dict[str, Any]:
    """Return the first JSON object in a text; lines before and after it are skipped. Raises ValueError."""
    start = text.find("{")
    if start < 0:
        raise ValueError("no JSON object")
    try:
        document, _ = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(document, dict):
        raise ValueError("no JSON object")
    return document


def iterate_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a text that has one a line; other lines are skipped."""
    for line in text.splitlines():
        if line.lstrip().startswith("{"):
            try:
                yield parse_object(line)
            except ValueError:
                continue


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is no number")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def read_list(tree: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects in a list of an object, none where there is no list."""
    items = tree.get(name) if isinstance(tree, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def parse_number(seen: Any) -> float | None:
    """Return a finite number, also from text; None for anything else."""
    if isinstance(seen, bool) or not isinstance(seen, int | float | str):
        return None
    try:
        number = float(seen)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def read_speed(seen: Any, factor: float = 1.0) -> ReadingTree:
    """Return a leaf for a speed: a positive number times `factor`. Nothing that worked has speed 0."""
    number = parse_number(seen)
    if number is None or number <= 0:
        return failed(f"{quote_text(seen)!r} is no speed")
    return value(round(number * factor, 3))
