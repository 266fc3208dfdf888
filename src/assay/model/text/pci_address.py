"""Writes PCI addresses in one form: drivers, tools and exporters differ in domain, case and function."""

from __future__ import annotations

import re
from functools import lru_cache

_ADDRESS = re.compile(
    r"(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<bus>[0-9a-f]{2}):(?P<slot>[0-9a-f]{2})(?:\.(?P<function>[0-7]))?"
)


@lru_cache(maxsize=4096)
def normalize_pci_address(text: str) -> str:
    """Return an address as Linux writes it, `0000:1b:00.0`, "" where the text is none.

    A missing domain is 0000, a missing function 0: the driver writes `0000:1b:00` for a GPU.
    """
    found = _ADDRESS.fullmatch(text.lower().rstrip(":."))
    if found is None:
        return ""
    return f"{int(found['domain'] or '0', 16):04x}:{found['bus']}:{found['slot']}.{found['function'] or 0}"
