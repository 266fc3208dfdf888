"""`run_playbook` over the real ssh: behind a jump host, to a dead, slow or other machine, and with a worker that dies.

Whatever goes wrong is told within a minute, not at the deadline of the action, which is hours here.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.act.actions.action import ActionContext, EffectIntent, find_action_effort
from assay.act.remedies.ansible_playbook import run_playbook
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.observe.evidence_store import EvidenceStore
from tests.act.actions.overlay_node import OverlayNode, find_obstacle, run_overlay_node
from tests.support.lab_room import lay_out

NODE, MOST_S = "n0004", 60.0
PLAY = """\
- hosts: all
  gather_facts: false
  tasks:
    - {name: says where it is, ansible.builtin.raw: echo here >> /node/run/said}
    - {name: "{{ works }}", ansible.builtin.raw: "{{ works }}"}
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, OverlayNode]]:
    if reason := find_obstacle():
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("farm")
    lay_out(root)
    (root / "playbooks/look.yml").write_text(PLAY)
    (root / "tree/run").mkdir(parents=True)
    with run_overlay_node(root / "overlay", root / "tree", {"nothing": "true\n"}) as node:
        yield root, node


def make_context(farm: tuple[Path, OverlayNode], shown: list[str], **reach: Any) -> ActionContext:
    """Return the fleet with the node at an address, with these variables of Ansible."""
    root, node = farm
    known = root / "known_hosts"
    variables = {
        "ansible_host": "127.0.0.1",
        "ansible_port": node.port,
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(node.key),
        "ansible_ssh_common_args": f"-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile={known}",
        "ansible_control_path_dir": tempfile.mkdtemp(dir=root, prefix="cp"),  # else a connection of before is used
        **reach,
    }
    (root / "inventory/zz-farm.yml").write_text(yaml.safe_dump({"all": {"hosts": {NODE: variables}}}))
    home = root / ".assay"
    ledger, evidence = Ledger.open(home / "ledger.sqlite"), EvidenceStore(home / "evidence")
    return ActionContext(
        load_fleet(root), ledger, evidence, SystemClock(), home, root / "reports", progress=shown.append
    )


def play(context: ActionContext, name: str, works: str = "true") -> None:
    run_playbook(context, EffectIntent(name, "configure", NODE, "d1", "a test"), "look.yml", {"works": works})


def test_a_node_behind_a_jump_host_is_reached(farm: tuple[Path, OverlayNode]) -> None:
    root, node = farm
    quiet = f"-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile={root}/jump"
    jump = f"ssh {quiet} -i {node.key} -p {node.port} -W %h:%p root@127.0.0.1"
    address = "127.0.0.9"  # nothing but the jump host goes there: its sshd listens on 127.0.0.1 alone
    with pytest.raises(AssayError, match="Connection refused"):
        play(make_context(farm, [], ansible_host=address), "no-jump")
    play(make_context(farm, [], ansible_ssh_common_args=f'{quiet} -o ProxyCommand="{jump}"'), "jump")
    assert node.path("run/said").read_text() == "here\n"


@pytest.mark.parametrize("kind", ["dead", "slow", "other", "unknown"])
def test_a_node_that_does_not_answer_as_itself_is_told_within_a_minute(
    farm: tuple[Path, OverlayNode], kind: str
) -> None:
    root, node = farm
    before = node.path("run/said").read_text() if node.path("run/said").exists() else ""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        reach: dict[str, Any] = {"ansible_port": silent.getsockname()[1]}
        words = "timed out"
        if kind == "dead":
            silent.close()
            words = "Connection refused"
        if kind == "other":
            other = root / "other_host"
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
            line = f"[127.0.0.1]:{node.port} {Path(f'{other}.pub').read_text()}"
            (root / "others").write_text(line)
            reach = {"ansible_ssh_common_args": f"-o StrictHostKeyChecking=yes -o UserKnownHostsFile={root}/others"}
            words = "HOST IDENTIFICATION HAS CHANGED"
        if kind == "unknown":
            reach = {"ansible_ssh_common_args": f"-o UserKnownHostsFile={root}/nothing"}
            words = "Host key verification failed"
        began = time.monotonic()
        with pytest.raises(AssayError, match=words) as told:
            play(make_context(farm, [], **reach), kind)
    assert time.monotonic() - began < MOST_S
    assert told.value.where == NODE
    assert (node.path("run/said").read_text() if node.path("run/said").exists() else "") == before, "nothing was done"


def test_a_worker_that_died_is_told_within_a_minute(farm: tuple[Path, OverlayNode]) -> None:
    shown, killed = list[str](), list[float]()
    context = make_context(farm, shown)
    assert find_action_effort(context.fleet, "configure").deadline_s > 5 * MOST_S

    def kill_worker() -> None:
        while not killed:
            time.sleep(0.2)
            if any("sleep 987" in line for line in shown) and (worker := find_worker("sleep 987")):
                os.kill(worker, signal.SIGKILL)
                killed.append(time.monotonic())

    killer = threading.Thread(target=kill_worker, daemon=True)
    killer.start()
    with pytest.raises(AssayError, match=r"dead state|in the middle"):
        play(context, "worker", "sleep 987")
    assert time.monotonic() - killed[0] < MOST_S
    killer.join()


def find_worker(words: str) -> int:
    """Return the process of ansible-playbook that waits for the ssh whose command has these words, 0 for none."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            above = Path(f"/proc/{parent}/cmdline").read_bytes().decode(errors="replace")
        except (OSError, ValueError):
            continue
        if command[0].endswith("ssh") and words in " ".join(command) and "ansible" in above:
            return parent
    return 0
