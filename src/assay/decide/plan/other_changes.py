"""Lists every change that no other section of the plan shows, so that none is merged unseen.

These are schedules, gates, signers, known issues, declarations of checks, and each file that assay acts by.
"""

from __future__ import annotations

import ast
import base64
import binascii
import hashlib
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

from assay.decide.plan.inputs import FleetRevision, find_spec_line
from assay.decide.plan.other_spec_changes import (
    ChangeTopic,
    OtherChange,
    list_other_spec_changes,
    replace_control_characters,
    select_pools,
)
from assay.decide.plan.policy_changes import UNCOMPARED_FIELDS, compare_values
from assay.declare.repository.acting_files import dump_statements, list_text_lines, normalize_file
from assay.model.specs.check_catalog import ANY_POOL, CheckDeclaration, Gates, PoolGate
from assay.model.specs.known_issues import KnownIssue
from assay.model.specs.schedules import FleetSchedule
from assay.model.text.lists import format_count, format_list

TIME_FIELDS = {"cron", "every_minutes"}


def list_schedule_changes(before: FleetRevision, after: FleetRevision) -> Iterator[OtherChange]:
    """Yield what runs from the merge on, no longer, at other times, or otherwise."""
    was, will = dict(_list_schedules(before)), dict(_list_schedules(after))
    for key in sorted(was.keys() | will.keys()):
        old, new = was.get(key), will.get(key)
        if old == new:
            continue
        pools = select_pools(after, () if _is_for_all(old) or _is_for_all(new) else [*_pools(old), *_pools(new)])
        line = find_spec_line(after.fleet, f"Schedules/{key[0]}", f"schedules.{key[1]}")
        for change, weakens in _describe_schedule(after, key, old, new):
            yield OtherChange("schedule", f"schedule {key[1]}: {change}", line, pools, weakens)


def _list_schedules(revision: FleetRevision) -> Iterator[tuple[tuple[str, str], tuple[FleetSchedule, str]]]:
    for document in revision.fleet.schedules.values():
        for name, schedule in document.schedules.items():
            yield (document.name, name), (schedule, schedule.time_zone or document.time_zone)


def _pools(placed: tuple[FleetSchedule, str] | None) -> list[str]:
    return placed[0].pools if placed else []


def _is_for_all(placed: tuple[FleetSchedule, str] | None) -> bool:
    return placed is not None and not placed[0].pools


def _describe_schedule(
    after: FleetRevision,
    key: tuple[str, str],
    old: tuple[FleetSchedule, str] | None,
    new: tuple[FleetSchedule, str] | None,
) -> Iterator[tuple[str, bool]]:
    """Yield each sentence about one schedule, and whether less is looked at from the merge on."""
    if old is None or new is None:
        if placed := old or new:
            yield f"{placed[0].does} {'begins to run' if new else 'no longer runs'} {_time(*placed)}", new is None
        return
    if _time(*old) != _time(*new):
        yield f"{new[0].does} runs {_time(*new)} instead of {_time(*old)}", False
    document = f"Schedules/{key[0]}"
    for difference in compare_values(after, old[0], new[0], document, {*UNCOMPARED_FIELDS, *TIME_FIELDS, "time_zone"}):
        yield f"{difference.path} {difference.old or 'none'} → {difference.new or 'none'}", False


def _time(schedule: FleetSchedule, zone: str) -> str:
    if schedule.every_minutes is not None:
        return f"every {schedule.every_minutes} min"
    return f"at `{schedule.cron}` ({zone})"


def list_gate_changes(before: FleetRevision, after: FleetRevision) -> Iterator[OtherChange]:
    """Yield each bound of a gate that becomes looser or stricter."""
    was, will = before.fleet.gates, after.fleet.gates
    for name in sorted(was.keys() | will.keys()):
        old, new = dict(_list_bounds(was.get(name))), dict(_list_bounds(will.get(name)))
        for path in dict.fromkeys([*old, *new]):
            if old.get(path) != new.get(path):
                yield _compare_bound(after, name, path, old.get(path), new.get(path))


