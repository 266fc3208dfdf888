"""Management profiles: each code, wrong and right."""

from __future__ import annotations

from cases.case import POLICY, SMALLEST, Case, one

PROFILE = (SMALLEST / "specs/profile.yaml").read_text()
BACK = one("specs/policy.yaml", POLICY, "in_service: true", "in_service: true, entry: [uncordon]")

CASES: dict[str, Case] = {
    "ASY0100": Case(
        BACK, {**BACK, **one("specs/profile.yaml", PROFILE, "[reboot]", "[uncordon]")}, "specs/profile.yaml:5:1"
    ),
}
