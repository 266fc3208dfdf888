"""Keeps Ansible on the context that assay works on: with the lab chosen, plays reach the lab's machines and no others.

Ansible loads it for every playbook of this folder, and for all that is run with the repository's ansible.cfg. With the
fleet chosen it does nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.vars import BaseVarsPlugin

DOCUMENTATION = """
name: assay_context
short_description: Keep plays on the machines of assay's lab while the lab is chosen
description:
  - With the lab chosen, gives each host the variables of its virtual machine, and refuses others.
  - With the fleet chosen, does nothing.
author: [assay]
options:
  stage:
    description: When it runs. Only at both stages it comes before every task.
    choices: [all]
    default: all
"""
ROOT = Path(__file__).absolute().parents[2]
hosts: Mapping[str, Any] = {}
refusal = ""
try:
    from assay.fleetkit import hold_to_context

    hosts = hold_to_context(ROOT)
except Exception as error:  # of an error here, Ansible would only warn, and go on
    choice = ROOT / ".assay-context"
    chosen = os.environ.get("ASSAY_CONTEXT") or ("of .assay-context" if os.path.lexists(choice) else "fleet")
    if choice.is_file() and not os.environ.get("ASSAY_CONTEXT"):
        chosen = choice.read_bytes().strip().decode(errors="replace")
    if chosen != "fleet" or not isinstance(error, ImportError):
        refusal = f"assay's context cannot be kept, so nothing is run: {error} ({sys.executable})"


class VarsModule(BaseVarsPlugin):  # type: ignore[misc]  # ansible ships no types
    """The documentation is above."""

    is_stateless = True

    def get_vars(self, _loader: Any, _path: str, entities: Sequence[Any]) -> dict[str, Any]:
        """Return the lab's variables of these hosts, for what shows an inventory without a play."""
        if refusal:
            raise AnsibleError(refusal)
        return {name: value for entity in entities for name, value in hosts.get(entity.name, {}).items()}
