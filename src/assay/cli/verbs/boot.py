"""`assay boot` and `assay images`: what services beside assay need so that machines boot from it, and images' files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.context_line import print_answer
from assay.cli.options import FleetDir, OutputFormat, option
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError
from assay.model.facts import fact
from assay.model.text.lists import fold_names, format_list

if TYPE_CHECKING:
    from assay.act.boot.image_store import ImageStore
    from assay.cli.output import ProgressByLabel
    from assay.model.fleet import Fleet


@fact
class ImageFile:
    """A file of an image that nodes boot."""

    image: str
    """The name of the image."""
    version: str
    """The version of the image."""
    label: str
    """What a running node shows as `assay.image=` on its kernel's command line."""
    nodes: int
    """How many nodes boot it."""
    file: str
    """Which of its files it is, such as kernel."""
    bytes: int | None
    """The size of the file on this server's disk, in bytes; null if it is missing."""
    sha256: str
    """The digest that the file must have."""
    url: str
    """Where it is fetched from."""


boot_app = typer.Typer(add_completion=False, no_args_is_help=True)


@boot_app.callback()
def boot() -> None:
    """Print what the services beside assay need, so that machines boot from it."""


@boot_app.command()
def dhcp(
    server: Annotated[Literal["dnsmasq", "kea", "kea6"], option("--for", "dnsmasq, kea-dhcp4 or kea-dhcp6.")],
    provisioning: Annotated[str, option("--provisioning NAME", "The Provisioning, where the fleet has several.")] = "",
    fleet: FleetDir = Path(),
) -> None:
    """Print the configuration by which a DHCP server leads machines to `assay serve --boot`.

    PXE, UEFI HTTP boot and iPXE each get their own answer, over IPv4 and IPv6 (Kea has a server for each). Nodes with a
    MAC address in the inventory, or the port of their switch (`circuit_id`), are listed, and those without are named on
    stderr: the server must know them in another way.

    Exit codes: 0 printed, with all nodes; 1 printed without some; 2 no Provisioning is meant.
    """
    from assay.act.boot.script import list_dhcp_hosts, render_dnsmasq, render_kea, render_kea6

    declared = Workspace(fleet.resolve()).fleet
    names = [provisioning] if provisioning else list(declared.provisionings)
    if len(names) != 1 or names[0] not in declared.provisionings:
        known = ", ".join(declared.provisionings) or "none"
        raise AssayError("which Provisioning?", fix=f"--provisioning NAME; the fleet has: {known}")
    chosen = declared.provisionings[names[0]]
    hosts = list_dhcp_hosts(declared, chosen)
    renders = {"dnsmasq": render_dnsmasq, "kea": render_kea, "kea6": render_kea6}
    typer.echo(renders[server](chosen, hosts), nl=False)
    booting = {node.name for node in declared.nodes.values() if chosen.applies_to(node.pool)}
    without = booting - {host.name for host in hosts if host.mac or server != "kea6"}
    if without:
        listed = format_list(fold_names(sorted(without)))
        typer.echo(f"assay boot: without a MAC address: {listed}\n  → write its `mac` into the inventory", err=True)
        raise typer.Exit(1)


def images(
    fetch: Annotated[bool, option("--fetch", "Fetch the missing files, and verify their digests.")] = False,
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
    print_answer(rows, form, _format_rows(rows))
    raise typer.Exit(0 if all(row.bytes is not None for row in rows) else 1)


def _fetch_missing(fleet: Fleet, store: ImageStore) -> None:
    from assay.cli.output import show_progress

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
            yield ImageFile(
                image=image.name,
                version=image.version,
                label=image.label,
                nodes=users.count(image.name),
                file=name,
                bytes=size,
                sha256=artifact.sha256,
                url=artifact.url,
            )


def _format_rows(rows: list[ImageFile]) -> Iterator[str]:
    if not rows:
        yield "no Image is declared: specs/images/"
    shown = ""
    for row in rows:
        if row.image != shown:
            shown = row.image
            yield f"{row.label}  {row.nodes} nodes"
        size = "missing" if row.bytes is None else f"{row.bytes / 2**20:,.1f} MiB"
        where = f"  {row.url}" if row.bytes is None else ""
        yield f"  {row.file:8} {size:>12}  {row.sha256[:12]}{where}"
    if any(row.bytes is None for row in rows):
        yield "fetch what is missing: assay images --fetch"
