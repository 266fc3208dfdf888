"""A plan names the nodes that an expired import would have taken over as they are."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from assay.decide.plan.inputs import find_node_standing
from assay.decide.plan.output_formats import format_plan_json, format_plan_text

BEFORE, AFTER = datetime(2036, 12, 30, tzinfo=UTC), datetime(2037, 1, 1, tzinfo=UTC)


def test_nodes_that_assay_has_not_seen_yet_and_that_an_expired_import_names_are_told(repository, known) -> None:
    repository.spec("gpu_temperature: {value: 85", "gpu_temperature: {value: 84")
    notes = repository.plan(replace(known("n0003"), now=AFTER)).notes
    assert [note for note in notes if "service_import" in note and "n0003" not in note and "n0004" in note]
    assert not [note for note in repository.plan(replace(known("n0003"), now=BEFORE)).notes if "service_import" in note]
    assert not [note for note in repository.plan().notes if "service_import" in note], "without a ledger, nobody knows"


def test_a_node_that_is_added_says_how_it_enters_on_that_day(repository, known) -> None:
    host = repository.host("n0016")
    repository.remove("n0016").commit()
    repository.edit("inventory/h100-a.yml", repository.host("n0015"), f"{repository.host('n0015')}{host}")
    for day, entry in ((BEFORE, "starts in service without proof"), (AFTER, "its service_import expired on")):
        made = repository.plan(replace(known("n0003"), now=day))
        assert entry in format_plan_text(made)
        (added,) = json.loads(format_plan_json(made))["nodes"]["added"]
        assert entry in added["entry"]


def test_an_unseen_node_is_not_counted_as_serving_after_its_import_has_expired(repository, known) -> None:
    revision = repository.declared()
    node, facts = revision.fleet.nodes["n0004"], known("n0003")
    standings = [find_node_standing(revision.policy, replace(facts, now=day), node).state for day in (BEFORE, AFTER)]
    assert standings == ["production", "onboard"]
