"""The store of images: whole files with the right digest, and nothing else, whatever a source sends or a disk does."""

from __future__ import annotations

import hashlib
import http.server
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trustme

from assay.act.boot.image_store import CHUNK, DeclaredFile, ImageStore
from assay.model.errors import AssayError
from assay.model.specs.image import Image, ImageArtifact
from assay.tell.server import start_files
from assay.tell.server.start_files import BootFiles

CONTENT = b"a kernel" * 1000
LARGE = CONTENT * 80


@pytest.fixture
def source(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the address of a real HTTP server, and its folder."""
    folder = tmp_path / "source"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given) -> None:
            super().__init__(*given, directory=str(folder))

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", folder
        server.shutdown()


def make_image(url: str, content: bytes = CONTENT, **more: Any) -> Image:
    kernel = ImageArtifact(url=url, sha256=hashlib.sha256(content).hexdigest(), **more)
    return Image(kind="Image", name="node", description="", owner="x", sources=["x"], version="1", kernel=kernel)


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_a_file_comes_once_and_is_found_after(source: tuple[str, Path], tmp_path: Path, scheme: str) -> None:
    base, folder = source
    (folder / "kernel").write_bytes(CONTENT)
    image = make_image(f"{base}/kernel" if scheme == "http" else (folder / "kernel").as_uri())
    store, shown = ImageStore(tmp_path / "store"), list[int]()
    assert store.find(image.kernel) is None
    path = store.fetch(image, "kernel", shown.append)
    assert path.read_bytes() == CONTENT
    assert shown[-1] == len(CONTENT)
    assert store.find_verified(image.kernel) == path, "its digest was computed as it came"
    (folder / "kernel").unlink()
    assert store.fetch(image, "kernel") == path == store.find(image.kernel)


def test_who_asks_first_for_a_small_file_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_files, "COMING_S", 600.0)
    (tmp_path / "kernel").write_bytes(CONTENT)
    image = make_image((tmp_path / "kernel").as_uri())
    context = SimpleNamespace(home=tmp_path / "home", fleet=SimpleNamespace(images={"node": image}))
    state = SimpleNamespace(context=context, current=SimpleNamespace(refresh=lambda: context), report=lambda _: None)
    state.make_authenticator = lambda _: None
    files = BootFiles(state)  # type: ignore[arg-type]
    path = files._find(image.kernel.sha256, "kernel", False)
    assert path is not None
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("sent", [CONTENT[:-1], CONTENT + b"x", b""])
def test_another_digest_leaves_nothing(source: tuple[str, Path], tmp_path: Path, sent: bytes) -> None:
    base, folder = source
    (folder / "kernel").write_bytes(sent)
    image, store = make_image(f"{base}/kernel"), ImageStore(tmp_path / "store")
    with pytest.raises(AssayError, match=f"its digest is {hashlib.sha256(sent).hexdigest()}, and not") as told:
        store.fetch(image, "kernel")
    assert "Image node kernel" in str(told.value)
    assert list(store.folder.iterdir()) == []


class Breaking(http.server.BaseHTTPRequestHandler):
    """A server of which each answer breaks off after `most` bytes; `ranges`: whether it can begin in the middle."""

    most, ranges = 5 * CHUNK + 1, True
    asked: list[str]

    def do_GET(self) -> None:
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        self.asked.append(f"{self.path} {start}")
        begins = start if self.ranges else 0
        self.send_response(206 if begins else 200)
        self.send_header("Content-Length", str(len(LARGE) - begins))
        self.end_headers()
        self.wfile.write(LARGE[begins:][: self.most])

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serve_broken(**how: int) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    handler = type("Handler", (Breaking,), {**how, "asked": asked})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def test_a_fetch_that_breaks_off_goes_on_where_it_was(tmp_path: Path) -> None:
    store, shown = ImageStore(tmp_path / "store"), list[int]()
    with serve_broken() as (url, asked):
        path = store.fetch(make_image(f"{url}/kernel", LARGE), "kernel", shown.append)
    assert path.read_bytes() == LARGE
    assert asked == ["/kernel 0", f"/kernel {5 * CHUNK}"]
    assert shown == sorted(shown)
    assert shown[-1] == len(LARGE)


def test_half_a_file_that_does_not_go_on_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    store = ImageStore(tmp_path / "store")
    with serve_broken(ranges=False) as (url, asked):
        with pytest.raises(AssayError, match=r"cannot be fetched: .*IncompleteRead"):
            store.fetch(make_image(f"{url}/kernel", LARGE), "kernel")
        assert asked == ["/kernel 0", f"/kernel {5 * CHUNK}"]
    assert list(store.folder.iterdir()) == []


FETCH = """
import sys; from pathlib import Path; from assay.act.boot.image_store import ImageStore, ImageArtifact
ImageStore(Path(sys.argv[1])).fetch_file(ImageArtifact(url=sys.argv[2], sha256=sys.argv[3]), "kernel")
"""


def test_the_half_of_a_killed_fetch_goes_with_the_next_start_and_a_running_fetch_goes_on(tmp_path: Path) -> None:
    folder, halfway, goes_on = tmp_path / "store", threading.Semaphore(0), threading.Event()

    class Slow(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(LARGE)))
            self.end_headers()
            self.wfile.write(LARGE[: 2 * CHUNK])
            halfway.release()
            goes_on.wait(30)
            self.wfile.write(LARGE[2 * CHUNK :])

    def list_halves() -> list[Path]:
        return [*folder.glob(".coming-*")]

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        image = make_image(f"http://127.0.0.1:{server.server_address[1]}/kernel", LARGE)
        command = [sys.executable, "-c", FETCH, str(folder), image.kernel.url, image.kernel.sha256]
        with subprocess.Popen(command) as killed:
            assert halfway.acquire(timeout=30)
            while not list_halves():
                time.sleep(0.01)
            ImageStore(folder)
            (half,) = list_halves()
            killed.kill()
        assert list_halves() == [half]
        with subprocess.Popen(command) as running:
            assert halfway.acquire(timeout=30)
            assert half not in list_halves(), "its start removed what the killed one left"
            goes_on.set()
        server.shutdown()
    assert running.returncode == 0
    assert [file.name for file in folder.iterdir()] == [image.kernel.sha256]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_mirror_goes_on_where_the_first_source_broke_off(tmp_path: Path, ranges: bool) -> None:
    store = ImageStore(tmp_path / "store")
    with serve_broken(most=CHUNK + 9) as (url, asked), serve_broken(most=len(LARGE), ranges=ranges) as (mirror, second):
        image = make_image(f"{url}/kernel", LARGE, mirrors=["http://127.0.0.1:9/away", f"{mirror}/kernel"])
        assert store.fetch(image, "kernel").read_bytes() == LARGE
    assert [*asked, *second] == ["/kernel 0", f"/kernel {CHUNK}"]
    assert DeclaredFile("", "kernel", image.artifacts["kernel"]).find_trouble(store.folder) == "", "it is here"


def test_a_mirror_with_another_content_is_refused(source: tuple[str, Path], tmp_path: Path) -> None:
    base, folder = source
    (folder / "kernel").write_bytes(CONTENT.upper())
    store, image = ImageStore(tmp_path / "store"), make_image("http://127.0.0.1:9/away", mirrors=[f"{base}/kernel"])
    with pytest.raises(AssayError, match="its digest is"):
        store.fetch(image, "kernel")
    assert list(store.folder.iterdir()) == []


def test_a_file_is_not_missing_while_a_mirror_has_it(source: tuple[str, Path], tmp_path: Path) -> None:
    base, folder = source
    declared = make_image("http://127.0.0.1:9/away", mirrors=[f"{base}/kernel"]).artifacts["kernel"]
    assert "no connection" in DeclaredFile("", "kernel", declared).find_trouble(tmp_path)
    (folder / "kernel").write_bytes(CONTENT)
    assert DeclaredFile("", "kernel", declared).find_trouble(tmp_path) == ""


def test_a_source_that_is_away_is_told_with_its_address(tmp_path: Path) -> None:
    store = ImageStore(tmp_path / "store")
    for url in ("http://127.0.0.1:9/kernel", (tmp_path / "nothing").as_uri()):
        with pytest.raises(AssayError, match="cannot be fetched") as told:
            store.fetch(make_image(url), "kernel")
        assert url in str(told.value)
    assert list(store.folder.iterdir()) == []


def test_a_file_that_was_changed_is_put_aside_and_fetched_anew(source: tuple[str, Path], tmp_path: Path) -> None:
    base, folder = source
    (folder / "kernel").write_bytes(CONTENT)
    image, store = make_image(f"{base}/kernel"), ImageStore(tmp_path / "store")
    path = store.fetch(image, "kernel")
    path.write_bytes(b"changed")
    with pytest.raises(AssayError, match="it was changed"):
        store.find(image.kernel)
    assert store.find(image.kernel) is None
    assert store.fetch(image, "kernel").read_bytes() == CONTENT


def test_a_signature_comes_with_its_file_and_is_small(source: tuple[str, Path], tmp_path: Path) -> None:
    base, folder = source
    (folder / "kernel").write_bytes(CONTENT)
    (folder / "kernel.sig").write_bytes(b"signed")
    store = ImageStore(tmp_path / "store")
    image = make_image(f"{base}/kernel", signature_url=f"{base}/kernel.sig")
    store.fetch(image, "kernel")
    found = store.find_signature(image.kernel)
    assert found is not None
    assert found.read_bytes() == b"signed"
    (folder / "kernel.sig").write_bytes(b"x" * 100_000)
    other = ImageStore(tmp_path / "other")
    with pytest.raises(AssayError, match="more than 65536 bytes"):
        other.fetch(image, "kernel")


class Registry(http.server.BaseHTTPRequestHandler):
    """An OCI registry as the distribution specification 1.1 says: blobs for a token, from a store that wants none."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        here, path, token = f"https://127.0.0.1:{self.server.server_address[1]}", *self._split()
        blob = f"/v2/firmware/bios/blobs/sha256:{hashlib.sha256(CONTENT).hexdigest()}"
        if path == "/token?service=registry&scope=repository%3Afirmware%2Fbios%3Apull":
            self._answer(200, b'{"token": "for-anybody"}')
        elif path == blob and token == "Bearer for-anybody":
            self._answer(307, Location=f"https://localhost:{self.server.server_address[1]}/store/blob")
        elif path == blob:
            scope = f'realm="{here}/token",service="registry",scope="repository:firmware/bios:pull"'
            self._answer(401, **{"WWW-Authenticate": f"Bearer {scope}"})
        elif path == "/store/blob" and not token:  # S3 refuses a second kind of authentication
            self._answer(200, CONTENT)
        else:
            self._answer(400)

    def _split(self) -> tuple[str, str]:
        return self.path, self.headers.get("Authorization", "")

    def _answer(self, status: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def test_a_blob_comes_from_a_registry_by_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        image = make_image(f"oci://127.0.0.1:{server.server_address[1]}/firmware/bios")
        assert ImageStore(tmp_path / "store").fetch(image, "kernel").read_bytes() == CONTENT
        server.shutdown()
