"""Whether the node's clock follows another: what chrony, ntpd or systemd-timesyncd say, and PTP where it runs."""

from __future__ import annotations

import re
from functools import partial

from assay.model.reading import absent, failed, value
from assay.probe.node_access import LazyTree, NodeRoot, TimedQuestion, Tree, require_text, run_tool

TOOL_S = 1.8
CHRONY_FIELDS = 14
UNIT_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
OFFSET = re.compile(r"^\s*Offset: ([+-]?\d+(?:\.\d+)?)(us|ms|s|min)$", re.MULTILINE)
SERVER = re.compile(r"^\s*Server: (\S+)", re.MULTILINE)
STRATUM = re.compile(r"^\s*Stratum: (\d+)$", re.MULTILINE)
FROM_MASTER = re.compile(r"offsetFromMaster\s+(-?\d+(?:\.\d+)?)")
NTP_PAIR = re.compile(r"(\w+)=([^,\s]+)")
NO_TIME_DAEMON = "no chronyc, ntpq or timedatectl that answers: nothing keeps this clock; install chrony"


def read_timekeeping(root: NodeRoot) -> LazyTree:
    """Return the `time` branch: `sync` of the first daemon that answers, `ptp`, and the kernel's clock source."""
    return {
        "clock_source": root.defer_read(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource", require_text
        ),
        "sync": TimedQuestion(3 * TOOL_S + 1, _sync),
        "ptp": TimedQuestion(TOOL_S + 1, partial(run_tool, PTP, TOOL_S, parse_pmc)),
    }


def _sync() -> Tree:
    """Ask each daemon until one knows; of those that do not, the first one's reason."""
    answers = (run_tool(command, TOOL_S, understand) for command, understand in DAEMONS)
    silent: list[Tree] = []
    for answer in answers:
        if "daemon" in answer:
            return answer
        silent += [answer] if "failed" in answer else []
    return silent[0] if silent else absent(NO_TIME_DAEMON)


def parse_chrony(text: str) -> Tree:
    """Read `chronyc -c tracking`: comma separated, seconds; a positive system time is slow of true time."""
    fields = text.strip().splitlines()[-1].split(",") if text.strip() else []
    if len(fields) != CHRONY_FIELDS:
        return _nothing("chronyc", text)
    try:
        return _tracked("chrony", fields[13] == "Normal", -float(fields[4]), fields[1] or fields[0], int(fields[2]))
    except ValueError:
        return _nothing("chronyc", text)


def parse_ntpq(text: str) -> Tree:
    """Read `ntpq -c rv`: the offset is in milliseconds; leap 11 (or 3) is the alarm of an unsynchronised clock."""
    said = dict(NTP_PAIR.findall(text))
    try:
        alarmed = said["leap"] in ("11", "3")
        return _tracked("ntpd", not alarmed, float(said["offset"]) / 1e3, said["refid"], int(said["stratum"]))
    except (KeyError, ValueError):
        return _nothing("ntpq", text)


def parse_timesyncd(text: str) -> Tree:
    """Read `timedatectl timesync-status`; without a packet of a server it names no offset, and has no synchronism."""
    server, stratum, offset = SERVER.search(text), STRATUM.search(text), OFFSET.search(text)
    if server is None:
        return _nothing("timedatectl", text)
    if offset is None or stratum is None:
        unknown = absent("no server has answered yet")
        return {"daemon": value("timesyncd"), "synchronised": value(False), "offset_s": unknown, "stratum": unknown}
    offset_s = float(offset[1]) * UNIT_S[offset[2]]
    return _tracked("timesyncd", True, offset_s, server[1], int(stratum[1]))


def parse_pmc(text: str) -> Tree:
    """Read linuxptp's `pmc GET CURRENT_DATA_SET`: the offset from the master is in nanoseconds."""
    found = FROM_MASTER.search(text)
    return {"offset_s": value(float(found[1]) / 1e9)} if found else absent("ptp4l does not answer: no PTP here")


DAEMONS = (
    (("chronyc", "-n", "-c", "tracking"), parse_chrony),
    (("ntpq", "-n", "-c", "rv"), parse_ntpq),
    (("timedatectl", "timesync-status"), parse_timesyncd),
)
PTP = ("pmc", "-u", "-b", "0", "GET CURRENT_DATA_SET")


def _tracked(daemon: str, synchronised: bool, offset_s: float, source: str, stratum: int) -> Tree:
    return {
        "daemon": value(daemon),
        "synchronised": value(synchronised),
        "offset_s": value(round(offset_s, 9)),
        "source": value(source),
        "stratum": value(stratum),
    }


def _nothing(tool: str, text: str) -> Tree:
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return failed(f"{tool}: {said[-1][:120]}" if said else f"{tool} printed nothing")
