"""Wraps a secret so that only one TPM can unwrap it, and only if it also holds a certain attestation key.

Source: TCG, Trusted Platform Module Library, part 1 (Architecture), "Credential Protection", and part 3,
TPM2_MakeCredential; the file's form is of tpm2-tools (tpm2_makecredential).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from assay.act.boot.tpm_quote import REQUIRED
from assay.act.boot.tpm_structures import (
    DECRYPT,
    FIXED_PARENT,
    FIXED_TPM,
    RESTRICTED,
    TpmError,
    parse_endorsement_key,
    parse_public_key,
)

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
