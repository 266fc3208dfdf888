"""The numbers of a policy by their dotted paths: which differ between two policies, and a policy with another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assay.model.specs.lifecycle_policy import LifecyclePolicy


def list_changed_values(old: LifecyclePolicy, new: LifecyclePolicy) -> dict[str, tuple[float, float]]:
    """Return old and new value of every number that both policies have and that differs, by its dotted path."""
    was, will = dict(_list_numbers(old.model_dump())), dict(_list_numbers(new.model_dump()))
    return {path: (value, will[path]) for path, value in was.items() if path in will and will[path] != value}


def replace_policy_value(policy: LifecyclePolicy, path: str, value: float) -> LifecyclePolicy | None:
    """Return the policy with another number at the dotted path of one that it has; None if it may not have it."""
    whole, default = policy.model_dump(exclude_unset=True), policy.model_dump()
    is_whole = isinstance(dict(_list_numbers(default))[path], int)
    place: Any = whole
    above_default: Any = default
    *above, last = (int(step) if step.isdigit() else step for step in path.split("."))
    for step in above:
        above_default = above_default[step]
        if isinstance(place, dict):
            place.setdefault(step, above_default)
        place = place[step]
    place[last] = int(value) if is_whole and value == int(value) else value
    try:
        return LifecyclePolicy.model_validate(whole)
    except ValueError:  # pydantic's own error is one
        return None


def _list_numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number of plain data by its dotted path."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _list_numbers(item, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _list_numbers(item, f"{path}.{number}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value
