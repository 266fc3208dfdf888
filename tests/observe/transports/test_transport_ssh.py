"""A real sshd: the probe comes along, reads, and leaves nothing behind; what goes wrong is said in ssh's own words."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from assay.lab.node.shell import _environment as lab_environment
from assay.lab.node.stub import build_stub
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.node import Node
from assay.model.specs.node_settings import make_node_settings
from assay.observe.transports.command import SshTransport
from assay.observe.transports.transport import run_remote_probe
from assay.observe.transports.transport_protocol import TransportContext
from tests.support.reserved_ports import reserve_ports

SSHD = "/usr/sbin/sshd"
ENTRY = """\
#!/bin/sh
case "$SSH_ORIGINAL_COMMAND" in
*"python3 -I -S -"*) SSH_ORIGINAL_COMMAND="$SSH_ORIGINAL_COMMAND --root $ASSAY_ROOT --at $ASSAY_AT" ;;
esac
exec sh -c "$SSH_ORIGINAL_COMMAND"
"""
"""How a node of the lab is entered: the probe is told where the node's files are, and what time it is."""
needs_sshd = pytest.mark.skipif(not Path(SSHD).exists(), reason="no sshd here (Debian: openssh-server)")


@dataclass
class Server:
    """One sshd on a loopback address of its own, whose sessions see a virtual node."""

    address: str
    port: int
    folder: Path

    def node(self, **more: Any) -> Node:
        """Return the node as an inventory would describe it to Ansible."""
        common = f"-F none -o StrictHostKeyChecking=no -o UserKnownHostsFile={self.folder}/known"
        variables = {
            "ansible_host": self.address,
            "ansible_port": self.port,
            "ansible_ssh_private_key_file": str(self.folder / "id"),
            "ansible_ssh_common_args": common,
            "ansible_python_interpreter": str(self.folder / "bin" / "python3"),
            **more,
        }
        return Node("n0001", "p", "s", "r01", 1, "x", "spec", "managed", settings=make_node_settings(variables))


@pytest.fixture(scope="module")
def server(rehearsal: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("sshd")
    for key in ("host", "id"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    address = "127.0.10.1"
    (port,) = reserve_ports(1)
    world, home = rehearsal.world, rehearsal.world.folder("n0001")
    seen = lab_environment(world, home, world.clock().now(), build_stub(world.home / "lib"))
    # The probe takes its root from arguments only: this Python gives them, as the shell of the lab does.
    python = folder / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(
        f'#!/bin/sh\ncase "$*" in "-I -S -"*) set -- "$@" --root {home}/root --at {seen["ASSAY_AT"]};; esac\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    pairs = " ".join(f'"{name}={text}"' for name, text in {**seen, "PATH": f"{world.home}/tools:{os.defpath}"}.items())
    entry = folder / "enter"
    entry.write_text(ENTRY)
    entry.chmod(0o755)
    options = [
        f"ListenAddress={address}:{port}",
        f"AuthorizedKeysFile={folder}/id.pub",
        f"PidFile={folder}/pid",
        f"SetEnv={pairs}",
        f"ForceCommand={entry}",
        "StrictModes=no",
        "UsePAM=no",
    ]
    command = [SSHD, "-D", "-e", "-f", "/dev/null", "-h", str(folder / "host")]
    with (folder / "log").open("wb") as log:
        arguments = [part for option in options for part in ("-o", option)]
        process = subprocess.Popen([*command, *arguments], stdin=subprocess.DEVNULL, stderr=log, cwd="/")
    until(lambda: answers(address, port))
    yield Server(address, port, folder)
    process.terminate()
    process.wait(60)


def answers(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), 1) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def until(true: Callable[[], bool], limit_s: float = 120.0) -> None:
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)


@needs_sshd
def test_the_document_is_the_one_that_any_other_way_brings(server: Server, rehearsal: Any) -> None:
    over_ssh = run_remote_probe(server.node(), [], 60)["probe"]
    by_reach = run_remote_probe(rehearsal.fleet.nodes["n0001"], [], 60)["probe"]
    assert over_ssh["host"]["hostname"] == {"value": "n0001"}
    assert over_ssh["gpu"] == by_reach["gpu"]
    assert list(over_ssh) == list(by_reach)
    assert over_ssh["hca"] == by_reach["hca"]


@needs_sshd
def test_the_document_tells_which_machine_it_is_of(server: Server, rehearsal: Any) -> None:
    evidence = EvidenceDocument("n0001", rehearsal.world.clock().now(), run_remote_probe(server.node(), [], 60))
    own, other = (rehearsal.world.load(name) for name in ("n0001", "n0002"))
    gpus, others = (tuple((gpu["serial"], gpu["uuid"]) for gpu in node["gpus"]) for node in (own, other))
    assert evidence.find_stranger(own["serial"], gpus) == ""
    assert own["serial"] in evidence.find_stranger(other["serial"])
    assert any(uuid in evidence.find_stranger(own["serial"], others) for _, uuid in gpus)


@needs_sshd
def test_arguments_arrive_through_the_login_shell_as_they_are(server: Server) -> None:
    answer = run_remote_probe(server.node(), ["--active", "it's; echo $HOME *"], 60)
    assert answer["active"]["it's; echo $HOME *"]["failed"].startswith("no active part is called")


@needs_sshd
def test_an_installed_probe_is_used_where_the_inventory_says_so(server: Server, tmp_path: Path) -> None:
    installed = tmp_path / "with space"
    installed.write_text('#!/bin/sh\necho \'{"probe": {"host": {"value": "installed"}}}\'\n')
    installed.chmod(0o755)
    node = server.node(probe_command=[str(installed)])
    assert run_remote_probe(node, [], 60) == {"probe": {"host": {"value": "installed"}}}


@needs_sshd
def test_a_python_that_is_not_there_is_said_as_the_shell_says_it(server: Server) -> None:
    (reason,) = run_remote_probe(server.node(ansible_python_interpreter="/no/such/python3"), [], 60)["probe"].values()
    assert "/no/such/python3" in reason


@needs_sshd
def test_a_key_that_is_refused_is_the_reason(server: Server, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "strange"], check=True)
    options = "-o IdentitiesOnly=yes -o IdentityAgent=none"
    strange = server.node(ansible_ssh_private_key_file=str(tmp_path / "strange"), ansible_ssh_extra_args=options)
    (reason,) = run_remote_probe(strange, [], 60)["probe"].values()
    assert "Permission denied" in reason


