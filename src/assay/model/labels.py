"""What is printed at the ports of a switch, and which of them share a cage."""

from __future__ import annotations

from typing import NamedTuple


class Labels(NamedTuple):
    """How a switch counts. `cage` ports share a cage (0: it has none that matter); each may be split into `split`.

    Ports are numbered as InfiniBand does, split ones singly: port 5 of a switch with two ports a cage reads `3/1`; if
    its ports are split in two, `2/1/1`.
    """

    cage: int = 0
    split: int = 1

    def label(self, port: int) -> str:
        """Return what is printed at a port."""
        whole, part = divmod(port - 1, self.split)
        printed = f"{whole // self.cage + 1}/{whole % self.cage + 1}" if self.cage else str(whole + 1)
        return f"{printed}/{part + 1}" if self.split > 1 else printed

    def together(self, port: int) -> range:
        """Return the ports whose links go down when the plug of this one is pulled."""
        each = max(self.cage, 1) * self.split
        first = (port - 1) // each * each + 1
        return range(first, first + each)
