"""`assay agent`: on a node, the same as `python -m assay.agent`."""

from __future__ import annotations

import typer

app = typer.Typer(add_completion=False, help="On a node: deliver its kernel lines, GPU events and readings.")


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def agent(context: typer.Context) -> None:
    """Follow this node's kernel log and GPU events, and deliver them."""
    from assay.agent.__main__ import main

    main(context.args)
