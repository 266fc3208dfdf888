"""The units of the controller's machine, started by a real systemd as docs/install.md says, with all outputs on."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.deployed_fleet import (
    AGENT_TOKEN,
    MAIL_SECRET,
    SEALS,
    TICKETS,
    WITH_AGENT,
    find_lacks,
    list_mail_server_words,
    make_fleet,
    read_mails,
    read_shell_blocks,
    write_certificates,
    write_environment,
)
from tests.support.real_systemd import RealSystemd, needs_systemd

pytestmark = [pytest.mark.slow(minutes=2), needs_systemd]
MAILBOX = "/var/mail/box"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealSystemd]:
    """A machine on which somebody has typed what the docs say."""
    folder = tmp_path_factory.mktemp("machine")
    secrets = folder / "own/etc/assay"
    secrets.mkdir(parents=True)
    make_fleet(folder / "fleet", secrets / "fleet.bundle")
    write_certificates(secrets, "localhost", "127.0.0.1")
    write_environment(secrets / "env", "localhost", "/etc/assay/ca.pem")
    machine = RealSystemd(folder, folder / "own")
    try:
        machine.start()
        machine.path("/var/mail").mkdir()
        start_mail_server(machine)
        (prepares,) = read_shell_blocks("install.md", "A user and a clone")
        installs, _ = read_shell_blocks("install.md", "systemd")
        lines = "\n".join(prepares).replace("git@git.example.org:gpu/fleet.git", "/etc/assay/fleet.bundle")
        machine.do("sh", "-euc", lines)
        machine.do("chown", "assay", "/etc/assay/server.key")
        machine.do("sh", "-euc", "\n".join(["cd /srv/fleet", *installs]))
        yield machine
    finally:
        machine.stop()
        shutil.rmtree(folder)


def start_mail_server(machine: RealSystemd) -> None:
    """Start a mail server that takes nothing in the clear."""
    words = " ".join(list_mail_server_words("/etc/assay", MAILBOX))
    machine.path("/etc/systemd/system/mail.service").write_text(
        f"[Service]\nExecStart=/opt/assay/bin/python3 {words}\n"
    )
    machine.do("systemctl", "daemon-reload")
    machine.do("systemctl", "start", "mail")


def test_seals_tickets_and_mail_leave_the_closed_unit(machine: RealSystemd) -> None:
    def is_all_there() -> bool:
        notes = machine.run("git", "-C", "/srv/fleet", "-c", "safe.directory=*", "for-each-ref", "refs/notes").stdout
        return not find_lacks(*map(machine.path, (SEALS, TICKETS, MAILBOX)), notes)

    machine.wait_for("output of each kind", is_all_there)
    for mail in read_mails(machine.path(MAILBOX)):
        assert mail["to"] == "ops@acme.example"
    said = machine.do(*run_as_documented("ledger", "verify"))
    assert f"file:{SEALS} proves it" in said
    assert "git-note proves it" in said


def test_doctor_knows_what_the_units_get(machine: RealSystemd) -> None:
    answer = json.loads(machine.run(*run_as_documented("doctor", "--format", "json")).stdout)
    troubles = {need["name"]: need["trouble"] for need in answer["needs"]}
    for name in (MAIL_SECRET, "ASSAY_BMC"):
        assert troubles[f"the environment variable {name}"] == ""
    assert troubles["the environment variable ASSAY_BMC_MONITOR_PASSWORD"] == "not set"


def test_the_agent_of_a_node_delivers_to_the_server(machine: RealSystemd, tmp_path: Path) -> None:
    archive = tmp_path / "assay-agent.pyz"
    subprocess.run([sys.executable, "-m", "assay.node.agent.pack", str(archive)], check=True)
    (folder := machine.path("/etc/assay-agent")).mkdir()
    shutil.copy(archive, folder)
    shutil.copy(machine.path("/etc/assay/ca.pem"), folder)
    (folder / "env").write_text("ASSAY_SERVER=https://localhost:8443\n")
    (folder / "token").write_text(AGENT_TOKEN)
    (folder / "token").chmod(0o600)
    machine.do("cp", "/srv/fleet/deploy/assay-agent.service", "/etc/systemd/system")
    machine.do("hostname", WITH_AGENT)
    machine.do("systemctl", "daemon-reload")
    machine.do("systemctl", "start", "assay-agent")
    explain = run_as_documented("explain", WITH_AGENT, "--full")
    machine.wait_for("contact of the agent", lambda: "its agent was last in contact" in machine.do(*explain))
    assert machine.path("/var/lib/private/assay-agent").is_dir(), "its buffer is its own user's"


def run_as_documented(*words: str) -> list[str]:
    """Return the docs' command for a verb of assay, with the user and the variables of the units."""
    _, ((line),) = read_shell_blocks("install.md", "systemd")
    *before, verb = line.split()
    assert verb == "doctor"
    return [*before, *words]


def test_a_reload_and_a_stop_end_well(machine: RealSystemd) -> None:
    units = ("assay-reconcile", "assay-serve")
    machine.do("systemctl", "reload", *units)
    machine.do("systemctl", "stop", *units)
    for unit in units:
        assert machine.do("systemctl", "show", "--property=Result", "--value", unit).strip() == "success", unit
