"""The log that OpenBMC keeps in `/var/log/redfish`: a time, the MessageId of a registry, and its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from assay.observe.logs.event_texts.text_entry import LINE_ENDS, TextEntry, UnreadLine, join_words

ENTRY = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)T(?P<clock>\d\d:\d\d:\d\d\S*) (?P<id>[A-Za-z]\w*(?:\.\d+){2,3}\.(?P<name>[A-Z]\w+))"
    r"(?:,(?P<said>[^\r\n]*))?"
)
WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class RegistryLog:
    """One entry a line. It tells no severity, and its text is the name of the message: `PowerSupplyFailed,PSU2`."""

    name = "OpenBMC's /var/log/redfish"

    def counts_lines(self, sample: Sequence[str]) -> int:
        """Return how many lines are entries."""
        return sum(ENTRY.match(line) is not None for line in sample)

    def read_entries(self, lines: Iterable[str]) -> Iterator[TextEntry | UnreadLine]:
        """Yield the entries."""
        for line in lines:
            if not (found := ENTRY.match(line)):
                yield UnreadLine(line)
                continue
            said = (found["said"] or "").split(",")
            text = join_words(WORD_BEGINS.sub(" ", found["name"]), *filter(None, said))
            entry = TextEntry("", text, found["date"], found["clock"], part=said[0], message_id=found["id"])
            yield entry._replace(is_cut=not line.endswith(LINE_ENDS) and not said[0])
