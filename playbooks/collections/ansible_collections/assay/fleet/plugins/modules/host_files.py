#!/usr/bin/python
"""assay.fleet.host_files: writes whole files and applies each change. Puts the old file back if that fails."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: host_files
short_description: Write files, validate and apply them
description:
  - Replaces each file whose content or permissions differ, by rename.
  - C(validate_with) must accept the new content first. C(apply_with) runs after the change. If it fails, the file that
    was there before is put back, the command runs once more, and the module fails. So a second run tries again.
  - No shell runs the commands.
options:
  files:
    description: By path, C(content), C(mode), C(validate_with) and C(apply_with), as in C(host.files) of a node spec.
    type: dict
    required: true
author: [assay]
"""
EXAMPLES = r"""
- name: Files
  assay.fleet.host_files:
    files:
      /etc/netplan/90-assay.yaml: {content: "network: {version: 2}\n", mode: "0600", apply_with: netplan apply}
"""
RETURN = r"""
changed_paths:
  description: The files that differed.
  type: list
  returned: success
"""
ROOT = os.environ.get("ASSAY_ROOT", "")


class HostFileChange:
    """One file: what is there, and what must be there."""

    def __init__(self, module: AnsibleModule, path: str, wanted: dict) -> None:
        self.module, self.name, self.wanted = module, path, wanted
        self.path = Path(ROOT + path)
        try:
            self.before = self.path.read_bytes() if self.path.exists() else None
            self.mode_before = f"{self.path.stat().st_mode & 0o7777:04o}" if self.path.exists() else ""
        except OSError as error:
            module.fail_json(msg=f"{path}: {error.strerror}")
        self.after = wanted["content"].encode()

    def differs(self) -> bool:
        """Return whether content or permissions differ."""
        return self.before != self.after or self.mode_before != self.wanted["mode"]

    def show(self) -> dict:
        """Return the difference for `--diff`."""
        before = (self.before or b"").decode(errors="replace")
        return {
            "before_header": f"{self.name} {self.mode_before or '(absent)'}",
            "after_header": f"{self.name} {self.wanted['mode']}",
            "before": before,
            "after": self.wanted["content"],
        }

    def bring(self) -> None:
        """Validate, replace and apply. Fail the module, with the old file in its place, if that does not work."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        scratch = self._write_scratch(self.after, self.wanted["mode"])
        if command := self.wanted.get("validate_with"):
            words = [word.replace("%s", scratch) for word in shlex.split(command)]
            code, output, trouble = self.module.run_command(words)
            if code:
                Path(scratch).unlink()
                text = f"{self.name} is refused by {words[0]}: {(trouble or output).strip()}"
                self.module.fail_json(msg=text, rc=code)
        Path(scratch).replace(self.path)
        if command := self.wanted.get("apply_with"):
            code, output, trouble = self.module.run_command(shlex.split(command))
            if code:
                self._put_back()
                self.module.run_command(shlex.split(command))
                text = f"{self.name}: {command!r} failed, so the file before is back: {(trouble or output).strip()}"
                self.module.fail_json(msg=text, rc=code)

    def _put_back(self) -> None:
        if self.before is None:
            self.path.unlink()
        else:
            Path(self._write_scratch(self.before, self.mode_before)).replace(self.path)

    def _write_scratch(self, content: bytes, mode: str) -> str:
        descriptor, scratch = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(scratch).chmod(int(mode, 8))
        return scratch


def main() -> None:
    """Run the module."""
    module = AnsibleModule({"files": {"type": "dict", "required": True}}, supports_check_mode=True)
    changes = [HostFileChange(module, path, wanted) for path, wanted in module.params["files"].items()]
    differing = [change for change in changes if change.differs()]
    shown = [change.show() for change in differing]
    if not module.check_mode:
        for change in differing:
            try:
                change.bring()
            except OSError as error:
                module.fail_json(msg=f"{change.name}: {error.strerror}")
    module.exit_json(changed=bool(differing), changed_paths=[change.name for change in differing], diff=shown)


if __name__ == "__main__":
    main()
