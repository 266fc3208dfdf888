"""From what a BMC answers to readings: one property, one bay, one branch that fails alone.

Redfish lets a service leave out what it does not implement and answer null for what it does not know just now:
the first reads unsupported, the second failed. A bay that the service lists as empty reads absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from assay.model.errors import AssayError
from assay.model.reading import ReadingTree, absent, failed, unsupported, value
from assay.redfish.errors import BmcResourceMissing

Resource = dict[str, Any]
T = TypeVar("T")


def read_branch(read: Callable[[], Any]) -> Any:
    """Return what `read` gives; what keeps it from that becomes the branch's one leaf."""
    try:
        return read()
    except BmcResourceMissing as trouble:
        return unsupported(trouble.what)
    except AssayError as trouble:
        return failed(trouble.what)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return failed(f"the BMC answered something that is not Redfish: {type(error).__name__} {error}")


def read_once(read: Callable[[], T]) -> Callable[[], T]:
    """Return `read`, asked once: its answer, or the Trouble that it came to, stays."""
    kept: list[T | AssayError] = []

    def answer() -> T:
        if not kept:
            try:
                kept.append(read())
            except AssayError as trouble:
                kept.append(trouble)
        if isinstance(kept[0], AssayError):
            raise kept[0]
        return kept[0]

    return answer


def read_property(resource: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """Return the reading of one property."""
    found: Any = resource
    for step in path:
        if not isinstance(found, Mapping) or step not in found:
            return unsupported(f"{resource.get('@odata.id', 'the resource')} has no {'.'.join(path)}")
        found = found[step]
    return failed(f"the BMC does not know {'.'.join(path)} (null)") if found is None else value(found)


def read_health(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reading of a resource's health, rolled up from what is below it where the BMC does that."""
    rolled = read_property(resource, "Status", "HealthRollup")
    return rolled if "value" in rolled else read_property(resource, "Status", "Health")


def read_by_bay(units: Iterable[Resource], read: Callable[[Resource], ReadingTree]) -> ReadingTree:
    """Return readings by bay number: the number that ends each unit's id, else its place in the list."""
    units = list(units)
    names = [re.search(r"\d+$", str(unit.get("Id") or unit.get("MemberId") or "")) for unit in units]
    numbers = [str(int(found[0])) for found in names if found]
    if len(set(numbers)) < len(units):
        numbers = [str(place) for place in range(len(units))]
    return {number: read_bay(unit, read) for number, unit in zip(numbers, units, strict=True)}


def read_by_id(units: Iterable[Resource], read: Callable[[Resource], ReadingTree]) -> ReadingTree:
    """Return readings by the id of each unit."""
    return {str(unit.get("Id") or unit.get("MemberId")): read_bay(unit, read) for unit in units}


def read_bay(unit: Resource, read: Callable[[Resource], ReadingTree]) -> Any:
    """Return the readings of one unit, or that its bay is empty."""
    if (unit.get("Status") or {}).get("State") == "Absent":
        return absent("the bay is empty")
    return read_branch(lambda: read(unit))
