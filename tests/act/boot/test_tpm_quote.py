"""Quotes of TPMs: a right one counts, and no byte of it may change. Real ones are made by swtpm and tpm2-tools."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.act.boot.tpm import (
    CURVES,
    DECRYPT,
    ECDSA,
    MAGIC,
    QUOTE,
    REQUIRED,
    RSAPSS,
    RSASSA,
    TpmError,
    TpmQuote,
    find_key_name,
    parse_attestation,
    parse_public_key,
    parse_signature,
    verify_quote,
)
from tests.act.boot.real_tpm import RealTpm, run_tpm

NONCE = b"nonce of the server"
PCRS = {0: b"\x01" * 32, 7: b"\x07" * 32}
NOTHING = b"\x00\x10"
SHA256 = b"\x00\x0b"


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def make_attestation(nonce: bytes = NONCE, kind: int = QUOTE, magic: int = MAGIC) -> bytes:
    head = magic.to_bytes(4, "big") + kind.to_bytes(2, "big") + sized(b"name") + sized(nonce)
    selected = b"\x00\x00\x00\x01" + SHA256 + b"\x03" + bytes([0x81, 0, 0])
    digest = hashlib.sha256(b"".join(PCRS[number] for number in sorted(PCRS))).digest()
    return head + bytes(8 + 4 + 4 + 1 + 8) + selected + sized(digest)


RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def make_public(kind: str, attributes: int = REQUIRED) -> bytes:
    if kind == "ecc":
        point = EC_KEY.public_key().public_numbers()
        unique = sized(point.x.to_bytes(32, "big")) + sized(point.y.to_bytes(32, "big"))
        head, body = b"\x00\x23", ECDSA.to_bytes(2, "big") + SHA256 + next(iter(CURVES)).to_bytes(2, "big") + NOTHING
    else:
        modulus = RSA_KEY.public_key().public_numbers().n
        unique = sized(modulus.to_bytes(256, "big"))
        head, body = b"\x00\x01", NOTHING + (2048).to_bytes(2, "big") + bytes(4)
    return sized(head + SHA256 + attributes.to_bytes(4, "big") + sized(b"") + NOTHING + body + unique)


def make_quote(kind: str, attestation: bytes | None = None, attributes: int = REQUIRED) -> TpmQuote:
    data = make_attestation() if attestation is None else attestation
    if kind == "ecc":
        numbers = decode_dss_signature(EC_KEY.sign(data, ec.ECDSA(hashes.SHA256())))
        parts = b"".join(sized(number.to_bytes(32, "big")) for number in numbers)
        return TpmQuote(make_public(kind, attributes), data, ECDSA.to_bytes(2, "big") + SHA256 + parts)
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
    signed = RSA_KEY.sign(data, padding.PKCS1v15() if kind == "rsassa" else pss, hashes.SHA256())
    scheme = RSASSA if kind == "rsassa" else RSAPSS
    return TpmQuote(make_public(kind, attributes), data, scheme.to_bytes(2, "big") + SHA256 + sized(signed))


KINDS = pytest.mark.parametrize("kind", ["rsassa", "rsapss", "ecc"])


def verify(quote: TpmQuote, nonce: bytes = NONCE, pcrs: dict[int, bytes] | None = None) -> None:
    verify_quote(quote, find_key_name(quote.key), nonce, PCRS if pcrs is None else pcrs)


@KINDS
def test_a_right_quote_counts(kind: str) -> None:
    verify(make_quote(kind))


@KINDS
def test_a_quote_counts_for_nothing_else(kind: str) -> None:
    quote = make_quote(kind)
    with pytest.raises(TpmError, match="another nonce"):
        verify(quote, b"another nonce")
    with pytest.raises(TpmError, match="registers differ"):
        verify(quote, pcrs=PCRS | {7: bytes(32)})
    with pytest.raises(TpmError, match="other registers"):
        verify(quote, pcrs={0: PCRS[0]})
    with pytest.raises(TpmError, match="another TPM's key"):
        verify_quote(quote, find_key_name(make_public("ecc" if kind != "ecc" else "rsassa")), NONCE, PCRS)
    with pytest.raises(TpmError, match="signature is not of this key"):
        verify(quote._replace(attestation=make_attestation(b"forged")), b"forged")


@KINDS
@pytest.mark.parametrize("attributes", [REQUIRED & ~(1 << 16), REQUIRED & ~(1 << 1), REQUIRED | DECRYPT])
def test_a_key_that_signs_anything_or_can_be_copied_attests_nothing(kind: str, attributes: int) -> None:
    with pytest.raises(TpmError, match="none that only attests"):
        verify(make_quote(kind, attributes=attributes))


@pytest.mark.parametrize(
    ("attestation", "why"),
    [
        (make_attestation(magic=0x12345678), "not made inside a TPM"),
        (make_attestation(kind=0x8017), "is no quote"),
        (make_attestation() + b"x", "1 bytes too many"),
        (make_attestation()[:-1], "in the middle of a field"),
        (b"x" * 5000, "more than 4096"),
    ],
)
def test_what_is_signed_must_be_a_quote(attestation: bytes, why: str) -> None:
    with pytest.raises(TpmError, match=why):
        verify(make_quote("ecc", attestation))


RIGHT = {kind: make_quote(kind) for kind in ("rsassa", "ecc")}


@settings(deadline=None)
@given(st.sampled_from(sorted(RIGHT)), st.sampled_from(TpmQuote._fields), st.integers(0, 10**6), st.integers(1, 255))
def test_no_byte_of_a_quote_may_change(kind: str, field: str, place: int, change: int) -> None:
    quote = RIGHT[kind]
    data = bytearray(getattr(quote, field))
    data[place % len(data)] ^= change
    with pytest.raises(TpmError):
        verify_quote(quote._replace(**{field: bytes(data)}), find_key_name(quote.key), NONCE, PCRS)


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from([parse_attestation, parse_public_key, parse_signature]))
def test_any_bytes_are_read_or_refused(data: bytes, parse: object) -> None:
    with contextlib.suppress(TpmError):
        parse(data)  # type: ignore[operator]


@pytest.fixture(params=["rsa rsassa", "ecc ecdsa"])
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealTpm]:
    with run_tpm(tmp_path / "tpm") as tpm:
        kind, scheme = request.param.split()
        tpm.run("tpm2_createek", "-c", "ek.ctx", "-G", kind)
        tpm.run("tpm2_createak", *f"-C ek.ctx -c ak.ctx -u ak.pub -G {kind} -g sha256 -s {scheme}".split())
        yield tpm


def make_real_quote(tpm: RealTpm, nonce: bytes) -> TpmQuote:
    words = ["-c", "ak.ctx", "-l", "sha256:0,7", "-m", "quote", "-s", "signature", "-g", "sha256", "-q"]
    tpm.run("tpm2_quote", *words, nonce.hex())
    tpm.run("tpm2_pcrread", "sha256:0,7", "-o", "pcrs")
    return TpmQuote(*map(tpm.read, ("ak.pub", "quote", "signature")))


def read_pcrs(tpm: RealTpm) -> dict[int, bytes]:
    data = tpm.read("pcrs")
    return {0: data[:32], 7: data[32:64]}


def test_a_real_tpm_proves_itself_and_an_old_quote_does_not(real: RealTpm) -> None:
    quote = make_real_quote(real, b"first")
    name = find_key_name(quote.key)
    verify_quote(quote, name, b"first", read_pcrs(real))
    with pytest.raises(TpmError, match="another nonce"):
        verify_quote(quote, name, b"second", read_pcrs(real))
    real.run("tpm2_pcrextend", f"7:sha256={'ab' * 32}")
    with pytest.raises(TpmError, match="registers differ"):
        verify_quote(make_real_quote(real, b"second"), name, b"second", read_pcrs(real) | {7: bytes(32)})
