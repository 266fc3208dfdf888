"""What a firmware task of Ansible returns: versions, stages, and a diff of each stage that changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.act.remedies.firmware_stages import FirmwareStage, find_version_mismatches
from assay.act.remedies.firmware_update import StageResult

NOTHING = "nothing to do: the profile leaves these components to others, or there is none"


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
    return _report(
        stages,
        [_diff(result.name, ", ".join(result.resets), result.before, result.after) for result in changed],
        [_describe(result) for result in changed],
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


def _describe(result: StageResult) -> str:
    pushed = f"pushed {', '.join(result.pushed)}" if result.pushed else "took over what was written"
    return f"{result.name}: {pushed}, resets: {', '.join(result.resets) or 'none'}"


def _diff(stage: str, reset: str, before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the inventory ids whose version differs, in the form that Ansible prints with --diff."""
    idents = [ident for ident in before if before[ident] != after[ident]]
    return {
        "before_header": f"{stage}: the BMC's inventory",
        "after_header": f"{stage}: the bundle (reset: {reset or 'none'})",
        "before": "".join(f"{ident}: {before[ident]}\n" for ident in idents),
        "after": "".join(f"{ident}: {after[ident]}\n" for ident in idents),
    }
