"""Where no access is declared: only people on this machine may read."""

from __future__ import annotations

import ipaddress

from starlette.requests import Request

FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-user", "x-real-ip")
"""Headers of a proxy: behind one, every visitor seems to be on this machine."""


def is_local_reader(request: Request) -> bool:
    """Whether a request comes from this machine, not through a proxy, and was meant for this machine.

    A page of another site could give its own host name our address; so the name must be one of this machine.
    """
    client = request.client.host if request.client else ""
    is_forwarded = any(name in request.headers for name in FORWARDED)
    return is_loopback(client) and is_loopback(request.url.hostname or "") and not is_forwarded


def is_loopback(host: str) -> bool:
    """Whether a host name or address is that of this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
