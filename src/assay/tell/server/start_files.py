"""What a machine boots: scripts for iPXE and GRUB, images, boot loaders, cloud-init's data; and how far it came.

Everybody on the provisioning network can ask, so nothing here is secret, and nothing that is said here is believed.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from assay.act.boot.boot_requests import BootingMachine, BootRefusal, answer_machine, find_attempt, record_stage
from assay.act.boot.cloud_init import make_node_boot, render_node_data
from assay.act.boot.image_store import IMAGES_FOLDER, SIGNATURE, ImageStore
from assay.act.boot.script import (
    BOOT_PATH,
    BootOrder,
    render_boot_script,
    render_first_script,
    render_grub_config,
    render_grub_wait,
    render_wait_script,
)
from assay.model.errors import AssayError
from assay.model.specs.image import Image
from assay.model.specs.provisioning import BootStage
from assay.tell.server.agent_tokens import RateLimiter
from assay.tell.server.app_state import AppState
from assay.tell.server.requests import make_refusal, read_body

MAC = re.compile(r"^([0-9a-f]{2}:){5}[0-9a-f]{2}$")
HOST = re.compile(r"^[A-Za-z0-9.-]+(:\d{1,5})?$|^\[[0-9A-Fa-f:]+\](:\d{1,5})?$")
SERIAL = re.compile(r"^[A-Za-z0-9 ._/-]{0,64}$")
MAX_BODY_BYTES = 4096
STRANGERS_BURST, STRANGERS_RATE = 50, 1.0
"""How many requests a sender may make for machines that are no nodes, at once and a second."""
LOOP_PAUSE_S = 60.0
FETCH_RATE = 1 / LOOP_PAUSE_S
"""How often a second a sender may fetch the script of one machine, after the first `most_fetches`."""
MAX_WORDS = 500
HINTS: tuple[BootStage, ...] = ("kernel", "cloud-init")
"""Stages that anybody may report. `agent` ends a start, so only the probe or a proven node can reach it."""
LOADERS_FOLDER = "loaders"
COMING_S = 2.0


def script_routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the routes of machines that boot."""
    boot = BootScripts(state)
    return [
        Route(f"{BOOT_PATH}/ipxe", boot.get_first_script),
        Route(f"{BOOT_PATH}/script", boot.get_script),
        Route(f"{BOOT_PATH}/grub", boot.get_grub_config),
        Route(f"{BOOT_PATH}/data/{{attempt}}/{{document}}", boot.get_data),
        Route(f"{BOOT_PATH}/attempts/{{attempt}}/stages/{{stage}}", boot.post_stage, methods=["POST"]),
    ]


class BootScripts:
    """Answers machines by what they say of themselves."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._strangers = RateLimiter(STRANGERS_BURST, STRANGERS_RATE)
        self._fetches: dict[int, RateLimiter] = {}
        self._authenticator = state.make_authenticator("this is no start of a node")

    async def get_first_script(self, request: Request) -> Response:
        """Return the script that asks which machine this is."""
        return PlainTextResponse(render_first_script(_read_server(request)))

    async def get_script(self, request: Request) -> Response:
        """Return the iPXE script of the machine that asks."""
        wait = partial(render_wait_script, _read_server(request))
        return PlainTextResponse(await self._answer(request, render_boot_script, wait))

    async def get_grub_config(self, request: Request) -> Response:
        """Return the same for GRUB."""
        return PlainTextResponse(await self._answer(request, render_grub_config, render_grub_wait))

    async def _answer(
        self, request: Request, render: Callable[[BootOrder], str], wait: Callable[[str, float], str]
    ) -> str:
        machine = _read_machine(request)
        is_known = machine.mac in self._state.context.fleet.boot_macs
        if not is_known and (wait_s := self._strangers.wait_s(self._state.find_sender(request))):
            raise make_refusal(429, "too many machines that are no nodes", wait_s=wait_s)
        try:
            # By the fleet as its files are now: no agent's delivery lets a boot server read them.
            answer = await run_in_threadpool(lambda: answer_machine(self._state.current.refresh(), machine))
        except AssayError as error:
            self._state.report(f"a machine with the MAC address {machine.mac} gets no answer: {error}")
            raise make_refusal(503, error.what, wait_s=10) from None
        if isinstance(answer, BootRefusal):
            return wait(answer.reason, answer.pause_s)
        if pause_s := self._find_pause_s(request, machine, answer.node):
            return wait(f"{answer.node} boots in a loop: it fetched its script too often from this address", pause_s)
        self._authenticator.settle(request, f"boot of {answer.node}", "")
        return render(answer)

    def _find_pause_s(self, request: Request, machine: BootingMachine, node: str) -> float:
        """Return for how long a sender must wait that fetched a machine's script too often; others need not."""
        provisioning = self._state.context.fleet.provisioning_of(node)
        most = provisioning.most_fetches if provisioning else 1
        limit = self._fetches.setdefault(most, RateLimiter(most, FETCH_RATE))
        wait_s = limit.wait_s(f"{self._state.find_sender(request)} {machine.mac}")
        return LOOP_PAUSE_S if wait_s else 0.0

    async def get_data(self, request: Request) -> Response:
        """Return a document for cloud-init. Who fetches its meta-data runs the image's first program."""
        attempt, document = str(request.path_params["attempt"]), str(request.path_params["document"])
        text = await run_in_threadpool(self._render_data, attempt, document)
        self._authenticator.settle(request, f"boot of {attempt}", "" if text is not None else "no such data")
        return PlainTextResponse(text or "", media_type="text/yaml")

    def _render_data(self, name: str, document: str) -> str | None:
        context = self._state.current.refresh()
        attempt = find_attempt(context, name)
        provisioning = context.fleet.provisioning_of(attempt.node) if attempt else None
        if attempt is None or provisioning is None:
            return None
        if document == "meta-data":
            record_stage(context, attempt, "kernel")
        return render_node_data(make_node_boot(context.fleet, attempt.node, provisioning, name)).get(document)

    async def post_stage(self, request: Request) -> Response:
        """Record that a start says to have reached a stage: a hint, as anybody can send it."""
        body = await read_body(request, MAX_BODY_BYTES, self._state.limits.connections.body_seconds)
        name, stage = str(request.path_params["attempt"]), str(request.path_params["stage"])
        reported = next((hint for hint in HINTS if hint == stage), None)
        if reported is None:
            raise make_refusal(404, f"nobody reports the stage {stage[:40]} here: {', '.join(HINTS)}")
        attempt = await run_in_threadpool(find_attempt, self._state.context, name)
        self._authenticator.settle(request, f"boot of {name}", "" if attempt else "no such start")
        assert attempt is not None, "everything else is refused"
        await run_in_threadpool(record_stage, self._state.context, attempt, reported, "", _read_words(body))
        return Response(status_code=204)


