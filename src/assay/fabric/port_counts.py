"""Whether all ports of a switch are listed, for tools that list every port, cabled or not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

PRODUCT = re.compile(r".*:([\w-]+)/U[0-9]+")
SWITCHLIKE = re.compile(r"MF0;|.*:[\w-]+/U[0-9]+$|Quantum|SwitchIB|Switch-IB|Infiniscale|SwitchX")
"""How switches describe themselves, managed and by default."""

PORTS: Mapping[str, set[int]] = {
    "MQM9700": {64, 65, 128, 129}, "MQM9790": {64, 65, 128, 129}, "MQM8700": {40, 41, 80, 81},
    "MQM8790": {40, 41, 80, 81}, "MSB7700": {36}, "MSB7780": {36}, "MSB7790": {36}, "MSB7800": {36, 37},
    "MSB7890": {36, 37}, "SX6036": {36},
}  # fmt: skip
"""How many ports a product has, whole or split, with and without the one of its aggregation node (NVIDIA's manuals)."""


def product_of(description: str) -> str:
    """Return the product that a switch names in its description, empty where it names none."""
    found = PRODUCT.fullmatch(description)
    return found[1] if found else ""


def gaps(numbers: Mapping[str, set[int]]) -> list[str]:
    """Say of which switches, by GUID, a port is missing among those that are listed."""
    return [
        f"{guid} does not list port {min(lacking)}"
        for guid, listed in numbers.items()
        if (lacking := set(range(1, max(listed, default=0) + 1)) - listed)
    ]


def ends_early(suspects: Iterable[str], numbers: Mapping[str, set[int]], products: Mapping[str, str]) -> list[str]:
    """Say of which of these switches ports may be missing after the last one that is listed.

    A switch has as many ports as its product has, or, for a product that is not known here, as another one like it.
    """
    tops = {guid: max(listed, default=0) for guid, listed in numbers.items()}
    said = []
    for guid in suspects:
        top, product = tops[guid], products[guid]
        alike = [tops[other] for other, its in products.items() if its == product and other != guid]
        if product in PORTS:
            if top not in PORTS[product] and top not in alike:
                said.append(f"{guid} lists {top} ports, but a {product} has {min(PORTS[product])} or more")
        elif top < max(alike, default=top + 1):
            said.append(f"{guid} lists {top} ports; nothing says whether that is all of them")
    return said
