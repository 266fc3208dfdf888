"""Judges a TPM's quote: signed by a key that never leaves its TPM, over our nonce, with the registers that we expect.

A quote proves that the TPM with this key is there now. Which machine that is follows only from the key's name: it must
have been pinned for the node before. That the key belongs to a vendor's TPM (endorsement key) is not judged here.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from assay.act.boot.tpm_structures import (
    DECRYPT,
    ECDSA,
    FIXED_PARENT,
    FIXED_TPM,
    ORIGIN,
    RESTRICTED,
    RSASSA,
    SIGN,
    TpmError,
    TpmKey,
    TpmSignature,
    parse_attestation,
    parse_public_key,
    parse_signature,
)

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
            public.verify(signature.parts[0], data, _choose_padding(signature, algorithm), algorithm)
    except (InvalidSignature, ValueError):  # ValueError: a point that is not on its curve, an exponent that is none
        return False
    return True


def _choose_padding(signature: TpmSignature, algorithm: hashes.HashAlgorithm) -> padding.AsymmetricPadding:
    if signature.scheme == RSASSA:
        return padding.PKCS1v15()
    return padding.PSS(mgf=padding.MGF1(algorithm), salt_length=padding.PSS.AUTO)
