"""A BMC's event log in a file: what `ipmitool sel list` or `sel elist` prints. The branch `bmc.events`.

What was deasserted is over, and left out. The BMC's clock is taken to tell UTC. A SEL has no severities.
"""

from __future__ import annotations

from datetime import UTC, datetime

from assay.model.reading import value
from assay.observe.logs.message import Message, Tally
from assay.observe.logs.sel import is_sel, messages
from assay.observe.recorded.events import Event, branches
from assay.observe.recorded.form import Branches, Form, NotThis


def _shows(content: bytes) -> bool:
    return is_sel(content.lstrip().partition(b"\n")[0])


def _read(content: bytes, _at: datetime) -> Branches:
    tally, events, undated = Tally(), list[Event](), 0
    for line in content.decode(errors="replace").splitlines():
        for message in messages([line], tally):
            undated += message.at is None
            if message.at is not None:
                events.append(_event(line, message, message.at))
    if tally.unread:
        raise NotThis(f"{tally.unread} of its {tally.lines} lines are no entries of a SEL")
    return {**branches(events), ("bmc", "undated_events"): value(undated)}


def _event(line: str, message: Message, at: float) -> Event:
    ident, when = line.partition("|")[0].strip(), datetime.fromtimestamp(at, UTC).isoformat()
    return {"id": ident, "at": when, "severity": "", "message": message.text, "message_id": ""}


SEL = Form("ipmitool sel list", _shows, _read)
