"""Refuses what the management profile of a node does not name in `may`: effects that reach further than settings."""

from __future__ import annotations

from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.management_profile import FarEffect


def require_effect(fleet: Fleet, name: str, effect: FarEffect, what: str) -> None:
    """Raise AssayError unless the profile of a node names the effect. `what` needs it, such as "gpu needs a cycle"."""
    profile = fleet.profile_of(name)
    if effect not in profile.may:
        key = f"ManagementProfile/{profile.name}"
        where = fleet.lines.get((key, "may")) or fleet.lines.get((key, ""), key)
        fix = f"add {effect} to `may` of the profile, or take out of the specs what asks for it"
        raise AssayError(f"{name}: {what}, and its profile {profile.name} does not allow that", where=where, fix=fix)
