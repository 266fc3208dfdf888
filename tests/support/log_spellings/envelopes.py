"""Envelopes of kernel lines as text: each writes lines as one program does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.support.log_spellings.events import HOST, Clock, Line

Lines = Sequence[Line]


@dataclass(frozen=True)
class Envelope:
    """How one program writes lines: `write` gives the text; `clock` and `host` say what the text tells."""

    name: str
    write: Callable[[Lines], str]
    clock: Clock
    host: str = ""
    resolution: float = 0.0


def each(form: Callable[[Line], str]) -> Callable[[Lines], str]:
    return lambda lines: "".join(f"{form(line)}\n" for line in lines)


def boot(line: Line) -> str:
    return f"[{line.uptime:12.6f}]"


def ctime(line: Line) -> str:
    return f"{line.at:%a %b %e %H:%M:%S %Y}"


def bsd(line: Line) -> str:
    return f"{line.at:%b %e %H:%M:%S}"


def iso(line: Line) -> str:
    return f"{line.at:%Y-%m-%dT%H:%M:%S.%f}+00:00"


def full(line: Line) -> str:
    return f"{line.at:%a %Y-%m-%d %H:%M:%S} UTC"


LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")


def _level(line: Line) -> str:
    return f"kern  :{LEVELS[line.level]:6}: "


def _delta(line: Line, lines: Lines) -> float:
    before = [one.uptime for one in lines if one.uptime < line.uptime]
    return line.uptime - before[-1] if before else 0.0


def _coloured(line: Line) -> str:
    head, _, rest = line.text.partition(" ")
    return f"\x1b[32m{boot(line)} \x1b[0m\x1b[33m{head} \x1b[0m\x1b[1m{rest}\x1b[0m"


def _rfc5424(data: str) -> Callable[[Line], str]:
    return lambda line: f"<{line.level}>1 {iso(line)} {HOST} kernel - - {data} {line.text}"


SD = r'[origin ip="10.0.0.1"][x@1 a="q\]q" t="Jan  1 00:00:00" b="] NVRM"]'
KERNEL = f" {HOST} kernel: "

ENVELOPES = (
    Envelope("dmesg", each(lambda line: f"{boot(line)} {line.text}"), "boot"),
    Envelope("dmesg-x", each(lambda line: f"{_level(line)}{boot(line)} {line.text}"), "boot"),
    Envelope("dmesg-r", each(lambda line: f"<{line.level}>{boot(line)} {line.text}"), "boot"),
    Envelope("dmesg-t", each(lambda line: line.text), "none"),
    Envelope("dmesg-T", each(lambda line: f"[{ctime(line)}] {line.text}"), "plain", resolution=1),
    Envelope("dmesg-T-x", each(lambda line: f"{_level(line)}[{ctime(line)}] {line.text}"), "plain", resolution=1),
    Envelope(
        "dmesg-d",
        lambda lines: each(lambda one: f"[{one.uptime:12.6f} <{_delta(one, lines):12.6f}>] {one.text}")(lines),
        "boot",
    ),
    Envelope(
        "dmesg-d-T",
        lambda lines: each(lambda one: f"[{ctime(one)} <{_delta(one, lines):12.6f}>] {one.text}")(lines),
        "plain",
        resolution=1,
    ),
    Envelope("dmesg-iso", each(lambda line: f"{iso(line).replace('.', ',')} {line.text}"), "zone"),
    Envelope("dmesg-iso-x", each(lambda line: f"{_level(line)}{iso(line).replace('.', ',')} {line.text}"), "zone"),
    Envelope("dmesg-iso-boot", each(lambda line: f"{iso(line).replace('.', ',')} {boot(line)} {line.text}"), "zone"),
    Envelope("dmesg-boot-iso", each(lambda line: f"{boot(line)} {iso(line).replace('.', ',')} {line.text}"), "zone"),
    Envelope("dmesg-colour", each(_coloured), "boot"),
    Envelope("dmesg-caller", each(lambda line: f"{boot(line)}[ T4711] {line.text}"), "boot"),
    Envelope(
        "kmsg", each(lambda line: f"{line.level},{line.uptime:.0f},{line.uptime * 1e6:.0f},-;{line.text}"), "boot"
    ),
    Envelope(
        "kmsg-caller",
        each(lambda line: f"{line.level},7,{line.uptime * 1e6:.0f},-,caller=T7;{line.text}\n SUBSYSTEM=pci"),
        "boot",
    ),
    Envelope("journal-short", each(lambda line: bsd(line) + KERNEL + line.text), "plain", HOST, 1),
    Envelope("journal-precise", each(lambda line: f"{line.at:%b %e %H:%M:%S.%f}{KERNEL}{line.text}"), "plain", HOST),
    Envelope("journal-iso", each(lambda line: f"{line.at:%Y-%m-%dT%H:%M:%S}+0000{KERNEL}{line.text}"), "zone", HOST, 1),
    Envelope("journal-iso-precise", each(lambda line: iso(line) + KERNEL + line.text), "zone", HOST),
    Envelope("journal-full", each(lambda line: full(line) + KERNEL + line.text), "zone", HOST, 1),
    Envelope("journal-with-unit", each(lambda line: f"{full(line)} {HOST} kernel[]: {line.text}"), "zone", HOST, 1),
    Envelope("journal-monotonic", each(lambda line: boot(line) + KERNEL + line.text), "boot", HOST),
    Envelope(
        "journal-delta", each(lambda line: f"[{line.uptime:12.6f} <    0.000009 >]{KERNEL}{line.text}"), "boot", HOST
    ),
    Envelope("journal-unix", each(lambda line: f"{line.at.timestamp():.6f}{KERNEL}{line.text}"), "zone", HOST),
    Envelope("journal-cat", each(lambda line: line.text), "none"),
    Envelope("rfc3164", each(lambda line: f"<{line.level}>{bsd(line)}{KERNEL}{line.text}"), "plain", HOST, 1),
    Envelope("rfc3164-printk", each(lambda line: f"{bsd(line)}{KERNEL}{boot(line)} {line.text}"), "plain", HOST, 1),
    Envelope("rfc3164-year", each(lambda line: f"{line.at:%b %e %Y %H:%M:%S}{KERNEL}{line.text}"), "plain", HOST, 1),
    Envelope(
        "rfc3164-facility",
        each(lambda line: f"{bsd(line)} {HOST} kern.{LEVELS[line.level]} kernel: {line.text}"),
        "plain",
        HOST,
        1,
    ),
    Envelope("rfc5424", each(_rfc5424("-")), "zone", HOST),
    Envelope("rfc5424-data", each(_rfc5424(SD)), "zone", HOST),
    Envelope(
        "kubectl", each(lambda line: f"[pod/watch-x1/dmesg] {boot(line)} {line.text}"), "boot", "pod/watch-x1/dmesg"
    ),
    Envelope("kubectl-timestamps", each(lambda line: f"{iso(line)[:-6]}Z {boot(line)} {line.text}"), "zone"),
    Envelope("cri", each(lambda line: f"{iso(line)[:-6]}000Z stdout F {boot(line)} {line.text}"), "zone"),
    Envelope("stern", each(lambda line: f"watch-x1 dmesg {boot(line)} {line.text}"), "boot", "watch-x1"),
    Envelope("pdsh", each(lambda line: f"{HOST}: {boot(line)} {line.text}"), "boot", HOST),
    Envelope("pdsh-T", each(lambda line: f"{HOST}: [{ctime(line)}] {line.text}"), "plain", HOST, 1),
    Envelope("grep-n", each(lambda line: f"kern.log:12:{bsd(line)}{KERNEL}{line.text}"), "plain", HOST, 1),
    Envelope("grep-path", each(lambda line: f"/var/log/kern.log:{boot(line)} {line.text}"), "boot"),
    Envelope("markdown", each(lambda line: f"> {boot(line)} {line.text}"), "boot"),
    Envelope("markdown-code", each(lambda line: f"    {boot(line)} {line.text}"), "boot"),
    Envelope("markdown-list", each(lambda line: f"- `{boot(line)} {line.text}`"), "boot"),
    Envelope("tabs", each(lambda line: f"\t{iso(line)}\t{HOST}\tkernel:\t{line.text}"), "zone", HOST),
    Envelope(
        "logread", each(lambda line: f"{ctime(line)} kern.err kernel: {boot(line)} {line.text}"), "plain", resolution=1
    ),
    Envelope("jira", lambda lines: "{noformat}\n" + each(lambda line: f"{boot(line)} {line.text}")(lines), "boot"),
    Envelope("nl", each(lambda line: f"    12: {boot(line)} {line.text}"), "boot"),
    Envelope("srun-label", each(lambda line: f"0: {boot(line)} {line.text}"), "boot"),
    Envelope("diff", each(lambda line: f"+{boot(line)} {line.text}"), "boot"),
    Envelope("netconsole", each(lambda line: f"6.8.0-45,{line.level},7,{line.uptime * 1e6:.0f},-;{line.text}"), "boot"),
    Envelope("unknown-words", each(lambda line: f"acme|{iso(line)}|warn|{line.text}"), "zone"),
)
