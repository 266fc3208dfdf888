"""Reads what a battery recorded: `active.battery` of an evidence document, as a run of units.

A unit is one test with one seed, computed by every GPU of the node. Each GPU gives one digest; None: it gave none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from assay.model.facts import frozen
from assay.model.reading import EvidenceReading, parse_reading

DIGEST = re.compile(r"[0-9a-f]{8,64}")
Digest = str | None
UnitName = tuple[str, str]
"""Test and seed."""


class UnreadableRun(Exception):
    """The evidence holds no run. `path` is below the branch, `kind` and `reason` are those of the reading there."""

    def __init__(self, path: str, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.kind = kind
        self.reason = reason


@frozen
class LoadDevice:
    """One GPU of a run. `kind` is its part number or name."""

    index: int
    uuid: str
    kind: str


@frozen
class LoadUnit:
    """The digests of one test and seed, in the order of the run's devices."""

    test: str
    seed: str
    digests: tuple[Digest, ...]

    @property
    def name(self) -> UnitName:
        """Test and seed."""
        return self.test, self.seed


@dataclass(frozen=True)
class LoadRun:
    """One run of the battery. `cut_short` says why it ended before its time, "" if it did not.

    `engine`, `backend`, `driver`, `runtime`, `program`: what computed; "" where the run does not say.
    `busy_ms`: how long each device computed in all; none where the run does not say.
    """

    devices: tuple[LoadDevice, ...]
    units: tuple[LoadUnit, ...]
    engine: str = ""
    backend: str = ""
    driver: str = ""
    runtime: str = ""
    program: str = ""
    cut_short: str = ""
    busy_ms: tuple[float, ...] = ()

    @cached_property
    def computed(self) -> tuple[LoadUnit, ...]:
        """The units for which at least one GPU gave a digest."""
        return tuple(unit for unit in self.units if any(unit.digests))

    def find_device(self, uuid: str) -> int | None:
        """Return the place of a GPU in the run, None if the run did not use it."""
        return next((place for place, device in enumerate(self.devices) if device.uuid == uuid), None)


def read_load_run(branch: Mapping[str, Any]) -> LoadRun:
    """Return the run of a branch such as `active.battery`. Raises UnreadableRun where devices or units lack."""
    devices = tuple(_read_devices(branch))
    units = read_units(branch, "units", len(devices))
    times = _read(branch, "busy_ms").value
    is_whole = isinstance(times, list) and len(times) == len(devices)
    has_times = is_whole and all(type(ms) in (int, float) and ms > 0 for ms in times)
    return LoadRun(
        devices=devices,
        units=units,
        cut_short=_find_early_end(branch),
        busy_ms=tuple(map(float, times)) if has_times else (),
        **{name: _read_text(branch, name) for name in ("engine", "backend", "driver", "runtime", "program")},
    )


def _read_devices(branch: Mapping[str, Any]) -> Iterator[LoadDevice]:
    listed = _require(branch, "devices", list)
    for device in listed:
        match device:
            case {"index": int(index), "uuid": str(uuid), "kind": str(kind)} if uuid:
                yield LoadDevice(index, uuid, kind)
            case _:
                raise UnreadableRun("devices", "failed", f"is no GPU with index, uuid and kind: {device!r}")
    uuids = [device["uuid"] for device in listed]
    if len(set(uuids)) != len(uuids):
        raise UnreadableRun("devices", "failed", "has one GPU twice, so a vote would count it twice")


def read_units(branch: Mapping[str, Any], name: str, devices: int) -> tuple[LoadUnit, ...]:
    """Return the units of one reading of a branch: a digest of each device. Raises UnreadableRun."""
    return tuple(_read_units(branch, name, devices))


def _read_units(branch: Mapping[str, Any], name: str, devices: int) -> Iterator[LoadUnit]:
    for test, seeds in _require(branch, name, Mapping).items():
        if not isinstance(seeds, Mapping):
            raise UnreadableRun(f"{name}.{test}", "failed", f"has no seeds: {seeds!r}")
        for seed, answer in seeds.items():
            digests = [answer] * devices if isinstance(answer, str) else answer
            is_whole = isinstance(digests, list) and len(digests) == devices
            if not is_whole or not all(
                digest is None or (isinstance(digest, str) and DIGEST.fullmatch(digest)) for digest in digests
            ):
                reason = f"has not one digest for each of {devices} GPUs: {answer!r}"
                raise UnreadableRun(f"{name}.{test}.{seed}", "failed", reason)
            yield LoadUnit(test, seed, tuple(digests))


def _find_early_end(branch: Mapping[str, Any]) -> str:
    ended = _read(branch, "ended")
    if ended.kind != "value":
        return ended.reason
    return "" if ended.value == "done" else f"ended with {ended.value!r}"


def _read_text(branch: Mapping[str, Any], name: str) -> str:
    reading = _read(branch, name)
    return reading.value if reading.kind == "value" and isinstance(reading.value, str) else ""


def _require(branch: Mapping[str, Any], name: str, kind: type) -> Any:
    reading = _read(branch, name)
    if reading.kind != "value":
        raise UnreadableRun(name, reading.kind, reading.reason)
    if not isinstance(reading.value, kind):
        raise UnreadableRun(name, "failed", f"is no {'list' if kind is list else 'branch'}: {reading.value!r}")
    return reading.value


def _read(branch: Mapping[str, Any], name: str) -> EvidenceReading:
    if name not in branch:
        return EvidenceReading("absent", reason=f"{name} is not in the evidence")
    reading = parse_reading(branch[name])
    return reading or EvidenceReading("failed", reason=f"{name} is no reading: {str(branch[name])[:80]}")
