"""`assay images`: the images that nodes boot, and which of their files this server has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.act.boot.image_store import ImageStore
    from assay.cli.answers.declaration_answers import ImageFile
    from assay.cli.progress import ProgressByLabel
    from assay.model.fleet import Fleet

images_app = typer.Typer(add_completion=False)


@images_app.command()
def images(
    fetch: Annotated[bool, typer.Option("--fetch", help="Fetch the missing files, and verify their digests.")] = False,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show the images that nodes boot, and which of their files are on this server's disk.

    `assay serve --boot` gives out a file only with the digest that its Image declares, and fetches a missing one when
    the first machine asks. Exit codes: 0 every file is there; 1 one is missing or cannot be fetched.
    """
    from assay.act.boot.image_store import IMAGES_FOLDER, ImageStore

    workspace = Workspace(fleet.resolve())
    store = ImageStore(workspace.data_dir / IMAGES_FOLDER)
    if fetch:
        _fetch_missing(workspace.fleet, store)
    rows = list(_list_files(workspace.fleet, store))
    typer.echo(json.dumps(rows, indent=1) if form == "json" else _format_rows(rows))
    raise typer.Exit(0 if all(row["bytes"] is not None for row in rows) else 1)


def _fetch_missing(fleet: Fleet, store: ImageStore) -> None:
    from assay.cli.progress import show_progress

    with show_progress("MiB fetched") as show:
        for image in fleet.images.values():
            for name in image.artifacts:
                try:
                    store.fetch(image, name, partial(_show_bytes, show, f"{image.name} {name}"))
                except AssayError as error:
                    typer.echo(f"assay images: {error}", err=True)


def _show_bytes(show: Callable[[ProgressByLabel], None], label: str, done: int) -> None:
    show({label: (done >> 20, done >> 20)})


def _list_files(fleet: Fleet, store: ImageStore) -> Iterator[ImageFile]:
    users = [node.image.partition(":")[0] for node in fleet.nodes.values()]
    for image in fleet.images.values():
        for name, artifact in image.artifacts.items():
            try:
                path = store.find(artifact)
            except AssayError as error:
                typer.echo(f"assay images: {error}", err=True)
                path = None
            size = path.stat().st_size if path else None
            yield {
                "image": image.name,
                "version": image.version,
                "nodes": users.count(image.name),
                "file": name,
                "bytes": size,
                "sha256": artifact.sha256,
                "url": artifact.url,
            }


def _format_rows(rows: list[ImageFile]) -> str:
    if not rows:
        return "no Image is declared: specs/images/"
    lines, shown = list[str](), ""
    for row in rows:
        if row["image"] != shown:
            shown = row["image"]
            lines.append(f"{shown}  version {row['version']}, {row['nodes']} nodes")
        size = "missing" if row["bytes"] is None else f"{row['bytes'] / 2**20:,.1f} MiB"
        where = f"  {row['url']}" if row["bytes"] is None else ""
        lines.append(f"  {row['file']:8} {size:>12}  {row['sha256'][:12]}{where}")
    if any(row["bytes"] is None for row in rows):
        lines.append("fetch what is missing: assay images --fetch")
    return "\n".join(lines)
