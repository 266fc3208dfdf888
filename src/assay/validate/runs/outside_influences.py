"""Files outside the suites that may change what a session judges or reports: settings, conftests and plugins."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

INFLUENCING_HOOKS = (
    *("pytest_collect", "pytest_pycollect", "pytest_ignore_collect", "pytest_itemcollected", "pytest_generate_tests"),
    *("pytest_make_collect_report", "pytest_deselected", "pytest_runtest", "pytest_fixture_setup", "pytest_exception"),
    *("pytest_report_teststatus", "pytest_configure", "pytest_sessionfinish"),
)
"""Beginnings of the names of hooks that touch selection or reports."""
TRUSTED_PACKAGES = frozenset({"_pytest", "assay", "pluggy", "pytest", "xdist"})


def list_influences(config: pytest.Config, root: Path) -> Mapping[str, str]:
    """Return these files, by their name relative to `root`: the sha256, and the hooks that each has."""
    influences = {_shorten(path, root): f"{_hash(path)} {hooks}" for path, hooks in _find_plugins(config)}
    if config.inipath is not None:
        influences[_shorten(config.inipath, root)] = f"{_hash(config.inipath)} settings"
    return dict(sorted(influences.items()))


def _find_plugins(config: pytest.Config) -> Iterator[tuple[Path, str]]:
    """Yield the file and the hooks of each plugin that is neither pytest's nor assay's."""
    manager = config.pluginmanager
    for plugin in manager.get_plugins():
        module = sys.modules.get(getattr(plugin, "__name__", "") or type(plugin).__module__, plugin)
        names = sorted({caller.name for caller in manager.get_hookcallers(plugin) or ()})
        hooks = [name.removeprefix("pytest_") for name in names if name.startswith(INFLUENCING_HOOKS)]
        file = getattr(plugin, "__file__", None) or getattr(module, "__file__", None)
        package = getattr(module, "__name__", "").partition(".")[0]
        if hooks and file and package not in TRUSTED_PACKAGES:
            yield Path(file), ", ".join(hooks)


def _shorten(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
