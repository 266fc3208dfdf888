"""Errors for people: what happened, where, and what to do."""

from __future__ import annotations

import importlib.util
import re
from typing import NamedTuple

from assay.model.text.safe_text import escape_line

EXTRA_OF_MODULE = {
    "allure": "allure",
    "allure_commons": "allure",
    "ansible": "ansible",
    "ansible_runner": "ansible",
    "anyio": "web",
    "apprise": "notify",
    "boto3": "s3",
    "botocore": "s3",
    "cryptography": "web",
    "duckdb": "duckdb",
    "itsdangerous": "web",
    "kubernetes": "kubernetes",
    "numpy": "duckdb",
    "openpyxl": "xlsx",
    "starlette": "web",
    "trustme": "lab",
    "uvicorn": "web",
}
"""The extra of this distribution that installs each module, as in `pip install 'assay-fleet[web]'`."""


class AssayError(Exception):
    """What happened, `where` (file:line, node, port), and the `fix`. The CLI prints it and exits with 2."""

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.fix = what, where, fix

    def __str__(self) -> str:
        what = self.what.replace("\n", "\n  ")  # a name with a line break begins no line of its own
        lines = [f"{escape_line(self.where)}: {what}" if self.where else what]
        if self.fix:
            lines.append(f"  → {self.fix}")
        return "\n".join(lines)


def describe_error(error: Exception) -> str:
    """Return what went wrong in one line, for people: an AssayError, a missing extra, or an internal error."""
    known = error if isinstance(error, AssayError) else find_missing_extra(error)
    return re.sub(r"\s*\n\s*", " ", str(known or f"internal error: {type(error).__name__}: {error}"))


def find_missing_extra(error: Exception) -> AssayError | None:
    """Return what to install if an import failed because an extra is not installed, None for any other error."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    module = (error.name or "").partition(".")[0]
    return _missing(module) if module in EXTRA_OF_MODULE else None


def require_extra(extra: str) -> None:
    """Raise AssayError unless every module of an extra is installed."""
    if missing := list_missing_modules(extra):
        raise _missing(missing[0])


def list_missing_modules(extra: str) -> list[str]:
    """Return the modules of an extra that are not installed."""
    modules = [module for module, owner in EXTRA_OF_MODULE.items() if owner == extra]
    return [module for module in modules if importlib.util.find_spec(module) is None]


def _missing(module: str) -> AssayError:
    extra = EXTRA_OF_MODULE[module]
    return AssayError(
        f"this needs the Python module {module}, which is not installed",
        fix=f"install the extra {extra}: pip install 'assay-fleet[{extra}]'; or all of them: 'assay-fleet[all]'",
    )


class FieldConflict(NamedTuple):
    """One entry of a spec that contradicts another: the rule's code, the entry's path, a message and a fix."""

    code: str
    path: tuple[str | int, ...]
    message: str
    fix: str = ""


class ConflictError(ValueError):
    """A spec whose parts fit their schema, but not each other. Models raise it when they are validated."""

    def __init__(self, *conflicts: FieldConflict) -> None:
        super().__init__(
            "; ".join(f"{'.'.join(map(str, conflict.path))}: {conflict.message}" for conflict in conflicts)
        )
        self.conflicts = conflicts
