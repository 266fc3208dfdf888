"""What a transport is: one module, and an entry point of the group `assay.transports` that names its class.

The entry point's name is what people write as a node's `transport`. assay loads the class to check an inventory, so a
transport imports what takes long to load (an HTTP client) in its methods. One that runs a command on the node is a
subclass of `CommandTransport` (command.py), with one method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from assay.model.node import Node
from assay.model.specs.monitoring import Monitoring
from assay.observe.evidence_store import EvidenceStore
from assay.observe.json_command import RunningCommands


@dataclass(frozen=True)
class TransportContext:
    """What every transport gets for one pass.

    - `store`: holds the documents that agents pushed; None where there is no store.
    - `monitorings`: what metrics mean, by name. `root`: the fleet repository, where relative paths start.
    - `commands`: the running commands of the pass, which ends them with itself.
    """

    store: EvidenceStore | None = None
    monitorings: Mapping[str, Monitoring] = field(default_factory=dict)
    root: Path = Path()
    commands: RunningCommands = field(default_factory=RunningCommands)


class ProbeTransport(Protocol):
    """Brings the document of a node's probe. One object serves all nodes of a pass, from many threads."""

    settings_name: ClassVar[str]
    """The inventory variable with the transport's settings for a node, "" for none."""
    settings_model: ClassVar[type[BaseModel] | None]
    """The type of the settings. The inventory is checked against it; None where there are no settings.

    Settings that are no field of NodeSettings are in `node.settings.other_variables`, as the inventory has them.
    """

    def __init__(self, context: TransportContext) -> None:
        """Open the transport for one pass. May raise AssayError."""

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        """Return what `python -m assay.node.probe` prints with these arguments on the node, or one `failed` leaf.

        Returns within `deadline_s`. Raises AssayError where the inventory's settings cannot be used.
        """
