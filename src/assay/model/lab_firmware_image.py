"""The firmware images of the lab: what a push sends to a virtual BMC in place of the vendor's file.

An image is one line of JSON, `{"component": …, "version": …, "inventory": […]}`, and padding derived from that line.
The lab's BMC reads only the line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

SIZE = 4096


def make_image(component: str, version: str, inventory: Sequence[str]) -> bytes:
    """Return the image of `component` at `version` for the inventory ids it brings there; always the same bytes."""
    header = json.dumps({"component": component, "version": version, "inventory": list(inventory)}).encode() + b"\n"
    return header + hashlib.shake_256(header).digest(max(SIZE - len(header), 0))


def read_image_header(content: bytes) -> dict[str, Any]:
    """Return the header of an image. Raises ValueError for bytes that are no image."""
    plain = json.loads(content.split(b"\n", 1)[0])
    if not isinstance(plain, dict) or set(plain) != {"component", "version", "inventory"}:
        raise ValueError("not an image: the first line must hold component, version and inventory")
    return plain
