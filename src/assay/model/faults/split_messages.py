"""Puts together what the driver says of one GPU in several lines: its address in the first, the fault in a later one.

NVRM: The NVIDIA GPU 0000:4b:00.0
NVRM: (PCI ID: 10de:2330) installed in this system has
NVRM: fallen off the bus and is not responding to commands.
"""

from __future__ import annotations

from assay.model.log_message import GPU_INTRODUCTION, LogMessage

BUS_LOST = "fallen off the bus"
MOST_LINES = 3
"""The driver's lines after the first one in which the fault may stand."""


class SplitMessages:
    """Remembers the line that names a GPU, until the fault is said or other lines came."""

    def __init__(self) -> None:
        self._first: LogMessage | None = None
        self._left = 0

    def complete(self, message: LogMessage) -> LogMessage:
        """Return a message with the GPU that an earlier line named, and its time where it has none."""
        text = message.text
        if text.startswith(GPU_INTRODUCTION) and BUS_LOST not in text:
            self._first, self._left = message, MOST_LINES
        elif self._first and self._left and text.startswith("NVRM: ") and "Xid" not in text:
            self._left -= 1
            if BUS_LOST in text and "GPU" not in text:
                return self._join(self._first, message)
        return message

    def _join(self, first: LogMessage, message: LogMessage) -> LogMessage:
        self._first = None
        timed = first if message.at is None else message
        return timed._replace(text=f"{first.text} {message.text}")
