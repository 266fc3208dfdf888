"""assay.fleet.reach: runs commands on a node through the prefix `reach` of the inventory, as assay's probe does."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
name: reach
short_description: Run commands through the prefix C(reach) of the inventory
description:
  - Runs every command on the node after the words of the inventory's variable C(reach).
  - Exit code 255 means, as with ssh, that the node cannot be reached.
author: [assay]
options:
  reach:
    description: The words before each command.
    type: list
    elements: str
    required: true
    vars:
      - name: reach
"""
UNREACHABLE = 255


class Connection(ConnectionBase):  # type: ignore[misc]  # ansible ships no types
    """The documentation is above."""

    transport = "assay.fleet.reach"
    has_pipelining = True

    def _connect(self) -> Connection:
        return self

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run a shell command on the node. Return its exit code, stdout and stderr."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        command = [*self.get_option("reach"), "sh", "-c", cmd]
        done = subprocess.run(command, input=in_data or b"", capture_output=True, check=False)
        if done.returncode == UNREACHABLE:
            raise AnsibleConnectionFailure(done.stderr.decode(errors="replace").strip() or "the node cannot be reached")
        return done.returncode, done.stdout, done.stderr

    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file to the node."""
        super().put_file(in_path, out_path)
        code, _, trouble = self.exec_command(f"cat > {shlex.quote(out_path)}", Path(in_path).read_bytes())
        if code:
            raise AnsibleConnectionFailure(f"{out_path} cannot be written: {trouble.decode(errors='replace').strip()}")

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file from the node."""
        super().fetch_file(in_path, out_path)
        code, content, trouble = self.exec_command(f"cat {shlex.quote(in_path)}")
        if code:
            raise AnsibleConnectionFailure(f"{in_path} cannot be read: {trouble.decode(errors='replace').strip()}")
        Path(out_path).write_bytes(content)

    def close(self) -> None:
        """Nothing is kept open."""
