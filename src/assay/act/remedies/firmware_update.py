"""Brings a firmware bundle onto a node, stage by stage: each image is pushed once, even if processes are killed.

Only the BMC's inventory decides. A component with the right version is skipped, a running update is taken over, an
update that waits for its reset is reset. Only then is an image pushed, at most once in a run. If an update of somebody
else was taken over and brought another version, the image is pushed after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay.act.actions.action import wait_until
from assay.act.remedies.bmc_updates import BmcConnector, FirmwareUpdater, FirmwareUpdateStatus
from assay.act.remedies.firmware_stages import (
    FirmwareStage,
    find_strongest_reset,
    find_version_mismatches,
    format_mismatches,
)
from assay.adapters.bmc.errors import BmcAnswerLost
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.specs.firmware_bundle import FirmwareComponent, FirmwareReset

VersionMismatches = dict[str, tuple[str, str]]
"""(expected, seen) by inventory id."""

START_PATIENCE = 5
"""How many times `read_back_s` a part may be missing from the inventory: GPUs start minutes after the BMC answers."""


@frozen
class StageResult:
    """What one stage did: versions by inventory id before and after, why each image was pushed, and the resets."""

    name: str
    changed: bool
    before: Mapping[str, str]
    after: Mapping[str, str]
    pushed: Mapping[str, str]
    resets: Sequence[FirmwareReset]


@dataclass
class FirmwareUpdateRun:
    """The firmware work on one node: how to reach its BMC, how to find an image, the limit of each wait.

    `find_image` returns the file to push and what a comparison of it found. It raises AssayError for one not to push.
    `read_back_s` is how long a BMC may answer with an old version after update and reset, `steady_s` how long new
    versions must hold before they are read for the last time. `tell` shows progress. `pushed` says for each component
    why its image was pushed.
    """

    node: str
    connect: BmcConnector
    find_image: Callable[[FirmwareComponent], tuple[Path, str]]
    deadline_s: float
    read_back_s: float = 120.0
    steady_s: float = 30.0
    tell: Callable[[str], None] = lambda _: None
    pushed: dict[str, str] = field(default_factory=dict)
    resets: list[FirmwareReset] = field(default_factory=list)
    _reached: set[str] = field(default_factory=set)
    """The inventory ids that have read their new version."""

    def update_stage(self, stage: FirmwareStage) -> StageResult:
        """Bring the components of a stage to their versions. Raises AssayError."""
        before = self.read_versions(stage.components)
        mismatches, resets = find_version_mismatches(before, stage.components), len(self.resets)
        if mismatches:
            self.tell(f"{stage.name}: {format_mismatches(mismatches)}")
            if others := self._bring(_select(stage.components, mismatches), adopt=True):
                self._bring(others, adopt=False)
        after = self.read_versions(stage.components) if mismatches else before
        pushed = {part.name: self.pushed[part.name] for part in stage.components if part.name in self.pushed}
        return StageResult(stage.name, bool(mismatches), before, after, pushed, self.resets[resets:])

    def list_ac_cycled(self, stages: Sequence[FirmwareStage]) -> list[str]:
        """Return the components that differ and need an AC cycle."""
        cycled = [part for stage in stages for part in stage.components if part.reset == "ac"]
        return [part.name for part in _select(cycled, find_version_mismatches(self.read_versions(cycled), cycled))]

    def confirm(self, components: Sequence[FirmwareComponent]) -> None:
        """Read the versions once more after `steady_s`. Raises AssayError if firmware rolled back by itself."""
        time.sleep(self.steady_s)
        if mismatches := self._await_versions(components):
            raise AssayError(
                f"the BMC no longer reads the new versions: {format_mismatches(mismatches)}", where=self.node
            )

    def read_versions(self, components: Sequence[FirmwareComponent]) -> dict[str, str]:
        """Return the version of every inventory id of the components, "absent" for a missing one."""
        with self.connect() as bmc:
            seen = bmc.read_versions()
        return {ident: seen.get(ident, "absent") for component in components for ident in component.inventory}

    def _bring(self, components: Sequence[FirmwareComponent], *, adopt: bool) -> list[FirmwareComponent]:
        """Install the components, then reset, a second time where one reset changes nothing.

        `adopt` takes over updates that the BMC knows. Returns the components that such an update brought to another
        version. Raises AssayError for every other one that does not read its version.
        """
        with self.connect() as bmc:
            updates = {part.name: self._install(bmc, part, adopt=adopt) for part in components}
        mismatches = self._activate(components)
        if again := [
            part for part in _select(components, mismatches) if _may_need_second_reset(part, mismatches, updates)
        ]:
            self.tell(f"{_names(again)}: one reset changed nothing, so a second one follows")
            mismatches = self._activate(components, again)
        late = _select(components, mismatches)
        for part in late:
            if part.name in self.pushed or updates[part.name].lost:
                raise self._explain_late(part, updates[part.name], mismatches)
        return late

    def _install(self, bmc: FirmwareUpdater, component: FirmwareComponent, *, adopt: bool) -> FirmwareUpdateStatus:
        """Have the image written, and return the update that did it; see `_bring`."""
        restarted = bmc.read_bmc_restart()
        known = bmc.find_update(component) if adopt else None
        if known and known.running:
            self.tell(f"{component.name}: takes over the running update {known.id}")
            return self._await_update(bmc, component, known.id, restarted)
        if adopt and _waits_for_reset(bmc, component, known):
            self.tell(f"{component.name}: is written already and waits for its reset")
            return FirmwareUpdateStatus(known.id if known else "", running=False, completed=True)
        image, compared = self.find_image(component)
        reason = f"{self._find_push_reason(bmc, component, known, adopt=adopt)} ({compared})"
        self.tell(f"{component.name}: pushes {image.name}, because {reason}")
        try:
            ident = bmc.push(component, image)
        except BmcAnswerLost as error:
            self.pushed[component.name] = f"{reason}; no answer came: {error.what}"
            update = bmc.find_update(component)
            ident = update.id if update and (known is None or update.id != known.id) else ""
        self.pushed.setdefault(component.name, reason)
        return self._await_update(bmc, component, ident, restarted)

    def _find_push_reason(
        self, bmc: FirmwareUpdater, component: FirmwareComponent, known: FirmwareUpdateStatus | None, *, adopt: bool
    ) -> str:
        reason = format_mismatches(find_version_mismatches(bmc.read_versions(), [component]))
        if not adopt:
            return f"{reason}, also after the update that was taken over"
        if known and known.completed:
            return f"{reason}, although the update {known.id} completed" + (" before a reset" * known.reset_since)
        return f"{reason}, and the update {known.id} failed: {known.message}" if known else reason

    def _await_update(
        self, bmc: FirmwareUpdater, component: FirmwareComponent, ident: str, restarted: str | None
    ) -> FirmwareUpdateStatus:
        """Wait for the end of an update. One that is lost ends when the inventory shows the version, or shows none."""
        update = wait_until(
            lambda: None if (seen := bmc.read_update(ident)).running else seen,
            self.deadline_s,
            f"the update of {component.name} ends",
            self.node,
        )
        if restarted is not None and bmc.read_bmc_restart() not in (None, "", restarted):
            update = replace(update, message=f"{update.message}; the BMC restarted in the middle of it")
        if update.lost:
            self.tell(f"{component.name}: {update.message}; the inventory has to show what was written")
            self._await_match(
                lambda: _find_unwritten(bmc, component), f"the inventory shows what was written of {component.name}"
            )
        elif not update.completed:
            if _find_unwritten(bmc, component):  # the inventory decides, not the task's words
                raise AssayError(f"the update of {component.name} failed: {update.message}", where=self.node)
            update = replace(update, completed=True)
        return update

    def _activate(
        self, components: Sequence[FirmwareComponent], waiting: Sequence[FirmwareComponent] = ()
    ) -> VersionMismatches:
        """Do the strongest reset of the components, or of those `waiting`. Return what differs then."""
        if (reset := find_strongest_reset(waiting or components)) != "none":
            self.tell(f"{_names(waiting or components)}: resets ({reset}), and waits for the new versions")
            with self.connect() as bmc:
                bmc.restart(reset)
            self.resets.append(reset)
        return self._await_versions(components)

    def _await_versions(self, components: Sequence[FirmwareComponent]) -> VersionMismatches:
        """Wait for the new versions. Return what differs, raise AssayError for a version that was there and is gone."""

        def find_mismatches() -> VersionMismatches:
            seen = self.read_versions(components)
            mismatches = find_version_mismatches(seen, components)
            self._reached |= seen.keys() - mismatches.keys()
            return mismatches

        mismatches = self._await_match(find_mismatches, "the BMC reads the new versions")
        for ident, (expected, seen) in mismatches.items():
            if ident in self._reached and _is_version(seen):
                message = f"{ident} read {expected} after the update and reads {seen} again: it rolled back by itself"
                raise AssayError(message, where=self.node, fix="look for the cause in the BMC's event log")
        return mismatches

    def _await_match(self, find_mismatches: Callable[[], VersionMismatches], goal: str) -> VersionMismatches:
        """Return {} once nothing differs, or what differs after the BMC has answered for `read_back_s`.

        Parts that the BMC does not list yet, because they start, have longer.
        """
        first: list[float] = []

        def look() -> VersionMismatches | None:
            try:
                mismatches = find_mismatches()
            except AssayError:
                first.clear()
                raise
            first[1:] = [time.monotonic()]
            all_read = all(_is_version(seen) for _, seen in mismatches.values())
            limit_s = self.read_back_s if all_read else self.read_back_s * START_PATIENCE
            return mismatches if not mismatches or first[-1] - first[0] > limit_s else None

        return wait_until(look, self.deadline_s, goal, self.node)

    def _explain_late(
        self, component: FirmwareComponent, update: FirmwareUpdateStatus, mismatches: VersionMismatches
    ) -> AssayError:
        reads = format_mismatches({ident: mismatches[ident] for ident in component.inventory if ident in mismatches})
        if update.lost:
            message = f"nobody knows whether {component.name} was written: {update.message}. After the reset, {reads}"
            return AssayError(message, where=self.node, fix="look at the BMC's event log; the next zap pushes it again")
        message = f"the BMC reads other versions after the update of {component.name} and its reset: {reads}"
        return AssayError(message, where=self.node, fix="compare the image with the version that the bundle declares")


def _select(components: Sequence[FirmwareComponent], mismatches: VersionMismatches) -> list[FirmwareComponent]:
    """Return the components with an inventory id that differs."""
    return [part for part in components if not mismatches.keys().isdisjoint(part.inventory)]


def _names(components: Sequence[FirmwareComponent]) -> str:
    return ", ".join(part.name for part in components)


def _is_version(seen: str) -> bool:
    """Say whether the inventory reads a version, rather than nothing (`read_versions`)."""
    return seen != "absent" and not seen.startswith("(")


def _may_need_second_reset(
    component: FirmwareComponent, mismatches: VersionMismatches, updates: Mapping[str, FirmwareUpdateStatus]
) -> bool:
    """Say whether all parts of a component still read an old version, although its update completed."""
    if component.reset == "none" or updates[component.name].lost:
        return False
    return all(_is_version(mismatches[ident][1]) for ident in component.inventory if ident in mismatches)


def _waits_for_reset(bmc: FirmwareUpdater, component: FirmwareComponent, known: FirmwareUpdateStatus | None) -> bool:
    """Say whether the component's version is written and waits: by the pending versions, else by the update's end."""
    if component.reset == "none":
        return False
    if not bmc.read_pending_versions().keys().isdisjoint(component.inventory):
        return not _find_unwritten(bmc, component)
    return bool(known and known.completed and not known.reset_since)


def _find_unwritten(bmc: FirmwareUpdater, component: FirmwareComponent) -> VersionMismatches:
    """Return what differs from the component's version, in what runs and in what waits for a reset."""
    return find_version_mismatches({**bmc.read_versions(), **bmc.read_pending_versions()}, [component])


