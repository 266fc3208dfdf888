"""What automation can do to a node, by name. Plain names, so that history can be read without the specs' machinery."""

from __future__ import annotations

from typing import Literal

Action = Literal["cordon", "uncordon", "drain", "drain-now", "reboot", "powercycle", "zap", "ticket", "dossier"]
REPAIRS: frozenset[Action] = frozenset({"reboot", "powercycle", "zap"})
"""Actions after which earlier passes no longer count."""
RESTARTS: frozenset[Action] = frozenset({"reboot", "powercycle"})
"""Actions that count against the restarts of an hour."""
