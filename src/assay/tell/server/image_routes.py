"""The files that machines start: those of images, by digest, and boot loaders of a folder that the site fills."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from assay.act.boot.boot_script import BOOT_PATH
from assay.act.boot.image_store import IMAGES_FOLDER, SIGNATURE, ImageStore
from assay.model.errors import AssayError
from assay.model.specs.image_spec import Image
from assay.tell.server.app_state import AppState
from assay.tell.server.request_bodies_and_refusals import make_refusal

LOADERS_FOLDER = "loaders"
COMING_S = 2.0


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the routes of files."""
    files = BootFiles(state)
    return [
        Route(f"{BOOT_PATH}/images/{{sha256}}/{{name}}", files.get_artifact),
        Route(f"{BOOT_PATH}/loaders/{{name}}", files.get_loader),
    ]


class BootFiles:
    """Gives out files of declared images alone. What is not on this server's disk yet is fetched once, beside."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._store = ImageStore(state.context.home / IMAGES_FOLDER)
        self._authenticator = state.make_authenticator("there is no such file")
        self._coming: set[str] = set()
        self._lock = threading.Lock()

    async def get_artifact(self, request: Request) -> Response:
        """Return a file of an image, or its signature. A machine may ask for a part of it (Range)."""
        sha256, name = str(request.path_params["sha256"]), str(request.path_params["name"])
        path = await run_in_threadpool(self._find, sha256, name.removesuffix(SIGNATURE), name.endswith(SIGNATURE))
        address = request.client.host if request.client else ""
        self._authenticator.settle(request, f"images for {address}", "" if path else "no such image")
        assert path is not None, "everything else is refused"
        return FileResponse(path, media_type="application/octet-stream")

    async def get_loader(self, request: Request) -> Response:
        """Return a boot loader: a file of `.assay/loaders`, such as ipxe.efi."""
        folder, name = self._state.context.home / LOADERS_FOLDER, str(request.path_params["name"])
        known = await run_in_threadpool(_list_files, folder)
        address = request.client.host if request.client else ""
        self._authenticator.settle(request, f"loaders for {address}", "" if name in known else "no such loader")
        return FileResponse(folder / name, media_type="application/efi")

    def _find(self, sha256: str, name: str, is_signature: bool) -> Path | None:
        """Return the file, None if no image has it. Raises a refusal while it is being fetched."""
        image = next((one for one in self._list_images() if _has(one, sha256, name)), None)
        if image is None:
            return None
        artifact = image.artifacts[name]
        found = self._store.find_verified(artifact)
        if found is None:
            self._begin_fetch(image, name)
            raise make_refusal(503, f"{image.name} {name} is being fetched or verified", wait_s=COMING_S)
        return self._store.find_signature(artifact) if is_signature else found

    def _list_images(self) -> Iterator[Image]:
        yield from self._state.current.refresh().fleet.images.values()

    def _begin_fetch(self, image: Image, name: str) -> None:
        """Fetch and verify a file in a thread of its own, unless one does: gigabytes take seconds."""
        sha256 = image.artifacts[name].sha256
        with self._lock:
            if sha256 in self._coming:
                return
            self._coming.add(sha256)
        threading.Thread(target=self._fetch, args=(image, name, sha256), daemon=True).start()

    def _fetch(self, image: Image, name: str, sha256: str) -> None:
        try:
            self._store.fetch(image, name)
            self._state.report(f"has fetched {name} of image {image.name}")
        except AssayError as error:
            self._state.report(f"{error}")
        finally:
            with self._lock:
                self._coming.discard(sha256)


def _has(image: Image, sha256: str, name: str) -> bool:
    return name in image.artifacts and image.artifacts[name].sha256 == sha256


def _list_files(folder: Path) -> frozenset[str]:
    return frozenset(path.name for path in folder.iterdir() if path.is_file()) if folder.is_dir() else frozenset()
