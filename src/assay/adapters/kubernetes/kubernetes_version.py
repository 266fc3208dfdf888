"""Which versions of Kubernetes assay works with, and in which version of `policy` a server takes evictions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.model.errors import AssayError

OLDEST_VERSION = (1, 20)
"""The oldest server that the tests run: its `policy/v1beta1` has the budgets and evictions that assay uses."""
POLICY_V1_VERSION = (1, 22)
"""The first server that takes evictions of `policy/v1`. Version 1.25 dropped `policy/v1beta1`."""


@dataclass(frozen=True, slots=True)
class ServerVersion:
    """The version of an API server. `text` is how the server writes it, such as v1.31.2-gke.100."""

    major: int
    minor: int
    text: str

    @property
    def policy_version(self) -> str:
        """The version of the API group `policy`, for budgets and evictions."""
        return "v1" if (self.major, self.minor) >= POLICY_V1_VERSION else "v1beta1"


def parse_server_version(answer: Any, server: str) -> ServerVersion:
    """Return the version that the `/version` of a server answers.

    Raises AssayError if it answers none, or one older than OLDEST_VERSION.
    """
    told = answer if isinstance(answer, Mapping) else {}
    text = str(told.get("gitVersion") or "")
    numbers = re.match(r"v?(\d+)\.(\d+)", text)
    if numbers is None:
        fix = "`kubectl version` shows it; is there a proxy in between?"
        raise AssayError("the API server does not say which version it is", where=server, fix=fix)
    version = ServerVersion(int(numbers[1]), int(numbers[2]), text)
    if (version.major, version.minor) < OLDEST_VERSION:
        oldest = ".".join(map(str, OLDEST_VERSION))
        what = f"the API server is Kubernetes {text}, and assay needs {oldest} or newer"
        raise AssayError(what, where=server, fix="upgrade the cluster: docs/kubernetes.md names the versions")
    return version
