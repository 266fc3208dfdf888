"""Production's own functions start the real programs, with the words that they choose themselves.

What no program of this machine can do (an adapter, a drive) is replaced in one word, and the test
says which. A program that is not installed is a skip: tools/system-packages installs it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.lab.daemon import SITE_TOOLS
from assay.node.burnin.node_tasks import EVERY_TEST
from assay.node.load_tools.assay_load import run_battery, run_training
from assay.node.load_tools.fio import parse_fio_read, run_fio_verify, run_nvme_read, run_shared_storage
from assay.node.load_tools.network import parse_ib_write_bw, run_front_end, run_ib_write_bw
from assay.node.load_tools.stress_tools import run_memory, run_stressapptest
from assay.node.load_tools.tool_call import LoadOrder, SiteSettings, ToolOutput
from assay.node.probe.devices import network_adapters, nvme
from assay.node.probe.host import DAEMONS, PTP, read_services, read_timekeeping
from assay.node.probe.named_settings import ask_tpm, read_unit_settings
from assay.node.probe.node_access import NodeRoot
from tests.act.boot.real_tpm import run_tpm
from tests.support.reserved_ports import reserve_ports

pytestmark = pytest.mark.slow(minutes=2)
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RECORDER = f"""#!{sys.executable}
import json, os, sys, time
while sys.argv[-1] == "localhost" and not os.path.exists({{file!r}}):
    time.sleep(0.05)  # a client finds its server
