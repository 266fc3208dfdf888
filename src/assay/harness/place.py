"""Where a port of a designed cable is, as checks and the reasons of their failures tell it."""

from __future__ import annotations

from assay.model.cable import End


class PortPlace:
    """The place of one end of a designed cable."""

    def __init__(self, end: End) -> None:
        self._end = end

    @property
    def place(self) -> str:
        """Where it is, for the reason of a failure: `at leaf-su01-r0 port 2/1 (r06 U30)`."""
        return f"at {self._end}"

    @property
    def device(self) -> str:
        """The device that it is a port of."""
        return self._end.device

    @property
    def node(self) -> str:
        """The node that it is a port of, "" for a switch's."""
        return self._end.node
