r"""What a port in a sheet means, as technicians and tools write it.

```
7   Port 7   P7   swp7     port 7
17/1                       port 1 of cage 17, of two: 33
1/17/1                     ASIC 1, cage 17, port 1: also 33; or cage 1, port 17?, see `Numbers`
17/1/2   1/17/1/2          port 1 of cage 17, split in two, the second part
Blade 16_Port 2/20         a director switch: chip 2 of line card 16, port 20
mlx5_3   mlx5_3/1          an adapter by its kernel's name
HCA-4    HCA-4/1           the same one: UFM counts from 1
```
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

CAGE = 2
_ADAPTER = re.compile(r"(?:mlx\d+_(\d+)|hca[-_ ]?(\d+))(?:[/_ ]+(?:p|port)?[ _-]?(\d+))?", re.IGNORECASE)
_BLADE = re.compile(
    r"(blade|module|line ?card|leaf|spine|l|s)[ _-]*(\d+)[ _/-]*(?:port|p|u)[ _-]*(\d+)/(\d+)", re.IGNORECASE
)
_NUMBERS = re.compile(r"(?:port|p|swp|ib)?[ _-]*(\d+(?:/\d+){0,3})", re.IGNORECASE)


class PortWords(NamedTuple):
    """What is written: the kernel's name of an adapter, the part of a director switch, the numbers of a label."""

    adapter: str = ""
    part: str = ""
    numbers: tuple[int, ...] = ()


def words_of(text: str) -> PortWords:
    """Return what a port's text says. Raises ValueError."""
    if found := _ADAPTER.fullmatch(text):
        number = int(found[1]) if found[1] is not None else int(found[2]) - 1
        if number >= 0:
            return PortWords(adapter=f"mlx5_{number}", numbers=(int(found[3] or 1),))
    if found := _BLADE.fullmatch(text):
        kind = "S" if found[1].lower().startswith("s") else "L"
        return PortWords(part=f"{kind}{int(found[2])}/U{int(found[3])}", numbers=(int(found[4]),))
    if (found := _NUMBERS.fullmatch(text)) and 0 not in (numbers := tuple(map(int, found[1].split("/")))):
        return PortWords(numbers=numbers)
    raise ValueError(f"{text!r} is no port: write it as 7, Port 7, 17/1 or mlx5_3")


class Numbers(NamedTuple):
    """How a sheet labels ports of switches.

    `cages`: some label has a cage. `split`: how many parts a port has. Three numbers are ASIC, cage and port where all
    of them begin with 1, as NVIDIA's tools write them; else cage, port and part.
    """

    cages: bool = False
    split: int = 1
    asic: bool = False

    @classmethod
    def of(cls, labels: Iterable[tuple[int, ...]]) -> Numbers:
        """Return how these labels are meant, all together."""
        every = list(labels)
        three = [label for label in every if len(label) == 3]
        asic = bool(three) and all(label[0] == 1 and label[2] <= CAGE for label in three)
        split = any(len(label) == 4 for label in every) or bool(three and not asic)
        return cls(any(len(label) > 1 for label in every), 2 if split else 1, asic)

    def port(self, label: tuple[int, ...]) -> int:
        """Return the number of a port. Raises ValueError for a label that this cannot be."""
        if len(label) == 1:
            return label[0]
        if len(label) == 4 or (len(label) == 3 and self.asic):
            label = label[1:]
        cage, port, part = (*label, 1)[:3]
        if port > CAGE or part > self.split:
            said = "/".join(map(str, label))
            raise ValueError(f"{said} is no label of a switch with {CAGE} ports a cage")
        return ((cage - 1) * CAGE + port - 1) * self.split + part
