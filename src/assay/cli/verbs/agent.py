"""`assay agent`: the same as `python -m assay.node.agent`, on a node."""

from __future__ import annotations

import typer

agent_app = typer.Typer(add_completion=False)


@agent_app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def agent(context: typer.Context) -> None:
    """Follow this node's kernel log and GPU events, and send them to `assay serve`."""
    from assay.node.agent.__main__ import main

    main(context.args)
