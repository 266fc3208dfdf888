"""A plan says at which trust step the nodes of a change are."""

from __future__ import annotations

import pytest

BUNDLE = "specs/firmware/hgx-h100-2026-10.yaml"
POLICY = "specs/lifecycle/default.yaml"


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("fleet: act", ""),
        ("fleet: watch", "at the trust step watch (specs/lifecycle/default.yaml:16): assay does nothing"),
        ("fleet: act\n  actions: {zap: suggest}", "at the trust step suggest"),
    ],
)
def test_the_step_of_new_firmware(repository, rules, words):
    repository.edit(POLICY, "  fleet: act\n", f"  {rules}\n")
    repository.commit()
    text = (repository.root / BUNDLE).read_text()
    version = next(line for line in text.splitlines() if line.strip().startswith("version:"))
    repository.edit(BUNDLE, version, version.split(":")[0] + ': "99.1"')
    notes = [note for note in repository.plan().notes if "trust step" in note]
    assert bool(notes) == bool(words)
    assert all(words in note for note in notes)


def test_a_raised_step_is_a_change_of_the_policy(repository):
    repository.edit(POLICY, "  fleet: act\n", "  fleet: suggest\n")
    [changed] = [one for one in repository.plan().policy if one.path == "trust.fleet"]
    assert (changed.old, changed.new) == ("act", "suggest")
