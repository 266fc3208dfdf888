"""Runs a private ibsim, and the real ibnetdiscover on it.

ibsim 0.10 has no NDR ("cannot parse speed", then 4xSDR). So every speed goes in one step slower (NDR as HDR …) and
ibnetdiscover's output is put one step faster again. A client of a dead ibsim hangs, hence the deadlines. Every client
leaves a folder in its working directory, hence the scratch folder.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from assay.model.errors import AssayError

PACKAGES = "ibsim-utils libumad2sim0 infiniband-diags"
LIBRARIES = ("lib/*", "lib64", "lib")
DEADLINE_S = 30
SLOWED = {"XDR": "NDR", "NDR": "HDR", "HDR": "EDR", "EDR": "FDR", "FDR": "QDR", "QDR": "DDR", "DDR": "SDR"}
_FAR_END = re.compile(r'(?m)^\[.*"[SHR]-([0-9a-f]{16})"\[.* lid (\d+) \S+$')
_ATTACHED = re.compile(r"ibwarn: \[\d+\] sim_connect: attached as client")


@dataclass(frozen=True)
class IbsimTools:
    """Paths of the two programs and of the library that connects them."""

    ibsim: str
    ibnetdiscover: str
    umad2sim: str


def find_ibsim_tools() -> IbsimTools | None:
    """Return the tools, None if one of them is not installed."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin"])
    programs = [shutil.which(name, path=path) for name in ("ibsim", "ibnetdiscover")]
    libraries = [lib for folder in LIBRARIES for lib in sorted(Path("/usr").glob(f"{folder}/umad2sim/libumad2sim.so"))]
    if not all(programs) or not libraries:
        return None
    return IbsimTools(str(programs[0]), str(programs[1]), str(libraries[0]))


def list_lids(text: str) -> dict[str, str]:
    """Return the LID of each cabled device in what ibnetdiscover prints, by GUID."""
    return {f"0x{guid}": lid for guid, lid in _FAR_END.findall(text)}


def run_ibnetdiscover(tools: IbsimTools, net: str, devices: int, switches: int) -> tuple[str, str]:
    """Return the stdout of ibnetdiscover for the fabric `net`, and its stderr without ibsim's greeting.

    Raises AssayError if ibsim does not start, or if the discovery fails or takes longer than `DEADLINE_S`.
    """
    with tempfile.TemporaryDirectory(prefix="assay-ibsim-") as scratch:
        (Path(scratch) / "fabric.net").write_text(_shifted(net, SLOWED))
        environment = {**os.environ, "IBSIM_SOCKNAME": f"assay-{os.getpid()}-{secrets.token_hex(4)}"}
        sizes = ["-N", str(devices + 8), "-S", str(switches + 8), "-P", str(switches * 80 + devices * 4)]
        with _simulator(tools, sizes, scratch, environment):
            done = _ibnetdiscover(tools, scratch, environment)
    stderr = "".join(line for line in done.stderr.splitlines(keepends=True) if not _ATTACHED.match(line))
    return _shifted(done.stdout, {slow: fast for fast, slow in SLOWED.items()}), stderr


def _ibnetdiscover(tools: IbsimTools, scratch: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    preloaded = {**environment, "LD_PRELOAD": tools.umad2sim}
    try:
        return subprocess.run(
            [tools.ibnetdiscover], cwd=scratch, env=preloaded, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=DEADLINE_S, check=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise AssayError(f"ibnetdiscover did not end within {DEADLINE_S} s on the lab's fabric") from error
    except subprocess.CalledProcessError as error:
        raise AssayError(f"ibnetdiscover failed on the lab's fabric: {error.stderr.strip()}") from error


@contextmanager
def _simulator(tools: IbsimTools, sizes: list[str], scratch: str, environment: Mapping[str, str]) -> Iterator[None]:
    """Run ibsim during the block. `timeout` ends it after twice the deadline if nobody else does."""
    command = ["timeout", str(2 * DEADLINE_S), tools.ibsim, "-s", "-n", *sizes, "-L", "49152", "fabric.net"]
    with (Path(scratch) / "ibsim.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=scratch,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            _wait_until_ready(process, Path(log.name))
            yield
        finally:
            _end_simulator(process)


def _end_simulator(process: subprocess.Popen[bytes]) -> None:
    """End `timeout`, which passes the signal on to ibsim and reaps it, so that no zombie stays."""
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while "Network simulator ready" not in (text := log.read_text(errors="replace")):
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssayError(f"ibsim did not start: {text.strip()[-300:]}", fix=f"check the packages {PACKAGES}")
        time.sleep(0.01)


def _shifted(text: str, speeds: Mapping[str, str]) -> str:
    """Replace the speed at the end of every port's line."""
    return re.sub(r"(?m)(?<=x)([A-Z]+)$", lambda found: speeds.get(found[1], found[1]), text)
