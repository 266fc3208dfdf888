"""Writes the configuration of conserver, which records the serial consoles of BMCs. No login stands in it.

conserver calls a shell for each console. The shell reads the login at its place and hands the password on by the
environment. After a console ends, it waits: BMCs lock an account that somebody tries too often.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.node_settings import BmcConsole

KEPT_DAYS, KEPT_PIECES, PIECE_MB = 31, 16, 4
"""How long and how much of a node is kept. conserver begins a new piece within five minutes."""
PAUSE_S = 60
SSH = "-tt -e none -o ConnectTimeout=20 -o ServerAliveInterval=30 -o NumberOfPasswordPrompts=1"
TRUST = "-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile"
TRIM = f"""find . -name '*.log-*' -mtime +{KEPT_DAYS - 1} -delete; for log in *.log; do \
ls -t "$log"-* 2>/dev/null | tail -n +{KEPT_PIECES} | xargs -r rm -f --; done; sleep 3600"""


def render_conserver(nodes: Iterable[Node], root: Path, folder: Path) -> str:
    """Return conserver.cf for nodes with a `bmc_console`.

    Raises AssayError if there are none, or where only assay can read a login.
    """
    if not (consoles := "".join(_render_consoles(nodes, root, folder))):
        raise AssayError("no node has a console to record", fix="declare bmc_console in the inventory")
    return f"""\
# Written by `assay console --conserver`. Start it with the user of assay's controller:
#   TZ=UTC conserver -M 127.0.0.1 -C THIS_FILE
# SIGHUP lets it read this file again. Nobody may attach: it only records.
config * {{ primaryport 33782; defaultaccess rejected; reinitcheck 1; }}
default * {{
    master localhost; type exec; options !ixon; rw ""; ro "";
    timestamp 1l; logfile {_quote(f"{folder}/&.log")}; logfilemax {PIECE_MB}m;
}}
console assay-keeps-{KEPT_DAYS}-days {{ logfile ""; exec {_quote(f"cd {shlex.quote(str(folder))}; {TRIM}")}; }}
{consoles}"""


def _render_consoles(nodes: Iterable[Node], root: Path, folder: Path) -> Iterator[str]:
    for node in nodes:
        if console := node.settings.bmc_console:
            command = f"{_make_command(node, console, root, folder)} || :; sleep {PAUSE_S}"
            yield f"console {node.name} {{ exec {_quote(command)}; }}\n"


def _make_command(node: Node, console: BmcConsole, root: Path, folder: Path) -> str:
    if console.way == "program":
        return f"cd {shlex.quote(str(root))}; {shlex.join(console.command)}"
    address = shlex.quote(node.bmc_address)
    login = f'login=$({_read_login(node, root)}); user="${{login%%:*}}"; password="${{login#*:}}"'
    if console.way == "ssh":
        trust = f"{TRUST}={shlex.quote(str(folder / 'known_hosts'))}"
        ssh = f'ssh {SSH} {trust} -p {console.port or 2200} -l "$user" {address} {shlex.join(console.command)}'
        return f'{login}; SSHPASS="$password" sshpass -e {ssh.rstrip()}'
    tool = f'IPMI_PASSWORD="$password" ipmitool -I lanplus -E -U "$user" -H {address} -p {console.port or 623} sol'
    return f"{login}; {tool} deactivate || :; {tool} activate"


def _read_login(node: Node, root: Path) -> str:
    """Return the shell's words that print `user:password`."""
    reference = node.settings.bmc_credentials or CredentialReference.model_construct()
    if reference.env:
        return f"printenv {shlex.quote(reference.env)}"
    if reference.file:
        return f"head -n1 {shlex.quote(str(root / reference.file))}"
    if reference.command:
        return f"cd {shlex.quote(str(root))}; {shlex.join(reference.command)} | head -n1"
    raise AssayError(
        "conserver cannot read the login of its console", where=node.name, fix="give bmc_credentials a file or command"
    )


def _quote(text: str) -> str:
    """Return a text as conserver reads it: between quotation marks, all but these stand for themselves."""
    return '"' + text.replace('"', '\\"') + '"'
