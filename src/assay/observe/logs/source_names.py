"""Names whose log a file is, by its path: `n1` for `n1.log`, `n1-dmesg.txt` and `/var/log/hosts/n1/kern.log.1`.

Paths of one machine's own logs, such as `/var/log/kern.log`, name no host.
"""

from __future__ import annotations

import re

_LOGS = (
    "console dmesg journal journalctl kern kernel kmsg log logs message messages output serial sol stderr stdout "
    "syslog xid xids"
)
_WORDS = (
    "all before boot case cases collected current data day error errors etc example failed files full gpu gpus home "
    "host hosts info last latest net network node nodes nvidia old opt out previous private raw reboot remote report "
    "result results root run server servers summary system tail tmp trace user users var warnings"
)
GENERIC = frozenset(f"{_LOGS} {_WORDS}".split())
"""What files, folders and headings of logs are called, whosever they are."""
_ENDING = re.compile(r"(?:\.(?:log|txt|out|gz|xz|zst|bz2|json|csv|old|\d{1,3})|-\d{8}(?:-\d+)?)$")
_BEGINS_GENERIC = re.compile(rf"^(?:{_LOGS.replace(' ', '|')})[._-]+(?=.)", re.IGNORECASE)
_ENDS_GENERIC = re.compile(rf"(?<=.)[._-]+(?:{_LOGS.replace(' ', '|')})$", re.IGNORECASE)


def name_source(path: str) -> str:
    """Return the host that a path names, else the folder in which the file lies; "" where both are generic."""
    for part in reversed(path.split("/")):
        name = _strip_generic(part)
        if name.strip(".") and not is_generic(name):
            return name
    return ""


def is_generic(name: str) -> bool:
    """Whether a name is a number, or one that any log may have."""
    return name.isdecimal() or name.lower() in GENERIC


def _strip_generic(part: str) -> str:
    """Return a file's name without its endings, and without the words at both ends that any log may have."""
    while (shorter := _ENDS_GENERIC.sub("", _BEGINS_GENERIC.sub("", _ENDING.sub("", part, 1), 1), 1)) != part:
        part = shorter
    return part
