"""Evidence: all readings of one node at one time, by channel, stored by hash, whose they are, and what they rest on.

A document is `{"schema": "assay.evidence/1", "node": "n0007", "at": ISO 8601 UTC, "channels": {"probe": TREE, "bmc":
TREE, "before": TREE, "active": TREE}}`, and `"after_entry": 123` where a controller asked for it. After a load,
`active` holds its results, and `before` what its traces are compared with. A TREE is a nested object whose leaves are
readings, such as `{"value": 16}` or `{"failed": "…"}`. One leaf may stand for a whole branch: after a timeout,
`"probe": {"failed": "no answer within 5 s"}` makes every reading below it `failed`.

Evidence of another machine than the node's is evidence of nobody. It is stored with `"stranger"`, the reason; nothing
that is judged on it passes, and a fault tells both machines.

Names and compression of stored objects stand here too, since the rooms that read them import no other room. Level 5
leaves 8.7 of a node's 97 kB, in 0.3 ms on a quiet core; level 1 leaves 10.1 kB in 0.2 ms, level 6 8.4 kB in 0.9 ms.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from assay.model.facts import frozen
from assay.model.reading import EvidenceReading, parse_reading

EVIDENCE_SCHEMA = "assay.evidence/1"

EARLIEST_TIME, LATEST_TIME = datetime(1970, 1, 1, tzinfo=UTC), datetime(2999, 12, 31, tzinfo=UTC)
"""Times outside these bounds are refused."""

FABRIC_EVIDENCE_PREFIX = "fabric-"
"""The prefix of the name under which a fabric's evidence is stored."""

IDENTITY_FAULT = "identity.changed"
"""The fault that another machine answers for a node. Only checks of this fault may judge evidence of a stranger."""
SERIAL_SOURCES = {"bmc": ("bmc", "system", "serial"), "dmi": ("probe", "host", "serial")}
"""Source → path of the machine's own serial number."""
SOURCE_NAMES = {"inventory": "the inventory", "bmc": "its BMC", "dmi": "its firmware"}
PLACEHOLDER_SERIALS = (
    *("none", "n/a", "unknown", "default string", "not specified", "not available", "not present", "empty", "invalid"),
    *("to be filled by o.e.m.", "system serial number", "no dimm", "0123456789", "123456789"),
)
"""Texts of firmware without a serial number."""
MIN_SERIAL_LENGTH = 4
BOOT_ID_SHOWN = 8
"""So many characters of a boot id tell boots apart."""


def clean_serial(content: Any) -> str:
    """Return a value as a serial number, "" for a placeholder and for what cannot be one."""
    text = str(content).strip() if isinstance(content, (str, int)) and not isinstance(content, bool) else ""
    lower = text.lower()
    if len(text) < MIN_SERIAL_LENGTH or lower in PLACEHOLDER_SERIALS or len(set(lower.removeprefix("0x"))) <= 1:
        return ""
    return text


def fold_serial(serial: str) -> str:
    """Return a serial number as it is compared: spaces and case do not count."""
    return "".join(serial.split()).upper()


def is_same_serial(serial: str, other: str) -> bool:
    """Whether two serial numbers are of one machine, as far as is known: spaces and case do not count."""
    first, second = (fold_serial(clean_serial(text)) for text in (serial, other))
    return first == second or not (first and second)


GpuIdentity = tuple[str, str]
"""The serial number and the UUID of a GPU, "" for what was not read."""


@frozen
class MachineIdentity:
    """A machine: its serial number by who tells it (`inventory`, `bmc`, `dmi`), its GPUs, its boot ("" if not read)."""

    serials: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[GpuIdentity, ...] = ()
    boot_id: str = ""

    @classmethod
    def of_channels(cls, channels: Mapping[str, Any]) -> MachineIdentity:
        """Return the machine from which channels were read."""
        serials = {source: clean_serial(read_at_path(channels, path).value) for source, path in SERIAL_SOURCES.items()}
        devices = read_at_path(channels, ("probe", "gpu", "devices")).value
        gpus = [identify_gpu(tree) for tree in devices.values()] if isinstance(devices, Mapping) else []
        boot = read_at_path(channels, ("probe", "host", "boot_id")).value
        known = {source: serial for source, serial in serials.items() if serial}
        return cls(known, tuple(gpu for gpu in gpus if any(gpu)), boot if isinstance(boot, str) else "")

    @property
    def serial(self) -> str:
        """Its serial number, "" if nobody tells it."""
        return next(iter(self.serials.values()), "")

    def list_contradictions(self, known: MachineIdentity) -> list[str]:
        """Return who tells of another machine than the known one: `bmc`, `dmi`, `gpu`. The unknown contradicts nothing.

        A GPU that is gone is a fault of the same machine; one that was never in it is not, except beside all that are
        known: it was gone when these were first read.
        """
        wrong = [source for source, serial in self.serials.items() if not is_same_serial(serial, known.serial)]
        names = [{gpu[kind] for gpu in known.gpus} - {""} for kind in (0, 1)]
        foreign = (names[kind] and gpu[kind] and gpu[kind] not in names[kind] for gpu in self.gpus for kind in (0, 1))
        if not {*known.gpus} <= {*self.gpus} and any(foreign):
            wrong.append("gpu")
        return wrong

    def without(self, other: MachineIdentity) -> MachineIdentity:
        """Return it with those of its GPUs that another machine does not have; with all if they have the same."""
        return replace(self, gpus=tuple(gpu for gpu in self.gpus if gpu not in other.gpus) or self.gpus)

    def describe(self) -> str:
        """Return it in words."""
        by_serial: dict[str, list[str]] = {}
        for source, serial in self.serials.items():
            by_serial.setdefault(serial, []).append(SOURCE_NAMES[source])
        parts = [f"serial number {serial} (by {' and '.join(names)})" for serial, names in by_serial.items()]
        first = next((uuid or serial for serial, uuid in sorted(self.gpus)), "")
        more = f" and {len(self.gpus) - 1} more" if len(self.gpus) > 1 else ""
        parts += [f"GPU {first}{more}"] if first else []
        return ", ".join([*parts, *([f"boot {self.boot_id[:BOOT_ID_SHOWN]}"] if self.boot_id else [])])


