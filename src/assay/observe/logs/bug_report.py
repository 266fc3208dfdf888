"""A bug report of the NVIDIA driver: a file of many sections, some of which repeat the same lines of the kernel.

dmesg, the journal and /var/log/messages are all in it. A message counts as often as it stands in the section that has
it most often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from assay.model.log_message import LogMessage
from assay.observe.logs.line_envelope import split_line

HEADING = b"NVIDIA bug report log file"
RULE = b"____________________________________________"
"""The line between two sections."""
ReadSection = Callable[[Iterable[bytes]], Iterator[LogMessage]]


def find_date(sample: Sequence[bytes], otherwise: datetime) -> datetime:
    """Return when a report was made, as its first lines say; a time in it may name no year."""
    lines = (line.decode(errors="replace") for line in sample if line.startswith(b"Date: "))
    wall = next((at for line in lines if (at := split_line(line.removeprefix("Date: "), otherwise).wall)), None)
    return otherwise if wall is None else datetime.fromtimestamp(wall, UTC)


def is_bug_report(sample: Sequence[bytes]) -> bool:
    """Return whether a log's first lines are those of a bug report."""
    return any(HEADING in line for line in sample)


def read_sections(pieces: Iterable[bytes], read: ReadSection) -> Iterator[LogMessage]:
    """Yield the messages that `read` finds, each as often as in the section that has it most often."""
    told, here = Counter[str](), Counter[str]()
    for piece in pieces:
        for number, part in enumerate(piece.split(RULE)):
            if number:
                told, here = told | here, Counter[str]()
            for message in read([part]):
                here[message.text] += 1
                if here[message.text] > told[message.text]:
                    yield message
