"""Names of hosts and pools that other programs misread, and addresses that are not written in their one form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from assay.fleet.repository_check import RuleFinding, rule
from assay.fleet.repository_draft import HostDeclaration, RepositoryDraft
from assay.fleet.rules.dangling_names import format_few_names

HOST_NAME = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62})(?:\.[A-Za-z0-9][A-Za-z0-9_-]{0,62})*", re.ASCII
)
"""RFC 1123, section 2.1, with `_`, which Slurm and Ansible allow too."""
POOL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)
RESERVED_POOLS = ("all", "ungrouped")
PLAIN_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}", re.ASCII)
NUMBERS = re.compile(r"(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+))*\.?", re.IGNORECASE | re.ASCII)
"""What inet_aton(3) reads as an IPv4 address, in whichever base and with however many parts."""
ADDRESS = re.compile(r"[\w.:-]+")
"""What may be an address. Anything else is a Jinja template, or is refused by its own problem."""
ADDRESS_VARIABLES = ("bmc_address", "ansible_host")


@rule(
    "ASY0234",
    "an address that can be read in two ways",
    why="10.20.0.012 is 10.20.0.10 for some programs. A power cycle then hits the wrong machine.",
)
def ambiguous_address(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find addresses of BMCs and hosts that are not in their one form: IPv4, IPv6 (RFC 5952), or a lower-case name."""
    for host in draft.hosts:
        for variable in ADDRESS_VARIABLES:
            written = host.variables.get(variable)
            if isinstance(written, str) and written and (fix := find_address_fix(written)):
                message = f"{host.name}: {variable} {written} is not in the form that every program reads alike"
                yield RuleFinding(host.find_position(variable), message, fix)


@rule(
    "ASY0235",
    "a host name that is none",
    why="Schedulers, shells and files take such a name for something else.",
)
def bad_host_name(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find hosts with a name that has other signs than letters, digits, `-`, `_` and dots between them."""
    for host in draft.hosts:
        if not HOST_NAME.fullmatch(host.name):
            fix = "use letters a to z, digits, - and _, with dots between parts"
            yield RuleFinding(host.find_position(), f"{host.name!r} is no host name", fix)


@rule(
    "ASY0236",
    "a pool name that is none",
    why="Ansible puts every host into `all`, and hosts without a group into `ungrouped`. Limits count per pool.",
)
def bad_pool_name(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find pools named `all` or `ungrouped`, or with other signs than letters, digits, `-`, `_` and dots."""
    pools: dict[str, list[HostDeclaration]] = {}
    for host in draft.hosts:
        pools.setdefault(host.pool, []).append(host)
    for pool, hosts in pools.items():
        if pool in RESERVED_POOLS or not POOL_NAME.fullmatch(pool):
            place = hosts[0].find_position("pool") if hosts[0].variables.get("pool") else hosts[0].find_position()
            message = f"{pool!r} is no name of a pool: {format_few_names([host.name for host in hosts])}"
            yield RuleFinding(place, message, "list the nodes below a group with a name of letters, digits, - and _")


@lru_cache(maxsize=4096)
def normalize_address(written: str) -> str:
    """Return the one form of an address that equal addresses share: of IPv4, IPv6 or a host name."""
    if PLAIN_IPV4.fullmatch(written):
        return written
    address = _parse_address(written)
    return str(address) if address else written.lower().rstrip(".")


def _parse_address(written: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(written)
    except ValueError:
        return None


def find_address_fix(written: str) -> str:
    """Return how to write an address that is not in its one form, "" if it is."""
    if PLAIN_IPV4.fullmatch(written) or not ADDRESS.fullmatch(written):
        return ""
    if NUMBERS.fullmatch(written):
        return "write four numbers of 0 to 255, without leading zeros"
    address = _parse_address(written)
    if address is None and written.count(":") > 1:
        return "write an IPv6 address as fd00::1"
    normal = normalize_address(written)
    return f"write {normal}" if written != normal else ""