@needs_sshd
def test_a_host_that_is_another_is_said_though_ssh_draws_a_box_first(server: Server, tmp_path: Path) -> None:
    key = (server.folder / "id.pub").read_text().split()[:2]
    (tmp_path / "known").write_text(f"[{server.address}]:{server.port} {' '.join(key)}\n")
    options = f"-F none -o StrictHostKeyChecking=yes -o UserKnownHostsFile={tmp_path}/known"
    (reason,) = run_remote_probe(server.node(ansible_ssh_common_args=options), [], 60)["probe"].values()
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in reason


@needs_sshd
def test_one_connection_that_persists_serves_the_next(server: Server) -> None:
    persist = f"-o ControlMaster=auto -o ControlPath={server.folder}/c -o ControlPersist=30"
    quick = ["sh", "-c", 'echo {\\"probe\\": {\\"a\\": {\\"value\\": 1}}}', "-"]
    node = server.node(ansible_ssh_extra_args=persist, probe_command=quick)
    try:
        for _ in range(2):
            assert run_remote_probe(node, [], 60)["probe"] == {"a": {"value": 1}}
        assert (server.folder / "c").exists()
    finally:
        command = ["ssh", "-F", "none", "-O", "exit", "-o", f"ControlPath={server.folder}/c", server.address]
        subprocess.run(command, capture_output=True, check=False)


@needs_sshd
def test_nothing_of_it_stays_on_the_node_after_its_deadline(server: Server, rehearsal: Any) -> None:
    state = rehearsal.world.folder("n0001") / "root/proc/uptime"
    state.unlink(missing_ok=True)
    os.mkfifo(state)
    try:
        for seconds in (4, 30):
            found = run_remote_probe(server.node(), [], seconds)["probe"]
            if "host" in found:  # else the machine is too busy to come so far
                break
        assert "failed" in found["host"] or "failed" in found["host"]["uptime_s"]
        assert found["hca"]
    finally:
        state.unlink()
    until(lambda: not readers_of(str(state)))


def readers_of(root: str) -> list[str]:
    """Return the processes whose environment names the node's folder and that are Python from standard input."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if (
                    b"-I" in words
                    and b"-S" in words
                    and root.partition("/root/")[0].encode() in (entry / "environ").read_bytes()
                ):
                    found.append(entry.name)
            except OSError:
                continue
    return found


def test_what_ansible_is_told_of_a_host_counts() -> None:
    variables = {"ansible_host": "10.0.0.7", "ansible_port": 2222, "ansible_user": "ops", "ansible_become": True}
    node = Node("n1", "p", "s", "r01", 1, "x", "spec", "managed", settings=make_node_settings(variables))
    command = SshTransport(TransportContext()).wrap(node, ["python3", "-c", "a b"])
    assert command[:4] == ["ssh", "-T", "-o", "BatchMode=yes"]
    assert command[6:] == ["-p", "2222", "-l", "ops", "--", "10.0.0.7", "sudo -n python3 -c 'a b'"]
    assert SshTransport(TransportContext()).wrap(replace(node, settings=make_node_settings({})), ["true"])[6:] == [
        "--",
        "n1",
        "true",
    ]


def test_an_address_that_begins_like_an_option_is_no_option() -> None:
    settings = make_node_settings({"ansible_host": "-oProxyCommand=x"})
    node = Node("n1", "p", "s", "r01", 1, "x", "spec", "managed", settings=settings)
    command = SshTransport(TransportContext()).wrap(node, ["true"])
    assert command.index("--") < command.index("-oProxyCommand=x")


def test_a_template_of_ansible_s_is_refused_in_words() -> None:
    settings = make_node_settings({"ansible_host": "{{ address }}"})
    node = Node("n1", "p", "s", "r01", 1, "x", "spec", "managed", settings=settings)
    with pytest.raises(AssayError, match="ansible_host of n1 is a template"):
        SshTransport(TransportContext()).wrap(node, ["true"])
    assert run_remote_probe(node, [], 60) == {
        "probe": {"failed": "ansible_host of n1 is a template, which only Ansible can fill in"}
    }
