"""Damaged files of history, which a command leaves out and names."""

from __future__ import annotations

import typer

from assay.model.errors import AssayError


def tell_left_out(error: AssayError) -> None:
    """Name a damaged file of history on stderr."""
    typer.echo(f"left out: {error}", err=True)
