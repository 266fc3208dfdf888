"""CorrectionRules: which settings the policy lets a node in service get where it is, and how often."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from assay.model.backoff import Backoff
from assay.model.specs.node.declared_settings import SETTING_ROLES, SettingApplication
from assay.model.specs.spec_document import StrictModel
from assay.model.text.text_lists import suggest_nearest

SETTING_PATHS = sorted(SETTING_ROLES, key=len, reverse=True)
Contradiction = tuple[str, int, str, str]
"""The list, the number of its entry, what is wrong with it, and the fix."""


class CorrectionRules(StrictModel):
    """Settings that a node in service gets without leaving service, by fault rules with `remedy: configure`.

    A setting is named by its path in the node spec, such as `host.sysctls`. What stands in no list is left to people.

    - `at_once`: settings that a node gets while jobs run there. `idle`: settings that it gets while it has no job; it
      is cordoned meanwhile.
    - `times`: so often within `window_hours` a node gets a setting. If it differs once more, another tool changes it
      too, and people get a ticket. `waits_minutes`: how long assay waits before the second time, the third …
    - `per_hour`: how many corrections may begin in the whole fleet.
    """

    at_once: list[str] = Field(default=[])
    idle: list[str] = Field(default=[])
    times: int = Field(default=3, ge=1, le=20)
    window_hours: float = Field(default=168, gt=0)
    waits_minutes: list[float] = Field(default=[30, 240], min_length=1)
    per_hour: int = Field(default=60, ge=1)
    source: str = ""

    @property
    def backoff(self) -> Backoff:
        """The waits between corrections of the same setting, in seconds."""
        return Backoff(tuple(minutes * 60 for minutes in self.waits_minutes), factor=1.0)

    def find_application(self, setting: str) -> SettingApplication:
        """Return when a node in service gets a setting by the policy; `zap` if it does not get it there."""
        return "at_once" if setting in self.at_once else "idle" if setting in self.idle else "zap"

    def find_contradictions(self) -> Iterator[Contradiction]:
        """Yield the entries that name no setting, or ask for more than the setting allows."""
        for name, listed in (("at_once", self.at_once), ("idle", self.idle)):
            for number, setting in enumerate(listed):
                role = SETTING_ROLES.get(setting)
                if role is None:
                    fix = suggest_nearest(setting, SETTING_ROLES) or f"use one of {', '.join(SETTING_ROLES)}"
                    yield name, number, f"{setting!r} is no setting of a node spec", fix
                elif role.applied == "zap":
                    yield name, number, f"{setting} needs a restart or a reset, so only zap brings it", "remove it here"
                elif role.applied == "idle" and name == "at_once":
                    yield name, number, f"{setting} may disturb a running job", "move it to corrections.idle"
                elif name == "idle" and setting in self.at_once:
                    yield name, number, f"{setting} stands in corrections.at_once too", "remove one of the two"


def find_setting(name: str) -> str:
    """Return the path of `SETTING_ROLES` that a name below it belongs to, "" for none.

    `host.sysctls.vm.swappiness` belongs to `host.sysctls`, and `nics.eth0.mtu` to `nics.mtu`.
    """
    if found := next((path for path in SETTING_PATHS if name == path or name.startswith(f"{path}.")), ""):
        return found
    first, last = name.partition(".")[0], name.rpartition(".")[2]
    return f"{first}.{last}" if f"{first}.{last}" in SETTING_ROLES else ""


def needs_idle_node(setting: str, text: str) -> bool:
    """Whether a setting needs an idle node; in a mapping or list, whether an entry that a text names does."""
    role = SETTING_ROLES[setting]
    return role.applied != "at_once" or any(name in text for name in role.idle_names)
