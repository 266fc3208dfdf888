"""With the lab chosen, no play and no option makes the real ansible-playbook reach another machine than the lab's.

Recorders stand where the real machines would be: programs named ssh, scp and sftp come first in PATH, and a socket
listens at the address that the inventory gives the node's BMC.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from assay.act.actions import reboot
from assay.lab.process_control import start_lab, stop_lab
from tests.support.lab_room import Room, lab_room, lay_out, wish

NODE, OTHER = "n0004", "n0005"
SAY = "echo $ASSAY_ROOT"
SSH_BY_ALL_MEANS = (
    "-c",
    "ssh",
    "-e",
    "ansible_connection=ssh",
    "-e",
    "ansible_host=real9",
    "-e",
    "reach=ssh",
    "--become",
)


@dataclass
class Recorders:
    """What real machines were asked: each call of ssh, and each connection to the node's BMC."""

    programs: Path
    bmc: socket.socket
    connections: list[str] = field(default_factory=list)

    @property
    def calls(self) -> list[str]:
        log = self.programs / "log"
        return [*(log.read_text().splitlines() if log.exists() else ()), *self.connections]

    def listen(self) -> None:
        while True:
            try:
                connection, peer = self.bmc.accept()
            except OSError:
                return
            self.connections.append(str(peer))
            connection.close()


@dataclass
class Site:
    """A fleet repository whose real machines are recorders."""

    room: Room
    real: Recorders

    def run(
        self, program: str, *words: str, context: str = "lab", cwd: Path | None = None, **more: str
    ) -> tuple[int, str]:
        """Run a program of Ansible as a person would. Return its exit code, and what it printed."""
        environment = os.environ | {
            "PATH": f"{self.real.programs}{os.pathsep}{os.environ['PATH']}",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_HOME": str(self.room.root / ".ansible"),
            "ASSAY_CONTEXT": context,
            "ASSAY_BMC": "user:password",
        }
        command = [Path(sys.executable).parent / program, *words]
        done = subprocess.run(
            command,
            cwd=cwd or self.room.root,
            env=environment | more,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.returncode, done.stdout

    def write(self, path: str, *plays: object) -> str:
        file = self.room.root / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump(list(plays)))
        return str(file)

    @property
    def virtual(self) -> str:
        """What `SAY` prints on the node of the lab."""
        return str(self.room.world.home / "nodes" / NODE / "root")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    programs = tmp_path_factory.mktemp("programs")
    for name in ("ssh", "scp", "sftp"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {programs}/log\nexit 255\n')
        (programs / name).chmod(0o755)
    bmc = socket.create_server(("127.0.0.1", 0))
    real = Recorders(programs, bmc)
    threading.Thread(target=real.listen, daemon=True).start()

    def lay_out_site(root: Path) -> None:
        lay_out(root)
        (file,) = [path for path in (root / "inventory").iterdir() if f"{NODE}:" in path.read_text()]
        found = re.subn(
            rf"(    {NODE}:\n(?:      .*\n)*?      bmc_address:) .*",
            rf"\1 127.0.0.1\n      bmc_port: {bmc.getsockname()[1]}",
            file.read_text(),
        )
        assert found[1] == 1
        file.write_text(found[0])

    with lab_room(tmp_path_factory.mktemp("fleet"), lay_out=lay_out_site) as room:
        yield Site(room, real)
    bmc.close()


@pytest.fixture(autouse=True)
def nothing_real_is_asked(site: Site) -> None:
    """Each test begins without calls, and says itself which it expects."""
    (site.real.programs / "log").unlink(missing_ok=True)
    site.real.connections.clear()


@pytest.mark.slow(minutes=2)
@pytest.mark.parametrize("name", ["configure.yml", "zap.yml"])
def test_a_playbook_typed_as_the_docs_say_reaches_the_lab(site: Site, name: str):
    words = ("-i", "inventory", f"playbooks/{name}", "--limit", NODE, "--check", "--diff")
    assert f"ansible-playbook {' '.join(words)}" in "".join(path.read_text() for path in Path("docs").glob("*.md"))
    code, told = site.run("ansible-playbook", *words)

    assert code == 0, told
    assert f"[assay] the lab is chosen: plays reach only its machines ({site.room.world.home})" in told
    assert site.real.calls == []


def test_the_same_words_reach_the_real_machine_with_the_fleet_chosen(site: Site):
    playbook = ("-i", "inventory", "playbooks/configure.yml", "--limit", NODE, "--check", "--diff")
    code, told = site.run("ansible-playbook", *playbook, "--tags", "host", context="fleet")

    assert code == 4, told  # as with every ssh that fails
    assert "[assay]" not in told
    assert any(NODE in call for call in site.real.calls), told

    code, told = site.run("ansible-playbook", *playbook, "--tags", "bmc", context="fleet")
    assert code == 2, told
    assert site.real.connections, told


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("-i", "inventory", NODE, *SSH_BY_ALL_MEANS), id="ssh-by-all-means"),
        pytest.param(("-i", f"{NODE},", "all", *SSH_BY_ALL_MEANS), id="a-list-of-hosts"),
        pytest.param((NODE,), id="the-inventory-of-ansible-cfg"),
    ],
)
def test_a_command_reaches_the_lab_whatever_the_options_say(site: Site, words: tuple[str, ...]):
    code, told = site.run("ansible", *words, "-m", "raw", "-a", SAY)

    assert code == 0, told
    assert site.virtual in told
    assert site.real.calls == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        pytest.param(("-i", f"{NODE},real9,", "all"), "it has no real9", id="another-host"),
        pytest.param(("-i", "real9,", "all", *SSH_BY_ALL_MEANS), "for real9 would not run", id="only-another-host"),
        pytest.param(
            ("-i", "inventory", NODE, "-c", "local"), f"for {NODE} would not run on a machine of the lab", id="local"
        ),
        pytest.param(("localhost",), "for localhost would not run", id="localhost"),
    ],
)
def test_a_command_that_would_leave_the_lab_is_refused(site: Site, words: tuple[str, ...], reason: str, tmp_path: Path):
    mark = tmp_path / "it-ran"
    code, told = site.run("ansible", *words, "-m", "raw", "-a", f"touch {mark}")

    assert code != 0
    assert reason in told
    assert site.real.calls == []
    # Ansible asks for the variables of a list of hosts one by one: the lab's machine may have begun before the other
    assert not mark.exists() or words[1] == f"{NODE},real9,"


