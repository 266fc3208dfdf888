"""Changes one Redfish resource, only if it is still as it was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.adapters.bmc.errors import error_for_response
from assay.adapters.bmc.session import RedfishSession


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
    response = bmc.request(method, path, headers=headers, **request)
    if not 200 <= response.status < 300:
        raise error_for_response(response, method.upper(), path, bmc.where)
