#!/usr/bin/python
"""assay.fleet.hca_settings: sets firmware settings of HCAs and NICs with mstconfig, and reads them back."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: hca_settings
short_description: Set firmware settings of HCAs and NICs
description:
  - Sets with C(mstconfig) what will differ at the next boot of the adapter, and reads it back.
  - An adapter that refuses to be asked, or that does not have a setting, fails the module before anything is set.
  - Settings count from the next restart on.
options:
  adapters:
    description: Settings by name, by PCI address or name of the network interface.
    type: dict
    required: true
author: [assay]
"""
EXAMPLES = r"""
- name: Firmware settings
  assay.fleet.hca_settings:
    adapters: {"0000:18:00.0": {LINK_TYPE_P1: IB}, eth0: {LINK_TYPE_P1: ETH}}
"""
RETURN = r"""
changed_settings:
  description: The settings that differed, with the adapter.
  type: list
  returned: success
"""
ROOT = os.environ.get("ASSAY_ROOT", "")
MARKS = ("*", "RO")  # columns before the name: differs from its default or present value; read only


def is_printed_as(wanted: str, seen: str) -> bool:
    """Return whether mstconfig prints a value like this: by its name, its number, or both (C(ETH(2)))."""
    names = {part.lower() for part in (seen, *re.split(r"[()]", seen)) if part}
    return bool(names & {wanted.lower(), {"true": "1", "false": "0"}.get(wanted.lower(), wanted.lower())})


class Adapter:
    """One adapter, with the settings that it must have."""

    def __init__(self, module: AnsibleModule, place: str, wanted: dict) -> None:
        self.module, self.place = module, place
        self.wanted = {name: str(value) for name, value in wanted.items()}
        self.program = module.get_bin_path("mstconfig", True)
        self.address = place if ":" in place else self.find_address()

    def find_address(self) -> str:
        """Return the PCI address of a network interface."""
        try:
            text = Path(f"{ROOT}/sys/class/net/{self.place}/device/uevent").read_text()
        except OSError as error:
            self.module.fail_json(msg=f"{self.place}: {error.strerror}")
        found = re.search(r"^PCI_SLOT_NAME=(\S+)", text, re.MULTILINE)
        if not found:
            self.module.fail_json(msg=f"{self.place} is no PCI device")
        return found[1].lower()

    def run(self, *words: str) -> str:
        """Run mstconfig for this adapter, and return what it prints. It prints refusals on standard output."""
        code, output, trouble = self.module.run_command([self.program, "-d", self.address, *words])
        if code:
            refusals = [line[3:].strip() for line in output.splitlines() if line.startswith("-E-")]
            self.module.fail_json(msg=f"{self.place}: mstconfig: {'; '.join(refusals) or trouble.strip()}", rc=code)
        return output

    def find_differing(self) -> list:
        """Return (name, seen, wanted) of the settings that will differ at the next boot."""
        rows = {}
        for line in self.run("query", *self.wanted).splitlines():
            words = line.split()
            words = words[1:] if words and words[0] in MARKS else words
            if len(words) == 2:
                rows[words[0]] = words[1]
        missing = [name for name in self.wanted if name not in rows]
        if missing:
            self.module.fail_json(msg=f"{self.place} has no setting {', '.join(missing)}")
        return [(name, rows[name], want) for name, want in self.wanted.items() if not is_printed_as(want, rows[name])]

    def bring(self, differing: list) -> None:
        """Set these settings, and fail the module if the adapter does not keep them."""
        self.run("-y", "set", *(f"{name}={wanted}" for name, _, wanted in differing))
        left = [f"{name} is {seen}, expected {wanted}" for name, seen, wanted in self.find_differing()]
        if left:
            self.module.fail_json(msg=f"{self.place}: mstconfig did not set {'; '.join(left)}")


def main() -> None:
    """Run the module."""
    module = AnsibleModule({"adapters": {"type": "dict", "required": True}}, supports_check_mode=True)
    adapters = [Adapter(module, place, wanted) for place, wanted in module.params["adapters"].items()]
    found = [(adapter, adapter.find_differing()) for adapter in adapters]
    differing = [(adapter, some) for adapter, some in found if some]
    if not module.check_mode:
        for adapter, some in differing:
            adapter.bring(some)
    rows = [(f"{name} of {adapter.place}", seen, wanted) for adapter, some in differing for name, seen, wanted in some]
    before, after = ("".join(f"{row[0]}: {row[side]}\n" for row in rows) for side in (1, 2))
    module.exit_json(
        changed=bool(rows), changed_settings=[row[0] for row in rows], diff={"before": before, "after": after}
    )


if __name__ == "__main__":
    main()