NOTHING = "nothing to do: the profile leaves these components to others, or there is none"


def report_failure(work: FirmwareUpdateRun, done: Sequence[StageResult], error: AssayError) -> dict[str, Any]:
    """Return the result of a task that failed after these stages, with all that it pushed and reset before that."""
    was_changed = bool(work.pushed or work.resets)
    work_done = {"changed": was_changed, "pushed": list(work.pushed), "resets": list(work.resets)}
    return report_stages(done) | work_done | {"failed": True, "msg": str(error)}


def report_stages(done: Sequence[StageResult]) -> dict[str, Any]:
    """Return the result of a task that has done these stages."""
    changed = [result for result in done if result.changed]
    stages = [
        {
            "name": result.name,
            "changed": result.changed,
            "pushed": dict(result.pushed),
            "resets": list(result.resets),
            "firmware": dict(result.after),
        }
        for result in done
    ]
    texts = []
    for result in changed:
        pushed = f"pushed {', '.join(result.pushed)}" if result.pushed else "took over what was written"
        texts.append(f"{result.name}: {pushed}, resets: {', '.join(result.resets) or 'none'}")
    return _report(
        stages,
        [_diff(result.name, ", ".join(result.resets), result.before, result.after) for result in changed],
        texts,
    )


def report_planned(stages: Sequence[FirmwareStage], seen: Mapping[str, str]) -> dict[str, Any]:
    """Return the result of a task in check mode: what would change, in which stage, with which reset."""
    planned, diffs, words = [], [], []
    for stage in stages:
        mismatches = find_version_mismatches(seen, stage.components)
        before = {ident: seen[ident] for part in stage.components for ident in part.inventory}
        planned.append({"name": stage.name, "changed": bool(mismatches), "reset": stage.reset, "firmware": before})
        if mismatches:
            after = before | {ident: expected for ident, (expected, _) in mismatches.items()}
            diffs.append(_diff(stage.name, stage.reset, before, after))
            stale = [part.name for part in stage.components if not mismatches.keys().isdisjoint(part.inventory)]
            words.append(f"{', '.join(stale)} would change (reset: {stage.reset})")
    return _report(planned, diffs, words)


def _report(stages: list[dict[str, Any]], diffs: list[dict[str, str]], words: list[str]) -> dict[str, Any]:
    firmware = {ident: version for stage in stages for ident, version in stage["firmware"].items()}
    return {
        "changed": bool(diffs),
        "stages": stages,
        "firmware": firmware,
        "pushed": [name for stage in stages for name in stage.get("pushed", ())],
        "diff": diffs,
        "msg": "; ".join(words) or ("all versions are the bundle's" if firmware else NOTHING),
    }


def _diff(stage: str, reset: str, before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the inventory ids whose version differs, in the form that Ansible prints with --diff."""
    idents = [ident for ident in before if before[ident] != after[ident]]
    return {
        "before_header": f"{stage}: the BMC's inventory",
        "after_header": f"{stage}: the bundle (reset: {reset or 'none'})",
        "before": "".join(f"{ident}: {before[ident]}\n" for ident in idents),
        "after": "".join(f"{ident}: {after[ident]}\n" for ident in idents),
    }
