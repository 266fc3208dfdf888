"""Reads whether the node's clock is synchronised: by chrony, ntpd or systemd-timesyncd, and by PTP where it runs."""

from __future__ import annotations

import re
from functools import partial

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.probe.node_access import LazyTree, NodeRoot, TimedQuestion, require_text, run_tool

TOOL_S = 1.8
CHRONY_FIELDS = 14
CHRONY_SOURCE_FIELDS = 10
UNIT_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
OFFSET = re.compile(r"^\s*Offset: ([+-]?\d+(?:\.\d+)?)(us|ms|s|min)$", re.MULTILINE)
SERVER = re.compile(r"^\s*Server: (\S+)", re.MULTILINE)
STRATUM = re.compile(r"^\s*Stratum: (\d+)$", re.MULTILINE)
FROM_MASTER = re.compile(r"offsetFromMaster\s+(-?\d+(?:\.\d+)?)")
NTP_PAIR = re.compile(r"(\w+)=([^,\s]+)")
NO_TIME_DAEMON = "no chronyc, ntpq or timedatectl that answers: nothing keeps this clock; install chrony"


def read_timekeeping(root: NodeRoot) -> LazyTree:
    """Return the `time` branch: `sync` of the first daemon that answers, `ptp`, the kernel's clock source, servers."""
    return {
        "clock_source": root.defer_read(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource", require_text
        ),
        "sync": TimedQuestion(3 * TOOL_S + 1, _sync),
        "sources": TimedQuestion(TOOL_S + 1, partial(run_tool, SOURCES, TOOL_S, parse_sources)),
        "ptp": TimedQuestion(TOOL_S + 1, partial(run_tool, PTP, TOOL_S, parse_pmc)),
    }


def _sync() -> ReadingTree:
    """Return the first daemon's answer; where none answers, the first failure."""
    failures: list[ReadingTree] = []
    for command, parse in DAEMONS:
        answer = run_tool(command, TOOL_S, parse)
        if "daemon" in answer:
            return answer
        failures += [answer] if "failed" in answer else []
    return failures[0] if failures else absent(NO_TIME_DAEMON)


def parse_chrony(text: str) -> ReadingTree:
    """Parse `chronyc -c tracking`: comma separated, in seconds. A positive system time is behind true time."""
    fields = text.strip().splitlines()[-1].split(",") if text.strip() else []
    if len(fields) != CHRONY_FIELDS:
        return _no_answer("chronyc", text)
    try:
        return _sync_branch("chrony", fields[13] == "Normal", -float(fields[4]), fields[1] or fields[0], int(fields[2]))
    except ValueError:
        return _no_answer("chronyc", text)


def parse_sources(text: str) -> ReadingTree:
    """Parse `chronyc -N -c sources`: mode, state and name come first, and the mode `#` is a clock of this machine."""
    rows = [line.split(",") for line in text.splitlines()]
    if any(len(row) < CHRONY_SOURCE_FIELDS for row in rows):
        return _no_answer("chronyc", text)
    return value(sorted({row[2] for row in rows if row[0] != "#"}))


def parse_ntpq(text: str) -> ReadingTree:
    """Parse `ntpq -c rv`: the offset is in milliseconds; leap 11 (or 3) is the alarm of an unsynchronised clock."""
    pairs = dict(NTP_PAIR.findall(text))
    try:
        alarmed = pairs["leap"] in ("11", "3")
        return _sync_branch("ntpd", not alarmed, float(pairs["offset"]) / 1e3, pairs["refid"], int(pairs["stratum"]))
    except (KeyError, ValueError):
        return _no_answer("ntpq", text)


def parse_timesyncd(text: str) -> ReadingTree:
    """Parse `timedatectl timesync-status`. It names no offset before a server's first packet: not synchronised."""
    server, stratum, offset = SERVER.search(text), STRATUM.search(text), OFFSET.search(text)
    if server is None:
        return _no_answer("timedatectl", text)
    if offset is None or stratum is None:
        unknown = absent("no server has answered yet")
        return {"daemon": value("timesyncd"), "synchronised": value(False), "offset_s": unknown, "stratum": unknown}
    offset_s = float(offset[1]) * UNIT_S[offset[2]]
    return _sync_branch("timesyncd", True, offset_s, server[1], int(stratum[1]))


def parse_pmc(text: str) -> ReadingTree:
    """Parse linuxptp's `pmc GET CURRENT_DATA_SET`: the offset from the master is in nanoseconds."""
    found = FROM_MASTER.search(text)
    return {"offset_s": value(float(found[1]) / 1e9)} if found else absent("ptp4l does not answer: no PTP here")


DAEMONS = (
    (("chronyc", "-n", "-c", "tracking"), parse_chrony),
    (("ntpq", "-n", "-c", "rv"), parse_ntpq),
    (("timedatectl", "timesync-status"), parse_timesyncd),
)
SOURCES = ("chronyc", "-N", "-c", "sources")  # -N: the names as they were given to chrony
PTP = ("pmc", "-u", "-b", "0", "GET CURRENT_DATA_SET")


def _sync_branch(daemon: str, synchronised: bool, offset_s: float, source: str, stratum: int) -> ReadingTree:
    return {
        "daemon": value(daemon),
        "synchronised": value(synchronised),
        "offset_s": value(round(offset_s, 9)),
        "source": value(source),
        "stratum": value(stratum),
    }


def _no_answer(tool: str, text: str) -> ReadingTree:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return failed(f"{tool}: {lines[-1][:120]}" if lines else f"{tool} printed nothing")
