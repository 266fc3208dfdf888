"""OpenSSH with the user's own configuration; connections that persist, jump hosts and keys are its business.

What the inventory tells Ansible of a host counts here too, so that both go the same way.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from assay.model.errors import Trouble
from assay.model.fleet import Node

QUIET = ("-T", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR")  # so that what it says is the reason
OPTIONS = {"ansible_port": "-p", "ansible_user": "-l", "ansible_ssh_private_key_file": "-i"}
ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")


def ssh(node: Node, words: Sequence[str]) -> list[str]:
    """Return the command; the words go as one, quoted, since the login shell there takes them apart again."""
    options = [part for name, option in OPTIONS.items() if (said := _plain(node, name)) for part in (option, said)]
    more = [part for name in ARGUMENTS for part in shlex.split(_plain(node, name))]
    become = ["sudo", "-n"] if node.variables.get("ansible_become") is True else []
    host = _plain(node, "ansible_host") or node.name
    return ["ssh", *QUIET, *options, *more, "--", host, shlex.join([*become, *words])]


def _plain(node: Node, variable: str) -> str:
    said = str(node.variables.get(variable, ""))
    if "{{" in said:
        what = f"{variable} of {node.name} is a template, which only Ansible can fill in"
        raise Trouble(what, where="inventory", fix="write it plainly, or name the node in ~/.ssh/config")
    return said
