"""Proves a node by its TPM 2.0: reads a quote and judges it, and wraps a secret that only this TPM can unwrap.

Reading is strict: every byte must be where the standard has it, and none be left. A quote proves that the TPM with this
key is there now; which machine that is follows only from the key's name, which must have been pinned for the node
before. That the key belongs to a vendor's TPM (endorsement key) is not judged here.

Source: TCG, Trusted Platform Module Library, part 1 ("Credential Protection"), part 2 (TPMS_ATTEST, TPMS_QUOTE_INFO,
TPM2B_PUBLIC, TPMT_SIGNATURE; all numbers are big-endian) and part 3 (TPM2_MakeCredential). The wrapped secret has the
form of tpm2-tools (tpm2_makecredential).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Literal, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from assay.model.errors import AssayError
from assay.model.facts import frozen

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


@frozen
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


REQUIRED = FIXED_TPM | FIXED_PARENT | ORIGIN | RESTRICTED | SIGN
"""A restricted key made in the TPM signs no foreign data that looks like a quote, and cannot be copied."""
SIGNATURE_HASHES: Mapping[str, type[hashes.HashAlgorithm]] = {
    "sha256": hashes.SHA256,
    "sha384": hashes.SHA384,
    "sha512": hashes.SHA512,
}
EC_CURVES: Mapping[str, type[ec.EllipticCurve]] = {"secp256r1": ec.SECP256R1, "secp384r1": ec.SECP384R1}


class TpmQuote(NamedTuple):
    """What a node sends. `key`: TPM2B_PUBLIC. `attestation`: TPMS_ATTEST. `signature`: TPMT_SIGNATURE."""

    key: bytes
    attestation: bytes
    signature: bytes


def verify_quote(quote: TpmQuote, key_name: bytes, nonce: bytes, pcrs: Mapping[int, bytes]) -> None:
    """Return if the quote is of the key with this name, over this nonce and these registers (SHA-256 bank).

    Raises TpmError with the first thing that is wrong.
    """
    key, signature = parse_public_key(quote.key), parse_signature(quote.signature)
    if not hmac.compare_digest(key.name, key_name):
        raise TpmError("the quote is of another TPM's key than the pinned one")
    if key.attributes & REQUIRED != REQUIRED or key.attributes & DECRYPT:
        raise TpmError("the key is none that only attests, or it can leave its TPM")
    if not _is_signed(key, signature, quote.attestation):
        raise TpmError("the signature is not of this key, or the attestation was changed")
    attested = parse_attestation(quote.attestation)
    if not hmac.compare_digest(attested.nonce, nonce):
        raise TpmError("the quote is over another nonce: it is an old one, or was made for somebody else")
    if (attested.bank, attested.pcrs) != ("sha256", tuple(sorted(pcrs))):
        raise TpmError("the quote is of other registers than asked for")
    expected = hashlib.new(signature.hash_name, b"".join(pcrs[number] for number in sorted(pcrs))).digest()
    if not hmac.compare_digest(attested.pcr_digest, expected):
        raise TpmError("the registers differ: the machine has started something else")


def find_key_name(key: bytes) -> bytes:
    """Return the name of a key (TPM2B_PUBLIC), to pin it. Raises TpmError."""
    return parse_public_key(key).name


def _is_signed(key: TpmKey, signature: TpmSignature, data: bytes) -> bool:
    if (signature.scheme == ECDSA) != (key.kind == "ecc"):
        return False
    algorithm = SIGNATURE_HASHES[signature.hash_name]()
    try:
        if key.kind == "ecc":
            point = ec.EllipticCurvePublicNumbers(*key.numbers, EC_CURVES[key.curve]()).public_key()
            r, s = (int.from_bytes(part, "big") for part in signature.parts)
            point.verify(encode_dss_signature(r, s), data, ec.ECDSA(algorithm))
        else:
            modulus, exponent = key.numbers
            public = rsa.RSAPublicNumbers(exponent, modulus).public_key()
            scheme: padding.AsymmetricPadding = padding.PSS(padding.MGF1(algorithm), padding.PSS.AUTO)
            if signature.scheme == RSASSA:
                scheme = padding.PKCS1v15()
            public.verify(signature.parts[0], data, scheme, algorithm)
    except (InvalidSignature, ValueError):  # ValueError: a point that is not on its curve, an exponent that is none
        return False
    return True


FILE_MAGIC, FILE_VERSION = 0xBADCC0DE, 1
SEED_BYTES, KEY_BITS, HASH_BITS = 32, 128, 256
"""Of an endorsement key by TCG's template L-1: RSA 2048, AES 128, SHA-256."""


def find_endorsement_digest(endorsement_key: bytes) -> str:
    """Return the SHA-256 of an endorsement key (TPM2B_PUBLIC) as a public key in DER, as vendors print it."""
    der = _make_rsa_key(endorsement_key).public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(der).hexdigest()


def make_credential(endorsement_key: bytes, attestation_key: bytes, secret: bytes) -> bytes:
    """Return a file for tpm2_activatecredential. Both keys are TPM2B_PUBLIC; `secret` has at most 32 bytes.

    Raises TpmError for a key that can be copied, or an attestation key that signs foreign data.
    """
    key = parse_public_key(attestation_key)
    if key.attributes & REQUIRED != REQUIRED or key.attributes & DECRYPT:
        raise TpmError("the attestation key is none that only attests, or it can leave its TPM")
    public, seed = _make_rsa_key(endorsement_key), secrets.token_bytes(SEED_BYTES)
    oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), b"IDENTITY\x00")
    wrapped_seed = public.encrypt(seed, oaep)
    storage = _derive(seed, b"STORAGE", key.name, KEY_BITS)
    encryptor = Cipher(algorithms.AES(storage), CFB(bytes(16))).encryptor()  # the standard's mode, with a fresh key
    identity = encryptor.update(_sized(secret)) + encryptor.finalize()
    integrity = hmac.digest(_derive(seed, b"INTEGRITY", b"", HASH_BITS), identity + key.name, "sha256")
    head = FILE_MAGIC.to_bytes(4, "big") + FILE_VERSION.to_bytes(4, "big")
    return head + _sized(_sized(integrity) + identity) + _sized(wrapped_seed)


def _make_rsa_key(endorsement_key: bytes) -> rsa.RSAPublicKey:
    key = parse_endorsement_key(endorsement_key)
    wanted = FIXED_TPM | FIXED_PARENT | RESTRICTED | DECRYPT
    if key.attributes & wanted != wanted:
        raise TpmError("the endorsement key is none: it can leave its TPM, or decrypts foreign data")
    modulus, exponent = key.numbers
    return rsa.RSAPublicNumbers(exponent, modulus).public_key()


def _derive(seed: bytes, label: bytes, context: bytes, bits: int) -> bytes:
    """Return a key by KDFa (part 1, "Key Derivation Function"), of at most one round of SHA-256."""
    counter = (1).to_bytes(4, "big")
    return hmac.digest(seed, counter + label + b"\x00" + context + bits.to_bytes(4, "big"), "sha256")[: bits // 8]


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data
