"""Names each file that assay acts by and that changed, with the lines that are new."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator

from assay.decide.plan.fleet_revision import FleetRevision
from assay.decide.plan.other_change import ChangeTopic, OtherChange, list_all_pools, replace_control_characters
from assay.decide.plan.signer_changes import find_signers_path
from assay.declare.repository.acting_files import dump_statements, list_text_lines, normalize_file
from assay.declare.secret_detection import find_secret_shape
from assay.declare.validation_problems import SECRET_NAME
from assay.model.text.text_lists import format_count

TOPICS: tuple[tuple[tuple[str, ...], ChangeTopic], ...] = (
    (("playbooks/", "roles/", "collections/", "library/", "group_vars/", "host_vars/"), "playbook"),
    ((".github/", ".gitlab/", ".gitlab-ci.yml", "CODEOWNERS"), "workflow"),
    (("suites/", "conftest.py", "pytest.ini"), "suite"),
    (("specs/",), "spec"),
)
SHOWN_LINES, SHOWN_CHARACTERS = 4, 100


def list_file_changes(
    before: FleetRevision, after: FleetRevision, rewritten_checks: Collection[str]
) -> Iterator[OtherChange]:
    """Yield every file that says something else than before. `rewritten_checks` are shown by another section.

    Comments, blank lines and docstrings do not count.
    """
    pools = list_all_pools(after)
    signers = {find_signers_path(before), find_signers_path(after)}
    for path in sorted(before.files.keys() | after.files.keys()):
        old, new = before.files.get(path), after.files.get(path)
        if old == new or path in signers or not _says_other(path, old, new):
            continue
        if not _is_shown_by_checks(path, old, new, rewritten_checks):
            topic = _find_topic(path)
            what, number = _describe(path, old, new)
            yield OtherChange(topic, what, f"{path}:{number}", pools, weakens=topic == "playbook" and new is not None)


def _find_topic(path: str) -> ChangeTopic:
    return next((topic for starts, topic in TOPICS if path.startswith(starts)), "setting")


def _says_other(path: str, old: bytes | None, new: bytes | None) -> bool:
    return old is None or new is None or normalize_file(path, old) != normalize_file(path, new)


def _is_shown_by_checks(path: str, old: bytes | None, new: bytes | None, rewritten: Collection[str]) -> bool:
    """Whether only the checks of a suite file differ, and another section names them."""
    named = any(check.startswith(f"{path}::") for check in rewritten)
    return named and _dump_rest(old or b"") == _dump_rest(new or b"")


def _dump_rest(content: bytes) -> str:
    """Return a module without its checks and its imports: fixtures, hooks and constants."""
    try:
        statements = ast.parse(content).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return content.decode("utf-8", "replace")
    rest = (ast.Import, ast.ImportFrom)
    return dump_statements([one for one in statements if not isinstance(one, rest) and not _is_check(one)])


def _is_check(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef) and statement.name.startswith("test_")


def _describe(path: str, old: bytes | None, new: bytes | None) -> tuple[str, int]:
    """Return what is said about a file, and the first line that is new (1 if none is)."""
    if new is None:
        return f"{path} is removed", 1
    lines = _list_new_lines(old or b"", new)
    shown = "".join(f"\n  {number}: {_format_line(text)}" for number, text in lines[:SHOWN_LINES])
    more = f"\n  and {len(lines) - SHOWN_LINES} more" if len(lines) > SHOWN_LINES else ""
    if old is None:
        return f"{path} is new", 1
    gone = len(_list_new_lines(new, old))
    counts = [f"{format_count(count, 'line')} {what}" for count, what in ((len(lines), "new"), (gone, "gone")) if count]
    first = lines[0][0] if lines else 1
    return f"{path}: {', '.join(counts) or 'other comments, or the same lines in another order'}{shown}{more}", first


def _format_line(text: str) -> str:
    """Return the begin of a line for people: no control characters, and nothing that may be a secret."""
    if SECRET_NAME.search(text) or find_secret_shape(text):
        return "(not shown: it may hold a secret)"
    return replace_control_characters(text[:SHOWN_CHARACTERS])


def _list_new_lines(old: bytes, new: bytes) -> list[tuple[int, str]]:
    """Return number and text of the lines that occur in `new` more often than in `old`."""
    known = Counter(line for _, line in list_text_lines(old.decode("utf-8", "replace")))
    found = []
    for number, line in list_text_lines(new.decode("utf-8", "replace")):
        known[line] -= 1
        if known[line] < 0:
            found.append((number, line))
    return found