def name_gpu(gpu: GpuIdentity) -> str:
    """Return the short name of a GPU, by its UUID: GPUs of one board may share a serial number."""
    return hashlib.sha256((gpu[1] or gpu[0]).encode()).hexdigest()[:8]


def identify_gpu(tree: Any) -> GpuIdentity:
    """Return the identity of a GPU in evidence."""
    serial, uuid = (clean_serial(read_at_path(tree, (name,)).value) for name in ("serial", "uuid"))
    return serial, uuid


@frozen
class EvidenceDocument:
    """One document of readings from one node.

    `after_entry` is the number of the ledger's newest entry before the reading began, None where nobody noted it.
    `stranger`: how the machine that it was read from differs from the node's, "" if it does not.
    """

    node: str
    at: datetime
    channels: Mapping[str, Any] = field(default_factory=dict)
    after_entry: int | None = None
    stranger: str = ""

    def find_stranger(self, serial: str, gpus: tuple[GpuIdentity, ...] = ()) -> str:
        """Return how its machine differs from the one with this serial number and these GPUs, "" if it does not."""
        known, seen = MachineIdentity({"inventory": serial}, gpus), MachineIdentity.of_channels(self.channels)
        if self.stranger or not seen.list_contradictions(known):
            return self.stranger
        return f"{seen.without(known).describe()} answers; it should be {known.without(seen).describe()}"

    def as_json(self) -> dict[str, Any]:
        """Return the document as plain JSON data."""
        plain = {"schema": EVIDENCE_SCHEMA, "node": self.node, "at": self.at.isoformat(), "channels": self.channels}
        known = {} if self.after_entry is None else {"after_entry": self.after_entry}
        return {**plain, **known, **({"stranger": self.stranger} if self.stranger else {})}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> EvidenceDocument:
        """Return the document that `as_json` gave. Raises ValueError or KeyError for anything else."""
        if document.get("schema") != EVIDENCE_SCHEMA:
            raise ValueError(
                f"not an evidence document: schema is {document.get('schema')!r}, expected {EVIDENCE_SCHEMA!r}"
            )
        node, at, channels = document["node"], datetime.fromisoformat(document["at"]), document["channels"]
        if not isinstance(node, str) or not isinstance(channels, dict):
            raise ValueError("it names no node, or holds no channels")
        if at.tzinfo is None or not EARLIEST_TIME <= at <= LATEST_TIME:
            raise ValueError(f"{document['at']} is not a time with a time zone since 1970")
        after_entry = document.get("after_entry")
        if after_entry is not None and type(after_entry) is not int:
            raise ValueError(f"after_entry is {after_entry!r}, not the number of a ledger entry")
        return cls(node, at, channels, after_entry, str(document.get("stranger", "")))

    def read(self, *path: str) -> EvidenceReading:
        """Return the reading at `path` (channel first). A branch is a value; a missing step is `absent`."""
        return read_at_path(self.channels, path)

    def digest(self) -> str:
        """Return the SHA-256 of the canonical JSON, the document's name in the store."""
        return hashlib.sha256(encode_canonical_json(self.as_json())).hexdigest()


def encode_canonical_json(document: Any) -> bytes:
    """Return JSON data in canonical form: sorted keys, no spaces, UTF-8.

    Raises ValueError for infinite numbers, NaN, and text with unpaired surrogates.
    """
    plain = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return plain.encode()


def read_at_path(tree: Any, path: Sequence[str]) -> EvidenceReading:
    """Return the reading at `path` in `tree`. A leaf on the way answers for everything below it."""
    for depth, step in enumerate(path):
        reading = parse_reading(tree)
        if reading is not None and reading.kind != "value":
            return reading
        branch = reading.value if reading is not None else tree
        if not isinstance(branch, Mapping) or step not in branch:
            return EvidenceReading("absent", reason=f"{'.'.join(path[: depth + 1])} is not in the evidence")
        tree = branch[step]
    return parse_reading(tree) or EvidenceReading("value", value=tree)


