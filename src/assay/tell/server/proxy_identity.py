"""Reads who asks from a proxy's headers, if the connection comes from an address that is declared."""

from __future__ import annotations

import ipaddress

from starlette.requests import Request

from assay.model.specs.access_rules import AccessRules, ProxyTrust, VisitorRights
from assay.tell.server.visitor import Visitor, make_visitor

MAX_NAME = 64


def is_trusted_proxy(proxy: ProxyTrust | None, address: str) -> bool:
    """Whether the headers of a connection from this address count."""
    if proxy is None or not address:
        return False
    try:
        client = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    plain = getattr(client, "ipv4_mapped", None) or client
    return any(plain in ipaddress.ip_network(network) for network in proxy.addresses)


def read_proxy_visitor(rules: AccessRules, request: Request) -> Visitor | str:
    """Return the visitor that a trusted proxy names, else why there is none.

    A header that comes twice names nobody: one of the two may be the visitor's own.
    """
    proxy = rules.proxy
    assert proxy is not None
    names, groups = request.headers.getlist(proxy.user_header), request.headers.getlist(proxy.groups_header)
    if len(names) != 1 or len(groups) > 1:
        return "the proxy names nobody" if not names else "the proxy's headers come more than once"
    name = names[0].strip()
    if not name or len(name) > MAX_NAME or not name.isprintable():
        return "the proxy names somebody whose name cannot be one"
    rights = rules.visitors.get(name) or _find_group(proxy, groups[0] if groups else "")
    return make_visitor(name, rights) if rights else "neither this name nor one of its groups is declared"


def _find_group(proxy: ProxyTrust, header: str) -> VisitorRights | None:
    member_of = {group.strip() for group in header.split(",")}
    return next((rights for group, rights in proxy.groups.items() if group in member_of), None)
