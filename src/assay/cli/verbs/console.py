"""`assay console`: what conserver recorded of serial consoles, and the configuration by which it does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.context_line import print_answer
from assay.cli.options import FleetDir, OutputFormat, argument, complete_nodes, option
from assay.cli.workspace import Workspace, require_known
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.text.safe_text import escape_line
from assay.model.timestamps import parse_duration


def console(
    node: Annotated[str, argument("[NODE]", "Whose console.", complete=complete_nodes)] = "",
    grep: Annotated[str, option("--grep TEXT", "Only lines with this text, in any case of its letters.")] = "",
    since: Annotated[str, option("--since DURATION", "Only lines of this time: 90m, 12h, 3d.")] = "",
    conserver: Annotated[bool, option("--conserver", "Print conserver.cf for the nodes of the fleet.")] = False,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Search what was recorded of a node's serial console.

    conserver records it, for each node with a `bmc_console` in the inventory. `assay console NODE | assay faults -`
    judges it. `[-- Console down --]`: from here to `[-- Console up --]`, nothing was recorded.

    Exit codes: 0 shown; 1 no line has this; 2 nothing is recorded.
    """
    from assay.adapters.bmc.console import render_conserver
    from assay.observe.logs.console_log import CONSOLES, format_line, search_console

    workspace = Workspace(fleet.resolve())
    folder, declared = workspace.data_dir / CONSOLES, workspace.fleet
    if conserver == bool(node):
        raise AssayError("name a node, or ask for conserver.cf", fix="assay console NODE, or assay console --conserver")
    if conserver:
        folder.mkdir(parents=True, exist_ok=True)
        typer.echo(render_conserver(declared.nodes.values(), declared.root, folder), nl=False)
        return
    require_known([node], declared.nodes, "node")
    begun = SystemClock().now() - parse_duration(since, "--since") if since else None
    answer = search_console(folder, node, begun, grep)
    lines = [escape_line(format_line(line)) for line in answer.lines]
    print_answer(answer, form, lines or ["no line has this"])
    raise typer.Exit(0 if answer.lines else 1)