def test_a_play_with_another_host_is_refused_before_its_first_task(site: Site):
    mark = site.room.root / "it-ran"
    play = {"hosts": "all", "gather_facts": False, "strategy": "free", "tasks": [{"raw": f"touch {mark}"}]}
    inventory = site.write("own/hosts.yml")
    Path(inventory).write_text(yaml.safe_dump({"all": {"hosts": {NODE: {}, "real9": {}}}}))
    code, told = site.run("ansible-playbook", "-i", inventory, site.write("own/all.yml", play))

    assert code != 0
    assert "it has no real9" in told
    assert site.real.calls == []
    assert not mark.exists()


OWN_PLAY = {
    "hosts": NODE,
    "gather_facts": False,
    "vars": {"ansible_connection": "ssh", "reach": ["ssh", "real9"], "shown": "{{ bmc_port }}"},
    "tasks": [
        {"raw": SAY, "delegate_to": "{{ item }}", "loop": [OTHER, "real9", "localhost"], "ignore_errors": True},
        {"raw": SAY, "connection": "{{ item }}", "loop": ["local", "ssh"], "ignore_errors": True},
        {"raw": SAY, "loop": ["ssh", "ssh"], "loop_control": {"loop_var": "ansible_connection"}},
        {"raw": SAY, "loop": [["ssh", "real9"], ["ssh", "real9"]], "loop_control": {"loop_var": "reach"}},
        {"set_fact": {"ansible_connection": "ssh", "ansible_host": "real9", "bmc_address": "real9", "reach": ["ssh"]}},
        {"raw": SAY, "become": True, "register": "last"},
        {"meta": "reset_connection"},
        {"copy": {"content": "x", "dest": "{{ mark }}"}, "delegate_to": "localhost", "ignore_errors": True},
        {"debug": {"msg": "last={{ last.stdout }} bmc={{ bmc_address }}:{{ shown }}"}, "delegate_to": "localhost"},
        {"add_host": {"name": "real10", "groups": "more"}},
    ],
}


