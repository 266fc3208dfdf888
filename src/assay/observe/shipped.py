"""The probe on its way to a node: a script for `python3 -I -S -` that holds the packed probe and runs it from memory.

Nothing need be installed there but Python, and nothing is written: the zip lies in a memfd. Its words need no
quoting by any shell in between. NVML's bindings go along.
"""

from __future__ import annotations

import base64
import functools
import threading

from assay.probe.pack import ENTRY, OLDEST, packed

SCRIPT = """\
import sys
if sys.version_info < {oldest}:
    sys.exit("the probe needs Python {major}.{minor} or newer on the node; this is " + sys.version.split()[0])
import base64, os
memory = os.memfd_create("assay-probe")
os.write(memory, base64.b64decode("{packed}"))
sys.path.insert(0, "/proc/self/fd/%d" % memory)
from {entry} import main
main()
"""


_PACKING = threading.Lock()  # many threads ask at once, and in CPython 3.11 two of them in ast.parse break each other


def script() -> bytes:
    """Return the script: about 160 kB, made once."""
    with _PACKING:
        return _script()


@functools.cache
def _script() -> bytes:
    major, minor = OLDEST
    text = base64.b64encode(packed(with_nvml=True)).decode()
    return SCRIPT.format(oldest=OLDEST, major=major, minor=minor, packed=text, entry=ENTRY).encode()
