"""Reads the subnet manager that `sminfo` prints.

```
"sminfo:" "sm lid" n "sm guid" guid ", activity count" n "priority" n "state" n name
```
Source: infiniband-diags 44, `sminfo.c`; the states are those of the SMInfo attribute.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.model.specs.fabric.ports_and_cables import normalize_guid

SMINFO = re.compile(
    r"sminfo: sm lid (\d+) sm guid (0x[0-9a-fA-F]{1,16}), activity count (\d+) priority (\d+) state (\d) (\w+)"
)
MASTER = "SMINFO_MASTER"


@dataclass(frozen=True, slots=True)
class SubnetManager:
    """The manager that answered: its port's GUID and LID, its activity counter, its priority and state."""

    guid: str
    lid: int
    activity: int
    priority: int
    state: str

    @property
    def master(self) -> bool:
        """Whether it manages the subnet. Otherwise it is on standby for another manager."""
        return self.state == MASTER


def is_sminfo(text: str) -> bool:
    """Return whether sminfo printed a text."""
    return text.lstrip().startswith("sminfo:")


def parse_sminfo(text: str) -> SubnetManager | None:
    """Return the manager, None for a text that is not of sminfo or is incomplete."""
    found = SMINFO.search(text)
    if not found:
        return None
    lid, guid, activity, priority, _, state = found.groups()
    return SubnetManager(normalize_guid(guid), int(lid), int(activity), int(priority), state)
