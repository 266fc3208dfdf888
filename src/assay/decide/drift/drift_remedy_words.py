"""Says what the policy does about drift of a class on a node: the response of its rules for faults, and which rule."""

from __future__ import annotations

from collections.abc import Iterator

from assay.model.decision import CONFIGURE
from assay.model.fleet import Fleet
from assay.model.specs.policy_response import respond_to_class


class DriftRemedies:
    """The remedies of a fleet's policy. Each is computed once for all nodes that share it."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._policy = fleet, fleet.policy
        self._known: dict[tuple[str, str, str], tuple[str, ...]] = {}

    def describe(self, state: str, profile: str, fault_class: str) -> tuple[str, ...]:
        """Return the remedy of a class in a state, for people; two if it depends on whether jobs use the node."""
        key = (state, profile, fault_class)
        if key not in self._known:
            self._known[key] = tuple(dict.fromkeys(self._list_remedies(*key)))
        return self._known[key]

    def _list_remedies(self, state: str, profile: str, fault_class: str) -> Iterator[str]:
        catalog = self._fleet.fault_catalog
        if state not in self._policy.states or catalog.find_class(fault_class) is None:
            return
        allowed = self._fleet.profiles[profile]
        if not allowed.acts_on_faults:
            yield f"{fault_class}: tracked and never acted on, by its profile {profile}"
            return
        for in_use in (False, True):
            said = respond_to_class(self._policy, catalog, state, fault_class, in_use)
            where = self._fleet.lines.get((f"LifecyclePolicy/{self._policy.name}", f"faults.{said.rule}"), "")
            text = str(said)
            if said.remedy == CONFIGURE and CONFIGURE not in allowed.actions:
                text = f"noted, ticket: its profile {profile} does not allow {CONFIGURE}"
            yield f"{fault_class}: {text} [{where} {said.rule}]"