with open({{file!r}}, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
"""
Record = Callable[..., list[list[str]]]


def need(tool: str, package: str) -> None:
    if not shutil.which(tool, path=SYSTEM_PATH):
        pytest.skip(f"{tool} is not installed: apt-get install {package}, or sh tools/system-packages as root")


@pytest.fixture(autouse=True)
def system_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{SYSTEM_PATH}")


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    """Return the words with which a function of production calls a tool, one list a call."""

    def call(tool: str, function: Callable[..., Any], *arguments: Any) -> list[list[str]]:
        folder = tmp_path / f"recorder-{tool}"
        folder.mkdir()
        (folder / tool).write_text(RECORDER.format(file=str(folder / "words")))
        (folder / tool).chmod(0o755)
        with monkeypatch.context() as patch:
            patch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
            function(*arguments)
        return [json.loads(line) for line in (folder / "words").read_text().splitlines()]

    return call


@pytest.fixture
def folder_on_a_drive() -> Iterator[Path]:
    """A folder that is not in memory: fio goes around the page cache."""
    with tempfile.TemporaryDirectory(prefix="assay-test-", dir="/var/tmp") as folder:
        yield Path(folder)


def make_root(folder: Path, **files: str) -> NodeRoot:
    """A node's root with these files, `__` for a slash in their names."""
    for name, text in files.items():
        file = folder / "root" / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return NodeRoot(str(folder / "root"))


def run(words: Sequence[str]) -> ToolOutput:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return ToolOutput(words[0], done.returncode, done.stdout, done.stderr)


def test_stressapptest_tests_memory_as_it_is_called() -> None:
    """It takes the memory that production lets it take on this machine."""
    need("stressapptest", "stressapptest")
    assert run_stressapptest(NodeRoot(), LoadOrder(1)) == {"errors": {"value": 0}}


def test_stress_ng_verifies_memory_as_it_is_called(tmp_path: Path) -> None:
    """Only how much memory is free is not so: a starved machine verifies little, and gets longer for it."""
    need("stress-ng", "stress-ng")
    root, leaf = make_root(tmp_path, proc__meminfo="MemAvailable:   131072 kB\n"), {}
    for seconds in (5, 30, 120):
        leaf = run_memory(root, LoadOrder(seconds))
        if "verified nothing" not in leaf.get("failed", ""):
            break
    assert leaf == {"errors": {"value": 0}}


def test_fio_verifies_around_the_page_cache_as_it_is_called(folder_on_a_drive: Path) -> None:
    need("fio", "fio")
    leaf = run_fio_verify(NodeRoot(), LoadOrder(300, site=SiteSettings(scratch=str(folder_on_a_drive))))
    assert leaf == {"intact": {"value": True}, "verified_gb": {"value": 1.074}}
    assert list(folder_on_a_drive.iterdir()) == [], "it leaves nothing behind"


def test_shared_storage_is_written_and_read_by_the_real_fio(tmp_path: Path, folder_on_a_drive: Path) -> None:
    """Only what the node says of its mounts is not so."""
    need("fio", "fio")
    root = make_root(tmp_path, proc__mounts="/dev/md0 / ext4 rw 0 0\nfiler:/x /shared nfs4 rw 0 0\n")
    (tmp_path / "root/shared").symlink_to(folder_on_a_drive)
    leaf = run_shared_storage(root, LoadOrder(300, site=SiteSettings(storage="/shared")))
    assert (leaf["intact"], leaf["verified_gb"]) == ({"value": True}, {"value": 1.074})
    assert leaf["write_mb_s"]["value"] > 0 < leaf["read_mb_s"]["value"]
    assert list(folder_on_a_drive.iterdir()) == [], "it leaves nothing behind"


def test_fio_reads_a_drive_as_it_is_called(record: Record, tmp_path: Path) -> None:
    """Only the drive is a file: its engine, its depth and that it goes around the page cache are production's."""
    need("fio", "fio")
    root = make_root(tmp_path, sys__class__nvme__nvme0__nvme0n1__size="8192")
    (words,) = record("fio", run_nvme_read, root, LoadOrder(1))
    assert {"--filename=/dev/nvme0n1", "--readonly", "--direct=1", "--ioengine=libaio"} <= set(words)
    (tmp_path / "drive").write_bytes(os.urandom(2**22))
    real = [word.replace("/dev/nvme0n1", str(tmp_path / "drive")) for word in words]
    assert parse_fio_read(run(["fio", *real]))["value"] > 0


def test_iperf3_measures_against_a_real_server() -> None:
    need("iperf3", "iperf3")
    address = "127.0.20.77"  # its port is the one that production leaves to iperf3
    with subprocess.Popen(["iperf3", "-s", "-1", "-B", address], stdout=subprocess.DEVNULL) as server:
        try:
            _wait_for(lambda: _is_used("tcp", 5201))
            leaf = run_front_end(NodeRoot(), LoadOrder(1, site=SiteSettings(iperf3_server=address)))
        finally:
            server.kill()
    assert leaf["gbps"]["value"] > 0


def test_perftest_takes_the_words_that_it_is_called_with(record: Record, tmp_path: Path) -> None:
    """It comes to the adapter, which this machine does not have. Debian builds it without --use_cuda."""
    need("ib_write_bw", "perftest")
    root = make_root(tmp_path, sys__class__infiniband__mlx5_0__device="")
    calls = record("ib_write_bw", run_ib_write_bw, root, LoadOrder(1))
    assert sorted(words[-1] == "localhost" for words in calls) == [False, True]
    for words in calls:
        output = run(["ib_write_bw", *words])
        assert "find IB devices" in output.text or "Unable to find the Infiniband/RoCE device" in output.text
        assert "failed" in parse_ib_write_bw(output)


def test_a_battery_and_training_run_by_the_real_assay_load(tmp_path: Path) -> None:
    first = run_battery(make_root(tmp_path), LoadOrder(1))
    assert first["ended"] == {"value": "done"}
    again = run_battery(NodeRoot(str(tmp_path)), LoadOrder(1, after_unit=first["last_unit"]["value"]))
    assert again["ended"] == {"value": "done"}
    in_a_burn_in = run_battery(NodeRoot(str(tmp_path)), LoadOrder(1, after_unit=f"5166:{EVERY_TEST}"))
    assert in_a_burn_in["ended"] == {"value": "done"}
    assert int(in_a_burn_in["last_unit"]["value"].partition(":")[0]) > 5166, "seeds of its own"
    refused = run_battery(NodeRoot(str(tmp_path)), LoadOrder(1, after_unit="1:"))
    assert "write SEED:TEST" in refused["failed"]
    trained = run_training("gpt", NodeRoot(str(tmp_path)), LoadOrder(1))
    assert trained["ended"] == {"value": "done"}


def test_the_training_that_a_lab_declares_is_one_of_the_real_assay_load() -> None:
    declared = SITE_TOOLS["training"]
    output = run(declared["command"])
    assert output.exit_code == 0, output.text
    for field in ("step", "loss", "step_ms", "digest"):
        assert re.search(declared[field]["pattern"], output.text), field


def test_mstconfig_takes_the_question_and_says_what_it_cannot_open() -> None:
    need("mstconfig", "mstflint")
    answers = network_adapters._ask({"a": "0000:fe:1f.7"}, {"a": ["LINK_TYPE_P1"]}, time.monotonic() + 20)
    (leaf,) = network_adapters.parse_settings(str(answers["a"]), ["LINK_TYPE_P1"]).values()
    assert "Failed to open" in str(leaf), answers
    assert "invalid argument" not in str(answers["a"])


def test_nvme_and_smartctl_take_the_question_and_say_which_drive_they_do_not_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("nvme", "nvme-cli")
    no_drive = "nvme gave no log; it said '/dev/nvme99: No such file or directory'"
    assert nvme.read_smart("nvme99") == {"failed": no_drive}
    need("smartctl", "smartmontools")
    (tmp_path / "smartctl").symlink_to(shutil.which("smartctl", path=SYSTEM_PATH) or "")
    monkeypatch.setenv("PATH", str(tmp_path))  # smartctl is asked where there is no nvme
    assert "said 'Smartctl open device: /dev/nvme99 failed: No such device'" in nvme.read_smart("nvme99")["failed"]


@pytest.fixture
def chronyd(tmp_path: Path) -> Iterator[None]:
    """A real chronyd that leaves the clock alone, with one server that never answers."""
    need("chronyd", "chrony")
    if os.geteuid():
        pytest.skip("chronyc reaches chronyd by its socket below /run only as root")
    if _is_used("udp", 323):
        pytest.skip("a chronyd runs on this machine already")
    (port,) = reserve_ports(1)
    settings = tmp_path / "chrony.conf"
    settings.write_text(f"server 127.0.0.1 port {port}\npidfile {tmp_path}/chronyd.pid\nport 0\n")
    Path("/run/chrony").mkdir(exist_ok=True)
    command = ["chronyd", "-x", "-d", "-u", "root", "-f", str(settings)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(lambda: run(["chronyc", "-n", "-c", "tracking"]).exit_code == 0)
            yield
        finally:
            process.terminate()


def test_a_real_chronyd_tells_its_state_and_its_servers(chronyd: None) -> None:
    tree = read_timekeeping(NodeRoot())
    sync, sources = tree["sync"](), tree["sources"]()
    assert (sync["daemon"], sync["synchronised"]) == ({"value": "chrony"}, {"value": False})
    assert sources == {"value": ["127.0.0.1"]}


QUESTIONS = {command[0]: command for command in (*(command for command, _ in DAEMONS), PTP)}


@pytest.mark.parametrize(
    ("tool", "package", "said"),
    [
        ("chronyc", "chrony", "Cannot talk to daemon"),
        ("ntpq", "ntpsec", "probably ntpd is not running"),
        ("timedatectl", "systemd", "not been booted with systemd"),
        ("pmc", "linuxptp", "GET CURRENT_DATA_SET"),
    ],
)
def test_a_program_takes_the_question_about_time(
    tool: str, package: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes to its daemon, which does not run here; an option that it does not have is told in other words."""
    need(tool, package)
    if tool == "timedatectl" and Path("/run/systemd/system").exists():
        pytest.skip("systemd runs here, and answers")
    program, *words = QUESTIONS[tool]
    assert said in run([program, *words]).text
    assert said not in run([program, "--no-such-option", *words]).text
    (tmp_path / tool).symlink_to(shutil.which(tool, path=SYSTEM_PATH) or "")
    monkeypatch.setenv("PATH", str(tmp_path))  # no other is there, so production asks this one
    answer = str(read_timekeeping(NodeRoot())["ptp" if tool == "pmc" else "sync"]())
    assert "ptp4l does not answer" in answer if tool == "pmc" else f"{tool}: " in answer


def test_systemctl_takes_the_questions_and_says_that_no_systemd_runs() -> None:
    need("systemctl", "systemd")
    if Path("/run/systemd/system").exists():
        assert "failed" not in read_services()
        return
    for leaf in (read_services(), read_unit_settings(["ssh.service/LimitNOFILE"])):
        assert "has not been booted with systemd" in str(leaf) or "Host is down" in str(leaf)
        assert "option" not in str(leaf)


def _is_used(protocol: str, port: int) -> bool:
    return f":{port:04X} " in Path("/proc/net", protocol).read_text()


def _wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_real_tpm_says_whether_somebody_owns_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with run_tpm(tmp_path) as tpm:
        for name, text in tpm.environment.items():
            monkeypatch.setenv(name, text)
        read = ask_tpm("owner")
        assert callable(read)
        none = {name: {"value": False} for name in ("owner", "endorsement", "lockout")}
        assert read() == none
        tpm.run("tpm2_changeauth", "-c", "o", "secret")
        assert read() == {**none, "owner": {"value": True}}
        tpm.run("tpm2_clear", "-c", "p")
        assert read() == none
    assert "failed" in read(), "a TPM that does not answer has no owner for all that is known, and is not proved"