def _list_bounds(gates: Gates | None) -> Iterator[tuple[str, float]]:
    if gates is None:
        return
    for pool, gate in gates.pools.items():
        for field in PoolGate.model_fields:
            if (value := getattr(gate, field)) is not None:
                yield f"pools.{pool}.{field}", value
    if gates.new_failures is not None:
        yield "new_failures", gates.new_failures


def _compare_bound(after: FleetRevision, name: str, path: str, old: float | None, new: float | None) -> OtherChange:
    is_looser = new is None or (old is not None and (new < old) == path.endswith("success_percent"))
    direction = "looser" if is_looser else "stricter"
    was, will = ("none" if value is None else f"{value:g}" for value in (old, new))
    pool = path.split(".")[1] if path.startswith("pools.") else ANY_POOL
    pools = select_pools(after, () if pool == ANY_POOL else [pool])
    change = OtherChange("gate", f"gate {name}: {path} {was} → {will}: {direction}", "", pools, is_looser)
    return replace(change, line=find_spec_line(after.fleet, f"Gates/{name}", path))


USUAL_PATH = "specs/allowed_signers"
KEY_TYPES = ("ssh-", "ecdsa-", "sk-")


def list_signer_changes(before: FleetRevision, after: FleetRevision) -> Iterator[OtherChange]:
    """Yield each line of the allowed signers that is new, and each that is gone."""
    old_path, path = find_signers_path(before), find_signers_path(after)
    was, will = _list_lines(before, old_path), _list_lines(after, path)
    pools = after.pools
    for text, number in will.items():
        if text not in was:
            sentence = f"{_describe_signer(text)} may sign commits"
            yield OtherChange("signer", sentence, f"{path}:{number}", pools, weakens=True)
    for text, number in was.items():
        if text not in will:
            sentence = f"{_describe_signer(text)} may sign commits no longer"
            yield OtherChange("signer", sentence, f"{old_path}:{number} before the change", pools)


def find_signers_path(revision: FleetRevision) -> str:
    """Return the file of the allowed signers, by its usual name if the policy asks for no signatures."""
    commits = revision.policy.commits
    return commits.allowed_signers if commits else USUAL_PATH


def _list_lines(revision: FleetRevision, path: str) -> dict[str, int]:
    text = revision.files.get(path, b"").decode("utf-8", "replace")
    return {line: number for number, line in list_text_lines(text)}


def _describe_signer(line: str) -> str:
    """Return names, options, key type and fingerprint, as `ssh-keygen -l` prints it."""
    words = replace_control_characters(line).split()
    at = next((number for number, word in enumerate(words) if word.startswith(KEY_TYPES)), len(words))
    options = f" ({' '.join(words[1:at])})" if at > 1 and at < len(words) else ""
    return f"{words[0]}{options} with {_describe_key(words[at : at + 2])}"


def _describe_key(words: list[str]) -> str:
    try:
        kind, key = words
        digest = hashlib.sha256(base64.b64decode(key, validate=True)).digest()
    except (ValueError, binascii.Error):
        return "a key that cannot be read"
    return f"{kind} SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


TOPICS: tuple[tuple[tuple[str, ...], ChangeTopic], ...] = (
    (("playbooks/", "roles/", "collections/", "library/", "group_vars/", "host_vars/"), "playbook"),
    ((".github/", ".gitlab/", ".gitlab-ci.yml", "CODEOWNERS"), "workflow"),
    (("suites/", "conftest.py", "pytest.ini"), "suite"),
    (("specs/",), "spec"),
)


