"""Reads what a site's own training recorded: its digests and losses by step, and the GPUs and driver of the node."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay.model.evidence import EvidenceDocument
from assay.validate.active.training_run import StepSeries, TrainingRun
from assay.validate.active.unit_results import DIGEST, LoadDevice, LoadRun, LoadUnit, UnreadableRun

SITE_TRAINING = "site_training"
TEST = "train.site"
ENGINE = "site"
SEED = "0"


def read_site_training(evidence: EvidenceDocument) -> TrainingRun:
    """Return the run of `active.site_training`: one rank, since its lines do not say which rank tells them.

    Its engine is `site`, and its program the SHA-256 of the declaration. Raises UnreadableRun without digests.
    """
    digests = {step: digest for step, digest in _require(evidence, "digests").items() if DIGEST.fullmatch(str(digest))}
    losses = {step: struct.pack(">d", loss).hex() for step, loss in _require(evidence, "losses").items()}
    gpus, states = tuple(_list_gpus(evidence)), _list_units(digests)
    ended = evidence.read("active", SITE_TRAINING, "ended")
    load = LoadRun(
        devices=gpus,
        units=tuple(replace(unit, digests=unit.digests * len(gpus)) for unit in states),
        engine=ENGINE,
        backend="cuda",
        driver=_read_text(evidence, "probe", "gpu", "driver"),
        runtime=_read_text(evidence, "probe", "gpu", "cuda"),
        program=_read_text(evidence, "active", SITE_TRAINING, "program"),
        cut_short=ended.reason,
    )
    return TrainingRun(load, StepSeries("", states), StepSeries("own", ()), StepSeries("loss", _list_units(losses)))


def _list_units(said: Mapping[str, str]) -> tuple[LoadUnit, ...]:
    return tuple(LoadUnit(TEST, f"{SEED}.{step}", (digest,)) for step, digest in said.items())


def _list_gpus(evidence: EvidenceDocument) -> list[LoadDevice]:
    devices = evidence.read("probe", "gpu", "devices").value
    found = []
    for place in devices if isinstance(devices, Mapping) else ():
        index, uuid, name = (evidence.read("probe", "gpu", "devices", place, one) for one in ("index", "uuid", "name"))
        if "value" == index.kind == uuid.kind == name.kind:
            found.append(LoadDevice(int(index.value), str(uuid.value), str(name.value)))
    return found


def _require(evidence: EvidenceDocument, name: str) -> Mapping[str, Any]:
    reading = evidence.read("active", SITE_TRAINING, name)
    if reading.kind != "value":
        raise UnreadableRun(name, reading.kind, reading.reason)
    if not isinstance(reading.value, Mapping):
        raise UnreadableRun(name, "failed", f"is no branch: {reading.value!r}")
    return reading.value


def _read_text(evidence: EvidenceDocument, *path: str) -> str:
    reading = evidence.read(*path)
    return str(reading.value) if reading.kind == "value" else ""
