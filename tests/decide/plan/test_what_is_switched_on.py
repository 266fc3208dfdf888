"""What reaches far is named by its effect, with its nodes, by the plan of the change that switches it on."""

from __future__ import annotations

import pytest

from assay.decide.plan.output_formats import format_plan_text

ALL = "16 nodes (n0001..n0016)"
MAY = "may: [ac-cycles, boot-order, network-starts, other-accounts, wipe]"
EFFECTS = {
    "ac-cycles": f"cuts all power of {ALL} where firmware needs that",
    "boot-order": f"writes the boot order of {ALL}",
    "network-starts": f"each reboot and power cycle of {ALL} orders a start by network",
    "other-accounts": f"disables every other account on the BMCs of {ALL}",
    "wipe": f"erases the local drives of {ALL} in states that wipe",
}
PROFILE = "specs/profiles/managed.yaml"


def switched_on(repository) -> list[str]:
    return [one.why for one in repository.plan().risks if one.risk == "switched on"]


@pytest.mark.parametrize("effect", EFFECTS)
def test_an_effect_that_a_profile_gains_is_named(repository, effect: str) -> None:
    repository.edit(PROFILE, MAY, "may: []").commit()
    repository.edit(PROFILE, "may: []", f"may: [{effect}]")
    assert switched_on(repository) == [EFFECTS[effect]]
    (risk,) = (one for one in repository.plan().risks if one.risk == "switched on")
    assert risk.where.startswith(f"{PROFILE}:")
    assert f"switched on ({risk.where}): {EFFECTS[effect]}" in format_plan_text(repository.plan())


def test_an_effect_that_a_spec_asks_for_first_is_named_and_one_that_no_profile_allows_is_not(repository) -> None:
    repository.spec("    complete: true\n", "").commit()
    repository.spec("  accounts:\n", "  accounts:\n    complete: true\n")
    assert switched_on(repository) == [EFFECTS["other-accounts"]]
    repository.edit(PROFILE, MAY, "may: []")
    assert switched_on(repository) == []


def test_what_was_on_before_or_is_switched_off_is_not_named(repository) -> None:
    assert switched_on(repository) == []
    repository.edit(PROFILE, MAY, "may: []")
    assert switched_on(repository) == []


def test_notices_to_customers_are_named(repository) -> None:
    repository.policy("scheduler: {shown: false,", "scheduler: {shown: true,")
    assert switched_on(repository) == ["customers are told, on every node that leaves service, what becomes of it"]
    hook = "{pools: [h100-a], url: 'https://acme.site/assay', credentials: {env: ACME}}"
    repository.policy("notices:\n", f"notices:\n  webhooks: {{acme: {hook}}}\n")
    assert switched_on(repository)[1] == "messages about their nodes go to the customer acme"