def list_file_changes(
    before: FleetRevision, after: FleetRevision, rewritten_checks: Collection[str]
) -> Iterator[OtherChange]:
    """Yield every file that says something else than before. `rewritten_checks` are shown by another section.

    Comments, blank lines and docstrings do not count.
    """
    pools = after.pools
    signers = {find_signers_path(before), find_signers_path(after)}
    for path in sorted(before.files.keys() | after.files.keys()):
        old, new = before.files.get(path), after.files.get(path)
        if old == new or path in signers:
            continue
        if old is not None and new is not None and normalize_file(path, old) == normalize_file(path, new):
            continue
        # Where only the checks of a suite file differ, another section names them.
        named = any(check.startswith(f"{path}::") for check in rewritten_checks)
        if not (named and _dump_rest(old or b"") == _dump_rest(new or b"")):
            topic: ChangeTopic = next((topic for starts, topic in TOPICS if path.startswith(starts)), "setting")
            text, number = _describe(path, old, new)
            yield OtherChange(topic, text, f"{path}:{number}", pools, weakens=topic == "playbook" and new is not None)


def _dump_rest(content: bytes) -> str:
    """Return a module without its checks and its imports: fixtures, hooks and constants."""
    try:
        statements = ast.parse(content).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return content.decode("utf-8", "replace")
    rest = [statement for statement in statements if not isinstance(statement, ast.Import | ast.ImportFrom)]
    checks = {f for f in rest if isinstance(f, ast.FunctionDef) and f.name.startswith("test_")}
    return dump_statements([statement for statement in rest if statement not in checks])


def _describe(path: str, old: bytes | None, new: bytes | None) -> tuple[str, int]:
    """Return what is said about a file, and the first line that is new (1 if none is)."""
    if new is None:
        return f"{path} is removed", 1
    if old is None:
        return f"{path} is new", 1
    lines, gone = _list_new_lines(old, new), len(_list_new_lines(new, old))
    counts = [f"{format_count(count, 'line')} {word}" for count, word in ((len(lines), "new"), (gone, "gone")) if count]
    return f"{path}: {', '.join(counts) or 'the same lines in another order'}", lines[0] if lines else 1


def _list_new_lines(old: bytes, new: bytes) -> list[int]:
    """Return the numbers of the lines that occur in `new` more often than in `old`."""
    known = Counter(line for _, line in list_text_lines(old.decode("utf-8", "replace")))
    lines = []
    for number, line in list_text_lines(new.decode("utf-8", "replace")):
        known[line] -= 1
        if known[line] < 0:
            lines.append(number)
    return lines


def list_known_issue_changes(before: FleetRevision, after: FleetRevision) -> Iterator[OtherChange]:
    """Yield each known issue that comes, goes, or gets another last day."""
    was = {_key(issue): issue for issue in before.fleet.known_issues}
    will = {
        _key(issue): (issue, find_spec_line(after.fleet, f"KnownIssues/{name}", f"issues.{number}"))
        for name, document in after.fleet.known_issue_lists.items()
        for number, issue in enumerate(document.issues)
    }
    for key, (issue, line) in will.items():
        old = was.get(key)
        pools = tuple(sorted(set(_list_matched_pools(after, issue))))
        if old is None:
            text = f"excuses {_describe_issue(issue)} until {issue.expires}{_required(after, issue)}"
            yield OtherChange("known issue", f"{issue.issue} {text}", line, pools, weakens=True)
        elif old.expires != issue.expires:
            text = f"excuses {_describe_issue(issue)} until {issue.expires} instead of {old.expires}"
            is_longer = issue.expires > old.expires
            yield OtherChange("known issue", f"{issue.issue} {text}", line, pools, is_longer)
    for key in was.keys() - will.keys():
        text = f"{was[key].issue} excuses {_describe_issue(was[key])} no longer"
        pools = tuple(sorted(set(_list_matched_pools(after, was[key]))))
        yield OtherChange("known issue", text, "specs/known-issues.yaml", pools)


def _key(issue: KnownIssue) -> tuple[str, ...]:
    return issue.sort_key


def _list_matched_pools(after: FleetRevision, issue: KnownIssue) -> Iterator[str]:
    for node in after.fleet.nodes.values():
        if issue.match.may_match_place(node.name, node.pool, node.rack):
            yield node.pool


