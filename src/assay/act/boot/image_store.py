"""The files of images on this server's disk, each under its SHA-256. Only files with the right digest are given out."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

import requests

from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.specs.image import Image, ImageArtifact

CHUNK = 1 << 16  # what comes less than this before a break is asked for again
CONNECT_S, READ_S = 10.0, 60.0
IMAGES_FOLDER, SIGNATURE, COMING = "images", ".sig", ".coming-"
MOST_SIGNATURE_BYTES = 1 << 16

Tell = Callable[[int], None]
"""Gets a number of bytes."""
Stamp = tuple[int, int, int]
"""Size, time of the last change, and number of a file: another stamp means another content."""


@dataclass(slots=True)
class ImageStore:
    """The folder `folder`. A file's digest is computed when it comes, and by each process that gives it out.

    Who opens it removes the halves of killed fetches: one that goes on, in any process, holds its half locked.
    """

    folder: Path
    _verified: dict[Path, Stamp] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        for coming in self.folder.glob(f"{COMING}*"):
            with contextlib.suppress(OSError), coming.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                coming.unlink()

    def find_verified(self, artifact: ImageArtifact) -> Path | None:
        """Return the file of an artifact if this process has computed its digest already, else None. Takes no time."""
        path = self.folder / artifact.sha256
        try:
            return path if self._verified.get(path) == _read_stamp(path) else None
        except FileNotFoundError:
            return None

    def find(self, artifact: ImageArtifact) -> Path | None:
        """Return the file of an artifact, None if it is not there.

        Raises AssayError for a file that was changed on the disk, and puts it aside, so that it is fetched anew.
        """
        path = self.folder / artifact.sha256
        try:
            stamp = _read_stamp(path)
        except FileNotFoundError:
            return None
        with self._lock:
            if self._verified.get(path) == stamp:
                return path
            if (digest := compute_digest(path)) != artifact.sha256:
                path.replace(path.with_suffix(".damaged"))
                fix = "fetch it anew: assay images --fetch"
                raise AssayError(f"the file has the digest {digest}: it was changed", where=str(path), fix=fix)
            self._verified[path] = stamp
        return path

    def find_signature(self, artifact: ImageArtifact) -> Path | None:
        """Return the file of an artifact's signature, which the machine itself verifies; None if it is not there."""
        path = self.folder / f"{artifact.sha256}{SIGNATURE}"
        return path if path.is_file() else None

    def fetch(self, image: Image, name: str, report: Tell = lambda _: None) -> Path:
        """Return a file of an image, fetched from its URL if it is not there. `report` gets the bytes so far.

        Raises AssayError where it cannot be fetched, or has another digest; then nothing of it stays.
        """
        artifact = image.artifacts[name]
        if artifact.signature_url and not self.find_signature(artifact):
            self._store(f"{artifact.sha256}{SIGNATURE}", _read_sources([artifact.signature_url]), "", image.name)
        return self.fetch_file(artifact, f"Image {image.name} {name}", report)

    def fetch_file(self, artifact: ImageArtifact, where: str, report: Tell = lambda _: None) -> Path:
        """Return a file, fetched from its URL if it is not there. Messages name `where`. Raises as `fetch`."""
        if file := self.find(artifact):
            return file
        pieces = _read_sources(list_sources(artifact), report=report)
        path = self._store(artifact.sha256, pieces, artifact.sha256, f"{where}: {artifact.url}")
        with self._lock:
            self._verified[path] = _read_stamp(path)
        return path

    def _store(self, name: str, pieces: Iterator[bytes], digest: str, where: str) -> Path:
        """Write a file under its name once it is whole, and has `digest` ("": a signature, of any digest)."""
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor, coming = _make_locked_file(self.folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                read_digest = _copy(pieces, file, MOST_SIGNATURE_BYTES if not digest else None)
                if digest and read_digest != digest:
                    fix = "correct the declared sha256 if the file was meant to change; otherwise find who changed it"
                    raise AssayError(f"its digest is {read_digest}, and not {digest}", where=where, fix=fix)
                coming.chmod(0o644)
                return coming.replace(self.folder / name)
        except (OSError, requests.RequestException) as error:
            fix = "see that this server reaches it: `assay images` shows what is missing"
            raise AssayError(f"cannot be fetched: {error}", where=where, fix=fix) from None
        finally:
            coming.unlink(missing_ok=True)


def _make_locked_file(folder: Path) -> tuple[int, Path]:
    """Return a new open file that this process holds locked, and its path. Another may have removed it before that."""
    while True:
        descriptor, path = tempfile.mkstemp(dir=folder, prefix=COMING)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, Path(path)
        os.close(descriptor)


@frozen
class DeclaredFile:
    """A file that a spec names: the line of its URL, and what it is."""

    where: str
    name: str
    artifact: ImageArtifact

    def find_trouble(self, folder: Path) -> str:
        """Return why a file that is not in `folder` cannot be had, "" if it can; at most a piece of it is read."""
        artifact, sizes = self.artifact, list[int]()
        if (folder / artifact.sha256).is_file():
            return ""
        try:
            with contextlib.closing(_read_sources(list_sources(artifact), sizes.append)) as pieces:
                next(pieces, b"")
            path = Path(unquote(urlsplit(artifact.url).path))
            digest = compute_digest(path) if artifact.url.startswith("file:") else artifact.sha256
        except (OSError, ImportError) as error:
            is_far = isinstance(error, requests.ConnectionError)  # whose text names classes of libraries
            return f"cannot be fetched: {'no connection to its server' if is_far else error}"
        if artifact.size not in (None, *sizes) and sizes:
            return f"has {sizes[0]} bytes at its source, and not {artifact.size}"
        return "" if digest == artifact.sha256 else f"has the digest {digest}, and not {artifact.sha256}"


def find_file_troubles(fleet: Fleet, home: Path) -> list[tuple[DeclaredFile, str]]:
    """Return the files of images and firmware that the fleet declares, and why each cannot be had now, "" if it can."""
    files = [*_list_declared_files(fleet)]
    with ThreadPoolExecutor(16) as pool:
        return [*zip(files, pool.map(lambda file: file.find_trouble(home / IMAGES_FOLDER), files), strict=True)]


def _list_declared_files(fleet: Fleet) -> Iterator[DeclaredFile]:
    for image in fleet.images.values():
        for name, artifact in image.artifacts.items() if not image.stands_in else ():
            yield DeclaredFile(fleet.lines.get((f"Image/{image.name}", ""), ""), f"Image {image.name} {name}", artifact)
    for bundle in fleet.bundles.values():
        for number, component in enumerate(bundle.components) if not bundle.stands_in else ():
            if (file := component.artifact) and not file.path:
                where = fleet.lines.get((f"FirmwareBundle/{bundle.name}", f"components.{number}.artifact.url"), "")
                name = f"FirmwareBundle {bundle.name} {component.name}"
                yield DeclaredFile(where, name, ImageArtifact(url=file.url, sha256=file.sha256, size=file.size))


def _copy(pieces: Iterator[bytes], file: BinaryIO, most: int | None) -> str:
    """Write pieces to a file and to the disk, and return their digest. Raises OSError for more than `most` bytes."""
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
        if most is not None and size > most:
            raise OSError(f"more than {most} bytes")
        file.write(piece)
    file.flush()
    os.fsync(file.fileno())
    return digest.hexdigest()


def list_sources(artifact: ImageArtifact) -> list[str]:
    """Return the URLs of an artifact's bytes: a blob of an OCI registry is found by its digest."""

    def locate(url: str) -> str:
        scheme, _, place = url.partition("://")
        host, _, name = place.partition("/")
        return f"https://{host}/v2/{name}/blobs/sha256:{artifact.sha256}" if scheme == "oci" else url

    return [locate(url) for url in (artifact.url, *artifact.mirrors)]


def _read_sources(
    urls: Sequence[str], tell_size: Tell = lambda _: None, report: Tell = lambda _: None
) -> Generator[bytes, None, None]:
    """Yield the pieces of a file. Where a source breaks off, the next goes on, round and round while bytes come.

    Raises the OSError of the first source, in a round that brought nothing. `report` gets the bytes so far.
    """
    at, begun_at, troubles = 0, -1, list[OSError]()
    while at > begun_at:
        begun_at, troubles = at, []
        for url in urls:
            try:
                for piece in _read_source(url, tell_size, at):
                    at += len(piece)
                    report(at)
                    yield piece
                return
            except OSError as error:
                troubles.append(error)
    raise troubles[0]


def _read_source(url: str, tell_size: Tell, start: int) -> Iterator[bytes]:
    """Yield what follows the first `start` bytes. Credentials (`.netrc`, proxies' passwords) are for S3 only."""
    parts, rest = urlsplit(url), {"Range": f"bytes={start}-"} if start else {}
    if parts.scheme == "file":
        with Path(unquote(parts.path)).open("rb") as file:
            tell_size(os.fstat(file.fileno()).st_size)
            file.seek(start)
            yield from iter(lambda: file.read(CHUNK), b"")
        return
    if parts.scheme == "s3":
        yield from _read_object(parts.netloc, unquote(parts.path).removeprefix("/"), tell_size, rest)
        return
    with requests.Session() as session:
        session.auth = lambda request: request  # without it, requests looks for credentials in ~/.netrc
        headers = {"Accept-Encoding": "identity", **rest}  # a range is of the bytes that are sent
        answer = session.get(url, stream=True, headers=headers, timeout=(CONNECT_S, READ_S))
        if answer.status_code == requests.codes.unauthorized:
            headers |= _ask_for_token(session, answer.headers.get("WWW-Authenticate", ""))
            answer.close()
            answer = session.get(url, stream=True, headers=headers, timeout=(CONNECT_S, READ_S))
        with answer:
            answer.raise_for_status()
            size = answer.headers.get("Content-Length", "")
            if size.isdigit() and "Content-Encoding" not in answer.headers:
                tell_size(int(size))
            left_out = start if answer.status_code != requests.codes.partial_content else 0
            for piece in answer.iter_content(CHUNK):
                yield piece[left_out:]
                left_out = max(0, left_out - len(piece))


def _read_object(bucket: str, key: str, tell_size: Tell, rest: dict[str, str]) -> Iterator[bytes]:
    """Yield the pieces of an S3 object. Keys, region and endpoint come from where AWS's own tools take them."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    config = Config(connect_timeout=CONNECT_S, read_timeout=READ_S)
    try:
        answer = boto3.Session().client("s3", config=config).get_object(Bucket=bucket, Key=key, **rest)
        tell_size(answer["ContentLength"])
        yield from answer["Body"].iter_chunks(CHUNK)
    except (BotoCoreError, ClientError) as error:
        raise OSError(f"S3: {error}") from None


def _ask_for_token(session: requests.Session, refusal: str) -> dict[str, str]:
    """Return the header that a registry's refusal asks for (OCI distribution, Bearer), with a token for anybody."""
    kind, _, challenge = refusal.partition(" ")
    asked = requests.utils.parse_dict_header(challenge)
    realm = asked.get("realm") or ""
    if kind.lower() != "bearer" or not realm.startswith("https://"):
        return {}
    query = {name: asked[name] for name in ("service", "scope") if name in asked}
    answer = session.get(realm, params=query, timeout=(CONNECT_S, READ_S))
    answer.raise_for_status()
    granted = answer.json()
    return {"Authorization": f"Bearer {granted.get('token') or granted.get('access_token', '')}"}


def compute_digest(path: Path) -> str:
    """Return the SHA-256 of a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_stamp(path: Path) -> Stamp:
    about = path.stat()
    return about.st_size, about.st_mtime_ns, about.st_ino