def _read_machine(request: Request) -> BootingMachine:
    """Return who asks. Raises a refusal for what no firmware sends."""
    mac = request.query_params.get("mac", "").lower().replace("-", ":")
    serial = request.query_params.get("serial", "").strip()
    if not MAC.match(mac) or not SERIAL.match(serial):
        raise make_refusal(400, "ask with mac=aa:bb:cc:dd:ee:ff and serial=…")
    return BootingMachine(mac, serial)


def _read_server(request: Request) -> str:
    """Return the address by which the machine reached us: iPXE of 2019 takes no relative ones."""
    host = request.headers.get("host", "")
    if not HOST.match(host):
        raise make_refusal(400, "the header Host is missing, or is none")
    return f"{request.url.scheme}://{host}"


def _read_words(body: bytes) -> str:
    try:
        plain = json.loads(body or b"{}")
    except ValueError:
        raise make_refusal(422, "the body is not JSON") from None
    words = plain.get("words", "") if isinstance(plain, dict) else ""
    return "".join(char for char in str(words)[:MAX_WORDS] if char.isprintable())


def image_routes(state: AppState) -> Sequence[BaseRoute]:
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
        self._authenticator.settle(request, "an image", "" if path else "no such image")
        assert path is not None, "everything else is refused"
        return FileResponse(path, media_type="application/octet-stream")

    async def get_loader(self, request: Request) -> Response:
        """Return a boot loader: a file of `.assay/loaders`, such as ipxe.efi."""
        folder, name = self._state.context.home / LOADERS_FOLDER, str(request.path_params["name"])
        is_known = await run_in_threadpool(lambda: name in {path.name for path in folder.glob("*") if path.is_file()})
        self._authenticator.settle(request, "a loader", "" if is_known else "no such loader")
        return FileResponse(folder / name, media_type="application/efi")

    def _find(self, sha256: str, name: str, is_signature: bool) -> Path | None:
        """Return the file, None if no image has it. Raises a refusal while it is being fetched."""
        images = [image for image in self._state.current.refresh().fleet.images.values() if name in image.artifacts]
        image = next((image for image in images if image.artifacts[name].sha256 == sha256), None)
        if image is None:
            return None
        artifact = image.artifacts[name]
        path = self._store.find_verified(artifact)
        if path is None and (fetching := self._begin_fetch(image, name)):
            fetching.join(COMING_S)  # a small file is there by then, and its machine need not ask again
            path = self._store.find_verified(artifact)
        if path is None:
            raise make_refusal(503, f"{image.name} {name} is being fetched or verified", wait_s=COMING_S)
        return self._store.find_signature(artifact) if is_signature else path

    def _begin_fetch(self, image: Image, name: str) -> threading.Thread | None:
        """Fetch and verify a file in a thread of its own: gigabytes take seconds. Return None where one does."""
        sha256 = image.artifacts[name].sha256
        with self._lock:
            if sha256 in self._coming:
                return None
            self._coming.add(sha256)
        fetching = threading.Thread(target=self._fetch, args=(image, name, sha256), daemon=True)
        fetching.start()
        return fetching

    def _fetch(self, image: Image, name: str, sha256: str) -> None:
        try:
            self._store.fetch(image, name)
            self._state.report(f"has fetched {name} of image {image.name}")
        except AssayError as error:
            self._state.report(f"{error}")
        finally:
            with self._lock:
                self._coming.discard(sha256)
