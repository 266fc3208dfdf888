"""Two runs are the same when every field of every outcome is, but for how long it took."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.model.outcome import FailureArtefact, Measurement
from assay.validate.results.paired_runs import compare_exactly


@pytest.fixture
def outcomes(of):
    hot = Measurement("gpu_temperature", 91.0, "°C", None, 85.0, "specs/x.yaml:3")
    kept = (FailureArtefact("evidence/n1", "a" * 64, 7),)
    about = {"evidence": "e1", "evidence_at": "2026-11-21T00:00:00+00:00", "fault": "gpu.thermal"}
    return [of("heat", "n1", "fail", "hot", measurements=(hot, hot), artefacts=kept, **about), of("heat", "n2")]


def test_order_and_duration_do_not_matter(keep, outcomes):
    other = [replace(one, duration_s=7.0) for one in reversed(outcomes)]
    same = compare_exactly(keep(outcomes), keep(other))
    assert (same.both, same.identical, same.agrees) == (2, True, True)


@pytest.mark.parametrize(
    "change",
    [
        {"reason": "warm"},
        {"fault": "gpu.missing"},
        {"phases": ("zap",)},
        {"active": True},
        {"evidence": "e2"},
        {"evidence_at": "2026-11-22T00:00:00+00:00"},
        {"known": "https://issues.example/7"},
        {"observed": True},
        {"node": "n9"},
        {"measurements": ()},
        {"measurements": (Measurement("gpu_temperature", 91.0, "°C", None, 85.0, "specs/x.yaml:3"),)},
        {"measurements": (Measurement("gpu_temperature", 91.0, "°C", None, 85.0, "specs/x.yaml:3"),) * 3},
        {"measurements": (Measurement("gpu_temperature", 91.0, "°C", None, 85.0, "specs/x.yaml:4"),) * 2},
        {"measurements": (Measurement("gpu_temperature", 91.5, "°C", None, 85.0, "specs/x.yaml:3"),) * 2},
        {"artefacts": ()},
        {"artefacts": (FailureArtefact("evidence/n1", "b" * 64, 7),)},
    ],
)
def test_any_other_field_does(keep, outcomes, change):
    same = compare_exactly(keep(outcomes), keep([replace(outcomes[0], **change), outcomes[1]]))
    assert (same.differing, same.verdicts, same.identical, same.agrees) == (1, 0, False, True)
    assert same.examples == ((outcomes[0].check, outcomes[0].subject),)


def test_another_verdict_is_told_apart(keep, outcomes):
    same = compare_exactly(keep(outcomes), keep([outcomes[0], replace(outcomes[1], verdict="skip", reason="why")]))
    assert (same.differing, same.verdicts, same.agrees) == (1, 1, False)


def test_what_only_one_has_is_told(keep, outcomes):
    same = compare_exactly(keep(outcomes), keep(outcomes[:1]))
    assert (same.both, same.alone, same.differing, same.identical) == (1, 1, 0, False)
