"""Turns Redfish properties into readings: one property, one bay, or one branch that fails alone.

A property that the service leaves out is unsupported; one that is null, which means unknown just now, is failed. A bay
that the service lists as empty is absent. A resource is changed only if it is still as it was read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from assay.adapters.bmc.errors import BmcResourceMissing, error_for_response
from assay.adapters.bmc.session import RedfishSession, Resource
from assay.model.errors import AssayError
from assay.model.reading import ReadingTree, absent, failed, unsupported, value


def read_branch(read: Callable[[], Any]) -> Any:
    """Return what `read` returns; if it raises, the branch is one leaf with the reason."""
    try:
        return read()
    except BmcResourceMissing as error:
        return unsupported(error.what)
    except AssayError as error:
        return failed(error.what)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return failed(f"the BMC answered something that is not Redfish: {type(error).__name__} {error}")


def read_property(resource: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """Return the reading of the property at a path."""
    content: Any = resource
    for step in path:
        if not isinstance(content, Mapping) or step not in content:
            return unsupported(f"{resource.get('@odata.id', 'the resource')} has no {'.'.join(path)}")
        content = content[step]
    return failed(f"the BMC does not know {'.'.join(path)} (null)") if content is None else value(content)


def read_place(chassis: Mapping[str, Any]) -> ReadingTree:
    """Return `rack` and `u` as somebody has written them into the chassis; "" and 0 where nobody has."""
    place = (chassis.get("Location") or {}).get("Placement") or {}
    return {"rack": value(str(place.get("Rack") or "")), "u": value(place.get("RackOffset") or 0)}


def read_health(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reading of a resource's health, with that of its parts where the BMC rolls it up."""
    rolled = read_property(resource, "Status", "HealthRollup")
    return rolled if "value" in rolled else read_property(resource, "Status", "Health")


def read_by_bay(units: Iterable[Resource], read: Callable[[Resource], ReadingTree]) -> ReadingTree:
    """Return readings by bay number: the number at the end of each unit's id, else its place in the list."""
    units = list(units)
    names = [re.search(r"\d+$", str(unit.get("Id") or unit.get("MemberId") or "")) for unit in units]
    numbers = [str(int(digits[0])) for digits in names if digits]
    if len(set(numbers)) < len(units):
        numbers = [str(index) for index in range(len(units))]
    return {number: read_bay(unit, read) for number, unit in zip(numbers, units, strict=True)}


def read_by_id(units: Iterable[Resource], read: Callable[[Resource], ReadingTree]) -> ReadingTree:
    """Return readings by the id of each unit."""
    return {str(unit.get("Id") or unit.get("MemberId")): read_bay(unit, read) for unit in units}


def read_bay(unit: Resource, read: Callable[[Resource], ReadingTree]) -> Any:
    """Return the readings of one unit; one absent leaf where its bay is empty."""
    if (unit.get("Status") or {}).get("State") == "Absent":
        return absent("the bay is empty")
    return read_branch(lambda: read(unit))


def patch_resource(bmc: RedfishSession, path: str, body: Mapping[str, Any]) -> None:
    """PATCH a resource, with the ETag of its present state where it has one: some BMCs refuse a PATCH without."""
    _change(bmc, "patch", path, body=dict(body))


def replace_expired_password(bmc: RedfishSession, account: str, password: str) -> None:
    """Set the password of an account that may do nothing else: its state may be unreadable, and have no ETag then."""
    _change(bmc, "patch", account, is_readable=False, body={"Password": password})


def delete_resource(bmc: RedfishSession, path: str) -> None:
    """DELETE a resource, with the ETag of its present state where it has one."""
    _change(bmc, "delete", path)


def _change(bmc: RedfishSession, method: str, path: str, *, is_readable: bool = True, **request: Any) -> None:
    read = bmc.request("get", path)
    if is_readable and read.status != 200:
        raise error_for_response(read, "GET", path, bmc.where)
    tags = [text for name, text in read.getheaders() if name.lower() == "etag" and read.status == 200]
    headers = {"If-Match": tags[0]} if tags else {}
    response = bmc.request(method, path, of_any=not is_readable, headers=headers, **request)
    if not 200 <= response.status < 300:
        raise error_for_response(response, method.upper(), path, bmc.where)
