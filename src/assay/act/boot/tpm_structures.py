"""Reads the TPM 2.0 structures of a quote, strictly: every byte must be where the standard has it, and none be left.

Source: TCG, Trusted Platform Module Library, part 2 (Structures): TPMS_ATTEST, TPMS_QUOTE_INFO, TPM2B_PUBLIC and
TPMT_SIGNATURE. All numbers are big-endian.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, NamedTuple

from assay.model.errors import AssayError

MOST_BYTES = 4096
"""Of one structure. The largest real one, a public area with a 4096-bit RSA key, has about 600."""
MAGIC, QUOTE = 0xFF544347, 0x8018
RSA, ECC, NO_ALGORITHM = 0x0001, 0x0023, 0x0010
AES_128_CFB = (0x0006, 128, 0x0043)
RSASSA, RSAPSS, ECDSA = 0x0014, 0x0016, 0x0018
HASHES = {0x000B: "sha256", 0x000C: "sha384", 0x000D: "sha512"}
CURVES = {0x0003: "secp256r1", 0x0004: "secp384r1"}
FIXED_TPM, FIXED_PARENT, ORIGIN, RESTRICTED, DECRYPT, SIGN = 1 << 1, 1 << 4, 1 << 5, 1 << 16, 1 << 17, 1 << 18


class TpmError(AssayError):
    """What a node sent is no quote, or not a quote that proves anything."""


class TpmReader:
    """Takes one field after the other from a structure. Raises TpmError where it ends too early."""

    def __init__(self, data: bytes, name: str) -> None:
        if len(data) > MOST_BYTES:
            raise TpmError(f"{name} has {len(data)} bytes, more than {MOST_BYTES}")
        self._data, self._name, self._at = data, name, 0

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        if self._at + count > len(self._data):
            raise TpmError(f"{self._name} ends at byte {len(self._data)}, in the middle of a field")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, count: int) -> int:
        """Return the next bytes as a number."""
        return int.from_bytes(self.take(count), "big")

    def sized(self) -> bytes:
        """Return what a TPM2B has: bytes after their number."""
        return self.take(self.number(2))

    def end(self) -> None:
        """Raise TpmError if bytes are left."""
        if left := len(self._data) - self._at:
            raise TpmError(f"{self._name} has {left} bytes too many")


class Attestation(NamedTuple):
    """What a TPM attests. `nonce`: what it was asked with. `pcrs`: the selected registers, of the bank `bank`."""

    nonce: bytes
    bank: str
    pcrs: tuple[int, ...]
    pcr_digest: bytes
    reset_count: int


@dataclass(frozen=True, slots=True)
class TpmKey:
    """The public area of a TPM's key. `name`: its digest with its algorithm, by which a TPM knows it.

    RSA: `numbers` are modulus and exponent. ECC: `numbers` are x and y on `curve`.
    """

    kind: Literal["rsa", "ecc"]
    name: bytes
    attributes: int
    numbers: tuple[int, int]
    curve: str = ""


class TpmSignature(NamedTuple):
    """A signature. `scheme`: its algorithm. `parts`: one number of bytes for RSA; r and s for ECDSA."""

    scheme: int
    hash_name: str
    parts: tuple[bytes, ...]


def parse_attestation(data: bytes) -> Attestation:
    """Return what a TPMS_ATTEST of a quote says. Raises TpmError."""
    reader = TpmReader(data, "the attestation")
    if reader.number(4) != MAGIC:
        raise TpmError("the attestation was not made inside a TPM: its magic number is missing")
    if reader.number(2) != QUOTE:
        raise TpmError("the attestation is no quote")
    reader.sized()  # the qualified name of the signing key
    nonce = reader.sized()
    reader.take(8)  # the clock
    reset_count = reader.number(4)
    reader.take(4 + 1 + 8)  # restarts, whether the clock is safe, firmware version
    if reader.number(4) != 1:
        raise TpmError("the quote does not select exactly one bank of registers")
    bank, bits = _find_hash(reader.number(2)), reader.take(reader.number(1))
    pcrs = tuple(number for number in range(8 * len(bits)) if bits[number // 8] >> number % 8 & 1)
    digest = reader.sized()
    reader.end()
    return Attestation(nonce, bank, pcrs, digest, reset_count)


def parse_public_key(data: bytes) -> TpmKey:
    """Return the key of a TPM2B_PUBLIC. Raises TpmError."""
    outer = TpmReader(data, "the public key")
    area = outer.sized()
    outer.end()
    reader = TpmReader(area, "the public key")
    kind, name_algorithm, attributes = reader.number(2), reader.number(2), reader.number(4)
    reader.sized()  # the policy
    name = name_algorithm.to_bytes(2, "big") + hashlib.new(_find_hash(name_algorithm), area).digest()
    if kind not in (RSA, ECC):
        raise TpmError("the public key is neither RSA nor ECC")
    if reader.number(2) != NO_ALGORITHM:
        raise TpmError("the public key is one that encrypts, and signs nothing")
    if reader.number(2) != NO_ALGORITHM:  # the scheme, with its hash
        reader.take(2)
    key = _parse_rsa(reader, name, attributes) if kind == RSA else _parse_ecc(reader, name, attributes)
    reader.end()
    return key


def parse_endorsement_key(data: bytes) -> TpmKey:
    """Return the key of a TPM2B_PUBLIC that decrypts: RSA with AES 128 in CFB mode. Raises TpmError for another one."""
    outer = TpmReader(data, "the endorsement key")
    area = outer.sized()
    outer.end()
    reader = TpmReader(area, "the endorsement key")
    kind, name_algorithm, attributes = reader.number(2), reader.number(2), reader.number(4)
    reader.sized()  # the policy
    if (kind, HASHES.get(name_algorithm)) != (RSA, "sha256"):
        raise TpmError("the endorsement key is not RSA with SHA-256, the only kind that assay knows")
    if (reader.number(2), reader.number(2), reader.number(2)) != AES_128_CFB or reader.number(2) != NO_ALGORITHM:
        raise TpmError("the endorsement key does not decrypt with AES 128 in CFB mode")
    name = name_algorithm.to_bytes(2, "big") + hashlib.sha256(area).digest()
    key = _parse_rsa(reader, name, attributes)
    reader.end()
    return key


def parse_signature(data: bytes) -> TpmSignature:
    """Return a TPMT_SIGNATURE. Raises TpmError."""
    reader = TpmReader(data, "the signature")
    scheme, hash_name = reader.number(2), _find_hash(reader.number(2))
    if scheme not in (RSASSA, RSAPSS, ECDSA):
        raise TpmError(f"the signature has a scheme that assay does not know: 0x{scheme:04x}")
    parts = (reader.sized(), reader.sized()) if scheme == ECDSA else (reader.sized(),)
    reader.end()
    return TpmSignature(scheme, hash_name, parts)


def _parse_rsa(reader: TpmReader, name: bytes, attributes: int) -> TpmKey:
    bits, exponent = reader.number(2), reader.number(4) or 65537
    modulus = reader.sized()
    if bits < 2048 or len(modulus) * 8 != bits:
        raise TpmError(f"the public key has {len(modulus) * 8} bits and says {bits}; it needs 2048 or more")
    return TpmKey("rsa", name, attributes, (int.from_bytes(modulus, "big"), exponent))


def _parse_ecc(reader: TpmReader, name: bytes, attributes: int) -> TpmKey:
    curve = reader.number(2)
    if curve not in CURVES:
        raise TpmError(f"the public key is on a curve that assay does not know: 0x{curve:04x}")
    if reader.number(2) != NO_ALGORITHM:  # how a key is derived, with its hash
        reader.take(2)
    x, y = (int.from_bytes(reader.sized(), "big") for _ in "xy")
    return TpmKey("ecc", name, attributes, (x, y), CURVES[curve])


def _find_hash(algorithm: int) -> str:
    if algorithm not in HASHES:
        raise TpmError(f"a hash algorithm is too weak or unknown: 0x{algorithm:04x}")
    return HASHES[algorithm]
