"""The transport `ssh`: OpenSSH with the user's own configuration for connections, jump hosts and keys.

Ansible's connection variables of a node count here too, so that both reach it alike.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.node_settings import AnsibleConnection
from assay.observe.transports.command_transport import CommandTransport

SSH_QUIET = ("-T", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR")  # ssh then prints nothing but its reason to fail


class SshTransport(CommandTransport):
    """Runs the probe through ssh."""

    def wrap(self, node: Node, words: Sequence[str]) -> list[str]:
        """Return the ssh command. Raises AssayError where a variable is a Jinja template.

        The words are one quoted argument, since the login shell on the node splits it again.
        """
        ansible = node.settings.ansible
        _refuse_templates(node, ansible)
        options = [("-p", ansible.port), ("-l", ansible.user), ("-i", ansible.ssh_private_key_file)]
        command = ["ssh", *SSH_QUIET, *(word for option, text in options if text for word in (option, text))]
        command += [*shlex.split(ansible.ssh_common_args), *shlex.split(ansible.ssh_extra_args)]
        become = ["sudo", "-n"] if ansible.become else []
        return [*command, "--", ansible.host or node.name, shlex.join([*become, *words])]


def _refuse_templates(node: Node, ansible: AnsibleConnection) -> None:
    for name, text in ansible._replace(python_interpreter="", become=False)._asdict().items():
        if text and "{{" in text:
            what = f"ansible_{name} of {node.name} is a template, which only Ansible can fill in"
            raise AssayError(what, where="inventory", fix="write it plainly, or name the node in ~/.ssh/config")
