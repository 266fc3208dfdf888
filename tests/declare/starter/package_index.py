"""What the machines of a forge install: a package of assay's name that leads to this checkout, from no network.

pip and venv are the real ones. `npm` is a stand-in that takes the one call of the workflows, and links what is there.
"""

from __future__ import annotations

import site
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

from assay.declare.starter.new_repository import NAME
from tests.support.places import ROOT

NPM = f"""#!/bin/sh
[ "$*" = ci ] || {{ echo "npm: this stand-in knows 'ci' alone, not '$*'" >&2; exit 1; }}
[ -f package.json ] && [ -f package-lock.json ] || {{ echo 'npm: there is no package-lock.json' >&2; exit 1; }}
rm -rf node_modules && ln -s {ROOT}/node_modules node_modules
"""


def make_index(folder: Path) -> dict[str, str]:
    """Write the package into a folder; return the variables by which pip finds it, and it alone."""
    installed = distribution(NAME)
    stem = f"{NAME.replace('-', '_')}-{installed.version}"
    kept = ("Metadata-Version:", "Name:", "Version:", "Provides-Extra:")
    lines = [line for line in (installed.read_text("METADATA") or "").splitlines() if line.startswith(kept)]
    files = {
        "assay_of_the_tests.pth": "\n".join([str(ROOT / "src"), *site.getsitepackages(), ""]),
        f"{stem}.dist-info/METADATA": "\n".join([*lines, ""]),
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{stem}.dist-info/entry_points.txt": installed.read_text("entry_points.txt") or "",
        f"{stem}.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    (programs := folder / "programs").mkdir()
    (programs / "npm").write_text(NPM)
    (programs / "npm").chmod(0o755)
    path = f"{programs}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin"
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PATH": path}