@frozen
class EvidenceBasis:
    """What one document of evidence rests on.

    `after_entry` is the number of the ledger's newest entry before the reading began: whatever has a higher number may
    be newer than the evidence. None: nobody noted it. `boot_id` is the boot that the node ran, "" if that was not read.
    `log_gap` says why the kernel log may not be read to its end after the load, "" if it was or if nothing was loaded.
    `serial` is the machine's, "" if that was not read. `is_nameless`: neither that nor a GPU's was; so the evidence may
    be of any machine. `gpus` are the short names of the GPUs that were read.
    """

    after_entry: int | None = None
    boot_id: str = ""
    log_gap: str = ""
    serial: str = ""
    is_nameless: bool = False
    gpus: str = ""

    @classmethod
    def of_document(cls, evidence: EvidenceDocument) -> EvidenceBasis:
        """Return what a document rests on."""
        machine = MachineIdentity.of_channels(evidence.channels)
        is_nameless = not (machine.serials or machine.gpus or evidence.node.startswith(FABRIC_EVIDENCE_PREFIX))
        gpus = " ".join(sorted(map(name_gpu, machine.gpus)))
        return cls(evidence.after_entry, machine.boot_id, _find_log_gap(evidence), machine.serial, is_nameless, gpus)

    def encode(self) -> str:
        """Return it as text, "" if nothing is known. `decode` reads it back."""
        return _encode(self)

    @classmethod
    def decode(cls, text: str) -> EvidenceBasis:
        """Return what `encode` gave."""
        return cls(*json.loads(text)) if text else UNKNOWN_BASIS


UNKNOWN_BASIS = EvidenceBasis()


@lru_cache(1024)
def _encode(basis: EvidenceBasis) -> str:
    if basis == UNKNOWN_BASIS:
        return ""
    machine: list[str | bool] = ["", True] if basis.is_nameless else [basis.serial] if basis.serial else []
    if basis.gpus:
        machine = [basis.serial, basis.is_nameless, basis.gpus]
    return json.dumps([basis.after_entry, basis.boot_id, basis.log_gap, *machine], ensure_ascii=False)


def _find_log_gap(evidence: EvidenceDocument) -> str:
    """Return why lines of the kernel log since the load may be lacking, "" if none is, or if nothing was loaded."""
    if "active" not in evidence.channels:
        return ""
    if "before" not in evidence.channels:
        return "it does not say how the node was before the load"
    missed: Any = (reading := evidence.read("probe", "kernel_log", "missed")).value
    if reading.kind != "value" or type(missed) is not int:
        return f"the kernel log was not read: {reading.reason or 'nothing says how many lines were missed'}"
    return f"{missed} lines of the kernel log were overwritten before they were read" if missed else ""


COMPRESSION_LEVEL = 5
MAX_OBJECT_BYTES = 512 * 2**20
"""The largest document, decompressed. A fabric of 10,000 nodes has about 200 MB."""

OBJECT_SUFFIX = ".json.gz"
GZIP_START = b"\x1f\x8b"
"""No JSON begins so."""


def find_object_path(objects: Path, digest: str) -> Path:
    """Return where the folder of objects holds a document."""
    return objects / digest[:2] / f"{digest}{OBJECT_SUFFIX}"


def mark_used(path: Path) -> bool:
    """Return whether an object is there, and give it the present time, so that `assay prune` keeps it."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    except OSError:  # a file that nobody here may write is there too
        return path.exists()
    return True


def read_digest(path: Path) -> str:
    """Return the digest that names an object's file."""
    return path.name.partition(".")[0]


def pack_object(content: bytes) -> bytes:
    """Return the compressed form of a document; equal documents have equal forms. Raises ValueError if too large."""
    if len(content) > MAX_OBJECT_BYTES:
        raise ValueError(f"the document has {len(content) / 1e6:.0f} MB, of at most {MAX_OBJECT_BYTES / 1e6:.0f} MB")
    return gzip.compress(content, COMPRESSION_LEVEL, mtime=0)


def unpack_object(content: bytes) -> bytes:
    """Return the document of a file, compressed or not. Raises ValueError where it is damaged, or too large."""
    if not content.startswith(GZIP_START):
        return content
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # expects the header of gzip
    try:
        document = unpacker.decompress(content, MAX_OBJECT_BYTES + 1)
    except zlib.error as error:
        raise ValueError(f"its compression is damaged: {error}") from None
    if len(document) > MAX_OBJECT_BYTES:
        raise ValueError(f"decompressed, it has more than {MAX_OBJECT_BYTES / 1e6:.0f} MB")
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError(f"its compression is damaged: {'bytes follow its end' if unpacker.eof else 'its end is gone'}")
    return document
