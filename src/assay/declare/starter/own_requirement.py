"""The line of a fleet's `requirements.txt`: this assay, from where it was installed (PEP 610, `direct_url.json`)."""

from __future__ import annotations

import json
from importlib.metadata import Distribution, distribution
from typing import Any

NAME = "assay-fleet"
PACKAGE = f"{NAME}[all]"


def make_requirement(installed: Distribution | None = None) -> str:
    """Return the lines that install this version of assay with all that a fleet's workflows use.

    What came from a file of this machine cannot be installed elsewhere: comments then say what to write instead.
    """
    found = installed or distribution(NAME)
    origin: dict[str, Any] = json.loads(found.read_text("direct_url.json") or "{}")
    url, version = origin.get("url", ""), found.version
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        return f"{PACKAGE} @ {vcs['vcs']}+{url}@{vcs['commit_id']}\n"
    if url.startswith("https:"):
        digest = origin.get("archive_info", {}).get("hashes", {}).get("sha256")
        return f"{PACKAGE} @ {url}{f'#sha256={digest}' if digest else ''}\n"
    return f"{_describe_local_origin(version) if url else ''}{PACKAGE}=={version}\n"


def _describe_local_origin(version: str) -> str:
    return f"""\
# This assay was installed from files of one machine. If your package index does not have {version}, replace the line
# below by a wheel that you commit, or by a commit of a git repository:
#   ./wheels/assay_fleet-{version}-py3-none-any.whl[all]
#   {PACKAGE} @ git+https://HOST/PATH.git@COMMIT
"""
