"""What systemd runs: the state of every unit that matters, and those that failed."""

from __future__ import annotations

from assay.model.reading import failed, value
from assay.probe.files import Tree
from assay.probe.tools import read_tool

SYSTEMCTL_S = 2.5
SERVICES_S = 3.0
TYPES = "--type=service,mount,socket,timer"
LIST = ["systemctl", "list-units", "--all", "--plain", "--no-legend", "--no-pager", "--full", TYPES]
STATES = {"active", "activating", "deactivating", "failed", "inactive", "maintenance", "reloading", "refreshing"}


def read_services() -> Tree:
    """Return the `services` branch: `units` (state of each service by name, `active`) and `failed_units` (names)."""
    return read_tool(LIST, SYSTEMCTL_S, units)


def units(text: str) -> Tree:
    """Read `systemctl list-units --plain --no-legend`: unit, load, active, sub and description in columns.

    Units that are not installed, and only wanted by others, are left out.
    """
    rows = [fields for fields in map(str.split, text.splitlines()) if len(fields) > 3 and "." in fields[0]]
    known = {unit: state for unit, load, state, *_ in rows if load == "loaded" and state in STATES}
    if not known:
        said = text.strip().splitlines()
        return failed(f"systemctl: {said[-1][:120]}" if said else "systemctl printed nothing")
    names = {unit: unit.removesuffix(".service") for unit in known if unit.endswith(".service")}
    return {
        "units": {name: value(known[unit]) for unit, name in names.items()},
        "failed_units": value(sorted(unit for unit, state in known.items() if state == "failed")),
    }
