"""Pins packages by hash: `pip install --dry-run … --report - | python -m assay.declare.starter.requirement_hashes`.

pip asks the site's own index what it would install. The lock names packages, versions and hashes, and no index.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from assay.model.errors import AssayError

HEAD = """\
# Every package that `pip install --require-hashes --requirement requirements.lock` installs.
# docs/ci.md says how to make this file again. It holds for Python {python} on {system} {machine}.
"""
MAKE_AGAIN = (
    "pipe the output of `pip install --dry-run --ignore-installed --quiet --report - -r requirements.txt` into it"
)


def format_lock(report: str) -> str:
    """Return the lock for an installation report of pip (JSON, version 1).

    Raises AssayError if the text is no such report, or a package of it has no hash.
    """
    try:
        installation = json.loads(report)
        pins = sorted(_pin(package) for package in installation["install"])
        environment = installation["environment"]
        system = {"system": environment["platform_system"], "machine": environment["platform_machine"]}
        head = HEAD.format(python=environment["python_version"], **system)
    except (ValueError, KeyError, TypeError) as error:
        raise AssayError(f"this is no installation report of pip: {error}", fix=MAKE_AGAIN) from error
    if not pins:
        raise AssayError("the report names no package", fix="add --ignore-installed to pip's command")
    return head + "".join(pins)


def _pin(package: dict[str, Any]) -> str:
    name, version = package["metadata"]["name"], package["metadata"]["version"]
    sha256 = package["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
    if not sha256:
        message = f"{name} {version} comes from {package['download_info']['url'].partition(':')[0]}:, without a hash"
        raise AssayError(message, fix="let requirements.txt name a released version, or the URL of a wheel")
    return f"{name.lower()}=={version} \\\n    --hash=sha256:{sha256}\n"


def main() -> int:
    """Read the report from stdin and print the lock. Returns the exit code."""
    try:
        sys.stdout.write(format_lock(sys.stdin.read()))
    except AssayError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
