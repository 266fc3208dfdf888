"""The real tools: ibsim with its console, OpenSM, and infiniband-diags, for any compiled design."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.lab.fabric.ibnetdiscover import format_net_file
from assay.model.specs.fabric.cable import Cable, CableEnd
from tests.support.fabrics import ibsim

TOOLS = ibsim.find_ibsim_tools()
SBIN = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
NEEDED = ("opensm", "iblinkinfo", "ibqueryerrors", "ibportstate")
MISSING = [name for name in NEEDED if not any((Path(one) / name).exists() for one in SBIN.split(os.pathsep))]
WHY_NOT = f"needs the packages {ibsim.PACKAGES} opensm: apt-get install --no-install-recommends {ibsim.PACKAGES} opensm"
AVAILABLE = bool(TOOLS) and not MISSING
ATTEMPTS = 5
LIFETIMES = 20
"""For how many times its patience a simulator lives whose tests were killed."""
SETTINGS = {
    "force_log_flush": "TRUE", "dump_files_dir": "./", "max_wire_smps": "16",
    "sminfo_polling_timeout": "200", "polling_retry_number": "2",
}  # fmt: skip


class Partners:
    """One simulated fabric, cabled as `plan`, with a subnet manager that brought it up once.

    A client of a simulator that died hangs for ever, and one at the end of its console spins: hence the deadlines, and
    the console that is opened both ways.
    """

    def __init__(self, plan: CompiledTopology, home: Path, patience: float = 30) -> None:
        self.plan, self.home, self.patience = plan, home, patience
        self.names = {device.name: device for device in plan.devices.values()}
        name = f"assay-partners-{os.getpid()}-{id(self):x}"
        self.environment = {
            **os.environ, "PATH": SBIN, "IBSIM_SOCKNAME": name, "OSM_TMP_DIR": str(home), "OSM_CACHE_DIR": str(home),
        }  # fmt: skip
        devices = {g: DiscoveredDevice(g, d.kind, d.ports, d.description) for g, d in plan.devices.items()}
        (home / "fabric.net").write_text(
            format_net_file(devices, [DiscoveredCable(c.a.port_id, c.b.port_id, c.rate) for c in plan.cables])
        )
        os.mkfifo(home / "console")
        self._console = os.open(home / "console", os.O_RDWR)
        self._running: list[subprocess.Popen[bytes]] = []
        switches = sum(device.kind == "switch" for device in devices.values())
        sizes = ["-N", str(len(devices) + 8), "-S", str(switches + 8), "-P", str(switches * 140 + len(devices) * 4)]
        command = ["timeout", str(LIFETIMES * patience), TOOLS.ibsim, "-s", *sizes, "-L", "49152", "fabric.net"]
        self._start(command, self.environment, self._console, home / "ibsim.log")
        self._wait(home / "ibsim.log", "Network simulator ready")

    def manage(self, engine: str = "minhop", *arguments: str) -> None:
        """Let OpenSM find the fabric, give out its addresses, and route by an engine, with further arguments."""
        self._run("opensm", "-c", "opensm.conf", environment=self.environment)
        settings = (self.home / "opensm.conf").read_text()
        for name, value in SETTINGS.items():
            settings = re.sub(rf"(?m)^{name} .*", f"{name} {value}", settings)
        (self.home / "opensm.conf").write_text(settings)
        log = self.home / "opensm.log"
        command = ["opensm", "-F", "opensm.conf", "-R", engine, "-f", str(log), "-D", "0x03", "-s", "0", *arguments]
        self._start(command, self._preloaded, subprocess.DEVNULL, self.home / "opensm.out")
        self._wait(log, "SUBNET UP")

    def manage_beside(self, host: str, priority: int) -> int:
        """Let a second OpenSM wait at another device, to take over if the first falls silent; return the first's id."""
        first = self._running[-1].pid
        log = self.home / "second.log"
        command = ["opensm", "-F", "opensm.conf", "-p", str(priority), "-f", str(log), "-D", "0x03", "-s", "0"]
        self._start(command, self._preloaded | {"SIM_HOST": host}, subprocess.DEVNULL, self.home / "second.out")
        self._wait(log, "Entering STANDBY")
        return first

    def lose_first_manager(self, first: int) -> None:
        """End the first OpenSM, and wait until the second is the master."""
        os.kill(first, signal.SIGKILL)
        self._wait(self.home / "second.log", "Entering MASTER")
        self._wait(self.home / "second.log", "SUBNET UP")

    @contextmanager
    def unmanaged(self) -> Iterator[None]:
        """Let OpenSM sleep: it puts a speed right again as soon as it hears of it. All its threads sleep on entry."""
        os.kill(self._running[-1].pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self._running[-1].pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        try:
            yield
        finally:
            os.kill(self._running[-1].pid, signal.SIGCONT)

    def say(self, *lines: str) -> None:
        """Say something on the simulator's console. It answers a line that it does not know, so that one is the end."""
        self._asked = getattr(self, "_asked", 0) + 1
        mark = f"assay-{self._asked}"
        os.write(self._console, "".join(f"{line}\n" for line in (*lines, mark)).encode())
        self._wait(self.home / "ibsim.log", mark)

    def ask(self, *command: str) -> tuple[str, str]:
        """Run a tool on the fabric; return what it prints and its stderr.

        One run of ibqueryerrors in thirty dies of SIGSEGV behind umad2sim, before its first line: a fault of theirs, of
        which our answer is not the matter here, so a tool that died of a signal is asked again. So is one that failed
        without a word, as they do on a busy machine.
        """
        done = next(self._ended(*command), None)
        assert done is not None, f"{command[0]} died, or printed nothing, each of {ATTEMPTS} times"
        return done.stdout, "".join(line for line in done.stderr.splitlines(keepends=True) if "sim_connect" not in line)

    def order(self, *command: str) -> None:
        """Run a tool that changes the fabric. On a busy machine it may fail after its first lines: it is run again."""
        attempts = (self._run(*command, environment=self._preloaded) for _ in range(ATTEMPTS))
        assert any(done.returncode == 0 for done in attempts), f"{' '.join(command)} failed {ATTEMPTS} times"

    def end(self) -> None:
        """End what was started. OpenSM ends when it has heard of all that it asked; if it never does, it is killed."""
        for process in reversed(self._running):
            process.terminate()
            try:
                process.wait(timeout=self.patience)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        os.close(self._console)

    def cable(self, name: str, port: int = 1) -> Cable:
        """Return the designed cable at a device's port, that end first."""
        found = self.plan.cable_at(self.names[name].end(port).port_id)
        assert found is not None, f"{name} has no cable on port {port}"
        return found

    def unplug(self, *cables: Cable) -> None:
        self.say(*(f"Unlink {_at(cable.b)}" for cable in cables))

    def plug(self, *pairs: tuple[CableEnd, CableEnd]) -> None:
        self.say(*(f"Link {_at(a)} {_at(b)}" for a, b in pairs))

    def permute(self, *cables: Cable) -> None:
        """Put each cable's far plug into the port of the next one's; doing it the other way round repairs it."""
        self.unplug(*cables)
        self.plug(*((one.a, following.b) for one, following in zip(cables, [*cables[1:], cables[0]], strict=True)))

    def repair(self, *cables: Cable) -> None:
        """Cable these as designed, whatever is in their ports now."""
        self.say(*(f"Unlink {_at(end)}" for cable in cables for end in cable.ends))
        self.plug(*(cable.ends for cable in cables))

    def _ended(self, *command: str) -> Iterator[subprocess.CompletedProcess[str]]:
        """Yield the attempts that ended of themselves, and did not fail before their first line."""
        attempts = (self._run(*command, environment=self._preloaded) for _ in range(ATTEMPTS))
        return (done for done in attempts if done.returncode == 0 or (done.returncode > 0 and done.stdout))

    @property
    def _preloaded(self) -> dict[str, str]:
        return self.environment | {"LD_PRELOAD": TOOLS.umad2sim}

    def _run(self, *command: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, check=False, cwd=self.home, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=self.patience,
        )  # fmt: skip

    def _start(self, command: list[str], environment: dict[str, str], stdin: int, log: Path) -> None:
        with log.open("wb") as out:
            started = subprocess.Popen(command, cwd=self.home, env=environment, stdin=stdin, stdout=out, stderr=out)
        self._running.append(started)

    def _wait(self, log: Path, words: str) -> None:
        deadline = time.monotonic() + self.patience
        while words not in (log.read_text(errors="replace") if log.exists() else ""):
            assert self._running[-1].poll() is None, f"it ended: {log.read_text(errors='replace')[-500:]}"
            assert time.monotonic() < deadline, f"{log.name} never said {words!r}"
            time.sleep(0.01)


def _at(end: CableEnd) -> str:
    return f'"{"H" if end.node else "S"}-{end.guid[2:]}"[{end.port}]'
