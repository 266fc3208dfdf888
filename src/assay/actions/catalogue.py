"""Every action by the name that a policy uses for it."""

from __future__ import annotations

import importlib
from typing import cast

from assay.actions.action import Action
from assay.model.errors import Trouble

NAMES = ("cordon", "uncordon", "drain", "drain-now", "reboot", "powercycle", "zap", "dossier")
IN_ONE_GO = ("cordon", "uncordon")
"""Actions that are done to many nodes at once: doing them twice is doing them once, and one reading proves them."""
UNDONE_BY = {"cordon": "uncordon", "drain": "uncordon", "drain-now": "uncordon"}
"""What is done where the decision behind an action is withdrawn."""
NOT_UNDONE = {
    "uncordon": "a node that serves again is taken out by a decision of its own",
    "reboot": "a boot that happened has happened; earlier passes no longer count",
    "powercycle": "as for reboot",
    "zap": "the bundle says which firmware is right; an older one is brought by naming the older bundle",
    "dossier": "a file more does no harm",
}
"""The other actions, and why nothing undoes them. Jobs that drain-now ended are requeued by their scheduler."""


def action(name: str) -> Action:
    """Return the action called `name`. Raises Trouble for a name that is not in `NAMES`."""
    if name not in NAMES:
        raise Trouble(f"there is no action {name!r}", fix=f"the lifecycle policy may ask for: {', '.join(NAMES)}")
    return cast(Action, importlib.import_module(f"assay.actions.{name.replace('-', '_')}"))