@pytest.mark.parametrize("strategy", ["linear", "ansible.builtin.host_pinned"])
def test_a_play_of_the_site_cannot_leave_the_lab(site: Site, strategy: str):
    tasks = OWN_PLAY["tasks"] if strategy == "linear" else OWN_PLAY["tasks"][:-1]  # only linear takes add_host
    plays = ({**OWN_PLAY, "strategy": strategy, "tasks": tasks}, {"hosts": "more", "tasks": [{"raw": SAY}]})
    mark = site.room.root / "it-ran"
    words = ("-i", "inventory", site.write("own/plays.yml", *plays), "-e", f"mark={mark}")
    code, told = site.run("ansible-playbook", *words)

    declared = yaml.safe_load((site.room.world.home / "inventory.yml").read_text())["all"]["hosts"][NODE]
    assert f"last={site.virtual}\\n bmc=127.0.0.1:{declared['bmc_port']}" in told.replace("\\r", ""), told
    assert f"[{NODE} -> {OTHER}]" in told
    for reason in (
        "it has no real9",
        "for localhost would not run",
        f"for {NODE} would not run on a machine of the lab",
    ):
        assert reason in told
    assert (code != 0) == (strategy == "linear"), told
    assert ("it has no real10" in told) == (strategy == "linear")
    assert site.real.calls == []
    assert not mark.exists()


def test_the_playbooks_hold_to_the_lab_from_anywhere_with_any_configuration(site: Site, tmp_path: Path):
    (tmp_path / "ansible.cfg").write_text("[defaults]\nstrategy = linear\n")
    root = site.room.root
    words = ("-i", str(root / "inventory"), str(root / "playbooks/configure.yml"), "--limit", NODE, "--tags", "sysctls")
    code, told = site.run("ansible-playbook", *words, "--check", "-c", "ssh", cwd=tmp_path)

    assert code == 0, told
    assert "[assay] the lab is chosen" in told
    assert site.real.calls == []


def test_the_inventory_shows_what_is_reached(site: Site):
    declared = yaml.safe_load((site.room.world.home / "inventory.yml").read_text())["all"]["hosts"][NODE]
    virtual, real = (declared["bmc_port"], "assay.fleet.reach"), (site.real.bmc.getsockname()[1], None)
    for context, option, expected in (("lab", (), virtual), ("lab", ("--export",), virtual), ("fleet", (), real)):
        words = ("ansible-inventory", "-i", "inventory", "--host", NODE, *option)
        code, told = site.run(*words, context=context)
        assert code == 0, told
        shown = json.loads(told[told.index("{\n") :])
        assert (shown["bmc_port"], shown.get("ansible_connection")) == expected


def test_nothing_is_run_if_the_lab_is_down(site: Site):
    stop_lab(site.room.world)
    try:
        for words in (
            ("ansible-playbook", "-i", "inventory", "playbooks/configure.yml", "--limit", NODE),
            ("ansible", "-i", "inventory", NODE, "-m", "raw", "-a", SAY),
            ("ansible", "-i", f"{NODE},", "all", *SSH_BY_ALL_MEANS, "-m", "raw", "-a", SAY),
        ):
            code, told = site.run(*words)
            assert code != 0
            assert "assay's context cannot be kept, so nothing is run" in told
            assert "assay lab up" in told
            assert "TASK" not in told
    finally:
        start_lab(site.room.world)
    assert site.real.calls == []


def test_the_context_of_the_clone_is_followed_and_a_wrong_one_refused(site: Site):
    choice = site.room.root / ".assay-context"
    before = choice.read_text()
    for text, code, words in (("lab\n", 0, site.virtual), ("moon\n", 1, "there is no context 'moon'")):
        choice.write_text(text)
        ended, told = site.run("ansible", NODE, "-m", "raw", "-a", SAY, context="")
        choice.write_text(before)
        assert ended == code, told
        assert words in told
    assert site.real.calls == []


def test_without_assay_only_a_chosen_lab_is_refused(site: Site, tmp_path: Path):
    hidden = tmp_path / "assay" / "__init__.py"
    hidden.parent.mkdir()
    hidden.write_text("raise ImportError('no assay here')")
    for context, expected in (("fleet", True), ("", False), ("lab", False)):  # the clone has chosen the lab
        code, told = site.run(
            "ansible", "localhost", "-m", "debug", "-a", "msg=hello", context=context, PYTHONPATH=str(tmp_path)
        )
        assert (code == 0) == expected, told
        assert ("no assay here" in told) != expected


def test_the_runner_keeps_to_the_context_of_the_fleet_that_was_decided_on(site: Site, monkeypatch: pytest.MonkeyPatch):
    """What a person chooses while a pass goes on is another pass's."""
    monkeypatch.setenv("PATH", f"{site.real.programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ASSAY_CONTEXT", "fleet")
    before = site.room.state(NODE)["boot"]["count"]
    reboot.run(site.room.context(), wish("reboot", NODE))

    assert site.room.state(NODE)["boot"]["count"] == before + 1
    assert site.real.calls == []
