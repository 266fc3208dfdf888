"""assay: run a GPU fleet by evidence."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__version__ = "0.1.0"


class _OldImports:
    """Finds the inner modules from which fleets imported before there was `assay.fleetkit` (old_imports.py)."""

    @staticmethod
    def find_spec(
        name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what serves a module of assay that is no longer there. None for any other."""
        if not name.startswith("assay.") or name == "assay.old_imports":
            return None
        try:
            old_imports = __import__("assay.old_imports").old_imports  # by its name: what is packed for nodes lacks it
        except ImportError:
            return None
        found: ModuleSpec | None = old_imports.find_old_module(name)
        return found


sys.meta_path.append(_OldImports)
