"""Every action by the name that a policy uses for it."""

from __future__ import annotations

import importlib
from typing import cast

from assay.actions.action import Action
from assay.model.errors import Trouble

NAMES = ("cordon", "uncordon", "drain", "drain-now", "reboot", "powercycle", "zap", "dossier")


def action(name: str) -> Action:
    """Return the action called `name`. Raises Trouble for a name that is not in `NAMES`."""
    if name not in NAMES:
        raise Trouble(f"there is no action {name!r}", fix=f"the lifecycle policy may ask for: {', '.join(NAMES)}")
    return cast(Action, importlib.import_module(f"assay.actions.{name.replace('-', '_')}"))
