"""What the site declares for its load tools, as the probe's caller passes it on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCRATCH = "/var/tmp"  # noqa: S108 — on the node's own drives; each test makes a folder of its own there


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """The inventory's `load_tools` (model/specs/node/load_tool_settings.py says what each means)."""

    environment: Mapping[str, str] = field(default_factory=dict)
    scratch: str = SCRATCH
    hpl: tuple[str, ...] = ()
    iperf3_server: str = ""
    rack_hosts: tuple[str, ...] = ()
    training: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> SiteSettings:
        """Return the settings in JSON, "" for none. Raises ValueError for any other text."""
        given: Any = json.loads(text) if text else {}
        if not isinstance(given, dict):
            raise ValueError("the settings of load tools are an object")
        return cls(
            {str(name): str(text) for name, text in dict(given.get("environment", {})).items()},
            str(given.get("scratch") or SCRATCH),
            tuple(map(str, given.get("hpl", ()))),
            str(given.get("iperf3_server", "")),
            tuple(map(str, given.get("rack_hosts", ()))),
            dict(given.get("training") or {}),
        )
