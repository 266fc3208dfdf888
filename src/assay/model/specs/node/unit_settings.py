"""Settings that systemd's units and chrony read from files. The files are as the role `host_files` has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

UNIT_TYPES = ("service", "socket", "timer", "slice", "mount")
UnitName = Annotated[str, Field(pattern=rf"^[\w@:-][\w@.:-]*\.({'|'.join(UNIT_TYPES)})$")]
SettingName = Annotated[str, Field(pattern=r"^[A-Z]\w*$")]
SettingValue = Annotated[str, Field(pattern=r"^[^\s\\](.*[^\s\\])?$", max_length=1024)]
UnitSettings = dict[UnitName, dict[SettingName, SettingValue]]


WRITTEN_BY = "# assay writes this file from the node spec."


def list_setting_names(units: UnitSettings) -> list[str]:
    """Return the declared settings as `unit/Setting`."""
    return [f"{unit}/{setting}" for unit, settings in units.items() for setting in settings]


def make_drop_ins(units: UnitSettings) -> dict[str, dict[str, str]]:
    """Return the drop-in of each unit by path, and the command that applies it, as the role `host_files` takes them."""
    return {
        f"/etc/systemd/system/{unit}.d/90-assay.conf": {
            "content": _format_drop_in(unit, settings),
            "mode": "0644",
            "apply_with": f"sh -c 'systemctl daemon-reload && systemctl try-restart {unit}'",
        }
        for unit, settings in units.items()
    }


def _format_drop_in(unit: str, settings: Mapping[str, str]) -> str:
    section = unit.rpartition(".")[2].capitalize()
    lines = [f"{name}={text}" for name, text in settings.items()]
    return "\n".join([WRITTEN_BY, f"[{section}]", *lines]) + "\n"


def make_chrony_file(servers: Sequence[str]) -> dict[str, str]:
    """Return the file of chrony that names the servers, in the same form; nothing without servers."""
    if not servers:
        return {}
    lines = [WRITTEN_BY, *(f"server {server} iburst" for server in servers)]
    return {"content": "\n".join(lines) + "\n", "mode": "0644", "apply_with": "chronyc reload sources"}
