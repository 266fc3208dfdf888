"""Reads the ports of a point-to-point sheet. They are written as technicians and tools write them.

```
7   Port 7   P7   swp7     port 7; also IB Port 7
17/1   sw17p1              port 1 of cage 17, with two ports a cage: port 33
1/17/1                     ASIC 1, cage 17, port 1: also port 33; or cage 1, port 17 (see `PortLabelScheme`)
17/1/2   1/17/1/2          port 1 of cage 17, split in two, the second part
Blade 16_Port 2/20         a director switch: chip 2 of line card 16, port 20; also L16/U2/20, L16/U2/P20
L16/P20   Leaf 16 Port 20  a director switch: line card 16, port 20
mlx5_3  mlx5_3/1  mlx5_ib3 an adapter by its kernel name
HCA-4    HCA-4/1           the same one: UFM counts from 1
ibp24s0  ibP2p1s0  ib3     an adapter by its network device, whatever its kernel name is
```
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

PORTS_PER_CAGE = 2
_ADAPTER = re.compile(r"(?:mlx\d+_(?:ib)?(\d+)|hca[-_ ]?(\d+))(?:[/_ ]+(?:p|port)?[ _-]?(\d+))?", re.IGNORECASE)
_BLADE = re.compile(
    r"(blade|module|line ?card|leaf|spine|l|s)[ _-]*(\d+)[ _/-]*(?:port|p|u)[ _-]*(\d+)/p?(\d+)", re.IGNORECASE
)
_CARD = re.compile(r"(blade|module|line ?card|leaf|spine|l|s)[ _-]*(\d+)[ _/-]+(?:port|p)[ _-]*(\d+)", re.IGNORECASE)
_NETWORK_DEVICE = re.compile(r"ib(?:P\d+)?(?:p\d+)?s?\d+(?:f\d+)?(?:d\d+)?|mlx5_ib\d+")
_NUMBERS = re.compile(r"(?:ib)?[ _-]*(?:port|p|swp|eth)?[ _-]*(\d+(?:/\d+){0,3})", re.IGNORECASE)
_CAGE_NAME = re.compile(r"sw(\d+)p(\d+)(?:s(\d+))?", re.IGNORECASE)


class SheetPortLabel(NamedTuple):
    """A parsed label: the kernel name of an adapter, the part of a director switch, or the numbers of a port."""

    adapter: str = ""
    part: str = ""
    numbers: tuple[int, ...] = ()


def parse_port_label(text: str) -> SheetPortLabel:
    """Return what the text of a port names. Raises ValueError for any other text."""
    if found := _ADAPTER.fullmatch(text):
        number = int(found[1]) if found[1] is not None else int(found[2]) - 1
        if number >= 0:
            return SheetPortLabel(adapter=f"mlx5_{number}", numbers=(int(found[3] or 1),))
    if found := _BLADE.fullmatch(text):
        kind = "S" if found[1].lower().startswith("s") else "L"
        return SheetPortLabel(part=f"{kind}{int(found[2])}/U{int(found[3])}", numbers=(int(found[4]),))
    if found := _CARD.fullmatch(text):
        kind = "S" if found[1].lower().startswith("s") else "L"
        return SheetPortLabel(part=f"{kind}{int(found[2])}", numbers=(int(found[3]),))
    if _NETWORK_DEVICE.fullmatch(text):
        return SheetPortLabel(adapter=text, numbers=(1,))
    if found := _CAGE_NAME.fullmatch(text):
        return SheetPortLabel(numbers=tuple(int(number) for number in found.groups() if number))
    if (found := _NUMBERS.fullmatch(text)) and 0 not in (numbers := tuple(map(int, found[1].split("/")))):
        return SheetPortLabel(numbers=numbers)
    raise ValueError(f"{text!r} is no port: write it as 7, Port 7, 17/1 or mlx5_3")


def read_adapter_name(text: str) -> str:
    """Return the kernel's name of the adapter that a text names, "" for any other text."""
    try:
        return parse_port_label(text).adapter
    except ValueError:
        return ""


class PortLabelScheme(NamedTuple):
    """How a sheet labels the ports of switches.

    `cages`: some label has a cage. `split`: the number of parts of a port. `asic`: labels of three numbers are ASIC,
    cage and port, as NVIDIA's tools write them. Otherwise they are cage, port and part.
    """

    cages: bool = False
    split: int = 1
    asic: bool = False

    @classmethod
    def infer(cls, labels: Iterable[tuple[int, ...]]) -> PortLabelScheme:
        """Return the scheme of a sheet's labels. Three numbers include an ASIC if all of them start with 1."""
        every = list(labels)
        three = [label for label in every if len(label) == 3]
        asic = bool(three) and all(label[0] == 1 and label[2] <= PORTS_PER_CAGE for label in three)
        split = any(len(label) == 4 for label in every) or bool(three and not asic)
        return cls(any(len(label) > 1 for label in every), 2 if split else 1, asic)

    def find_port_number(self, label: tuple[int, ...]) -> int:
        """Return the number of a port. Raises ValueError for a label that does not fit the scheme."""
        if len(label) == 1:
            return label[0]
        if len(label) == 4 or (len(label) == 3 and self.asic):
            label = label[1:]
        cage, port, part = (*label, 1)[:3]
        if port > PORTS_PER_CAGE or part > self.split:
            text = "/".join(map(str, label))
            raise ValueError(f"{text} is no label of a switch with {PORTS_PER_CAGE} ports a cage")
        return ((cage - 1) * PORTS_PER_CAGE + port - 1) * self.split + part
