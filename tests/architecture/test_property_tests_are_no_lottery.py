"""Every property test has the same examples each time, and no deadline: `tests/conftest.py` says so for all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hypothesis import HealthCheck, settings

from tests.support.places import TESTS

OURS = {"deadline", "derandomize"}


def _differing(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of settings that have luck or the clock decide."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "settings":
            given = {one.arg: ast.unparse(one.value) for one in call.keywords}
            quick = "suppress_health_check" in given and not _calm(given["suppress_health_check"])
            if quick or any(given.get(name, "None") != "None" for name in OURS):
                yield call.lineno


def _calm(suppressed: str) -> bool:
    return "too_slow" in suppressed or suppressed == "list(HealthCheck)"


def test_what_runs_here_is_repeatable_and_knows_no_clock() -> None:
    one = settings()
    if settings.get_current_profile_name() == "repeatable":  # `make explore` has another
        assert one.derandomize
    assert one.deadline is None
    assert HealthCheck.too_slow in one.suppress_health_check


def test_no_property_test_differs() -> None:
    texts = {path: path.read_text() for path in TESTS.rglob("*.py")}
    found = {
        f"{path.relative_to(TESTS)}:{line}"
        for path, text in texts.items()
        if "from hypothesis import" in text
        for line in _differing(ast.parse(text))
    }
    assert not found