def _describe_issue(issue: KnownIssue) -> str:
    match = issue.match
    given = {"subject": match.subject, "node": match.node, "pool": match.pool, "rack": match.rack}
    places = [f"{name} {pattern}" for name, pattern in given.items() if pattern != "*"]
    return f"{match.check} of {format_list(places) or 'every node'}"


def _required(after: FleetRevision, issue: KnownIssue) -> str:
    phases = list_required_phases(after)
    matching = [check for check in after.checks.values() if fnmatchcase(check.id, issue.match.check)]
    needed = [check.id for check in matching if phases.intersection(check.phases)]
    return f"; {format_count(len(needed), 'check')} that production requires" if needed else ""


def list_required_phases(revision: FleetRevision) -> set[str]:
    """Return the phases that a state in service watches, or that a state requires before it leads into service."""
    states = revision.policy.states
    doors = [
        state for state in states.values() if state.in_service or (state.pass_to and states[state.pass_to].in_service)
    ]
    watched = {phase for state in doors if state.in_service for phase in state.watch}
    return watched | {need.phase for state in doors for need in state.requires}


def list_check_declaration_changes(before: FleetRevision, after: FleetRevision) -> Iterator[OtherChange]:
    """Yield each check that decides less or more: it only observes, only reports, or its pass counts for longer."""
    required = list_required_phases(after)
    for name in sorted(before.checks.keys() & after.checks.keys()):
        for change, weakens in _compare_declarations(before.checks[name], after.checks[name], required):
            line = _find_check_line(after, name)
            yield OtherChange("check", f"{name} {change}", line, after.pools, weakens)
    for name in sorted(before.checks.keys() - after.checks.keys()):
        if required.intersection(before.checks[name].phases):
            change = f"{name}, which production requires, is judged no longer"
            yield OtherChange("check", change, "specs/checks", after.pools, weakens=True)


def _find_check_line(revision: FleetRevision, check: str) -> str:
    declared = (
        find_spec_line(revision.fleet, f"CheckCatalog/{name}", f"checks.{number}")
        for name, catalog in revision.fleet.check_catalogs.items()
        for number, declaration in enumerate(catalog.checks)
        if declaration.id == check
    )
    return next(declared)


def _compare_declarations(
    old: CheckDeclaration, new: CheckDeclaration, required: set[str]
) -> Iterator[tuple[str, bool]]:
    needed = ", though production requires it" if required.intersection(old.phases) else ""
    if old.is_observe_only != new.is_observe_only:
        yield (f"only observes{needed}", bool(needed)) if new.is_observe_only else ("decides", False)
    if old.report_only != new.report_only:
        yield (f"only reports{needed}", bool(needed)) if new.report_only else ("is asked for by states", False)
    if lost := sorted(required.intersection(old.phases) - set(new.phases)):
        yield f"leaves the phases {format_list(lost)}, which production requires", True
    if old.valid_hours != new.valid_hours:
        was, will = (
            f"{hours:g} h" if hours else "as long as the state allows" for hours in (old.valid_hours, new.valid_hours)
        )
        is_longer = new.valid_hours is None or (old.valid_hours is not None and new.valid_hours > old.valid_hours)
        yield f"has a pass that counts {will} instead of {was}", is_longer and bool(needed)


def list_other_changes(
    before: FleetRevision, after: FleetRevision, rewritten_checks: Collection[str], shown_specs: Collection[str]
) -> tuple[OtherChange, ...]:
    """Return the changes by topic. Other sections show `rewritten_checks` and `shown_specs` (`Kind/name`)."""
    lost = "what the merge changes in this file is not known"
    unread = [(line, f"cannot be read here ({reason}): {lost}") for line, reason in before.unread]
    return (
        *(OtherChange("unread", f"{before.name} {text}", line, after.pools) for line, text in unread),
        *list_schedule_changes(before, after),
        *list_gate_changes(before, after),
        *list_known_issue_changes(before, after),
        *list_check_declaration_changes(before, after),
        *list_signer_changes(before, after),
        *list_other_spec_changes(before, after, shown_specs),
        *list_file_changes(before, after, rewritten_checks),
    )
