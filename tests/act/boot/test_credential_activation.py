"""A secret for one TPM and one of its keys: the real TPM unwraps it, no other does, and no changed one is unwrapped."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.act.boot.tpm import TpmError, find_endorsement_digest, make_credential, parse_endorsement_key
from tests.act.boot.real_tpm import RealTpm, run_tpm

SECRET = b"what only this TPM may know: 32b"


@pytest.fixture(scope="module")
def tpms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RealTpm, RealTpm]]:
    """Yield two machines' TPMs, each with an endorsement key and an attestation key."""
    with (
        run_tpm(tmp_path_factory.mktemp("tpm") / "a") as one,
        run_tpm(tmp_path_factory.mktemp("tpm") / "b") as other,
    ):
        for tpm in (one, other):
            tpm.run("tpm2_createek", "-c", "ek.ctx", "-G", "rsa", "-u", "ek.pub")
            tpm.run("tpm2_readpublic", "-c", "ek.ctx", "-f", "der", "-o", "ek.der")
            tpm.run(
                "tpm2_createak",
                *["-C", "ek.ctx", "-c", "ak.ctx", "-u", "ak.pub", "-G", "rsa", "-g", "sha256", "-s", "rsassa"],
            )
        yield one, other


def activate(tpm: RealTpm, credential: bytes) -> bytes:
    """Return what the TPM unwraps. Raises CalledProcessError."""
    (tpm.folder / "credential").write_bytes(credential)
    (tpm.folder / "secret").unlink(missing_ok=True)
    tpm.run("tpm2_startauthsession", "--policy-session", "-S", "session.ctx")
    try:
        tpm.run("tpm2_policysecret", "-S", "session.ctx", "-c", "e")
        words = "-c ak.ctx -C ek.ctx -i credential -o secret -P session:session.ctx"
        tpm.run("tpm2_activatecredential", *words.split())
    finally:
        tpm.run("tpm2_flushcontext", "session.ctx")
    return tpm.read("secret")


def test_the_tpm_with_both_keys_unwraps_it(tpms: tuple[RealTpm, RealTpm]) -> None:
    one, _ = tpms
    assert activate(one, make_credential(one.read("ek.pub"), one.read("ak.pub"), SECRET)) == SECRET


def test_the_digest_is_that_of_the_key_in_der(tpms: tuple[RealTpm, RealTpm]) -> None:
    one, other = tpms
    assert find_endorsement_digest(one.read("ek.pub")) == hashlib.sha256(one.read("ek.der")).hexdigest()
    assert find_endorsement_digest(one.read("ek.pub")) != find_endorsement_digest(other.read("ek.pub"))


@pytest.mark.parametrize("wrong", ["another TPM", "another key", "a changed byte"])
def test_nothing_else_unwraps_it(tpms: tuple[RealTpm, RealTpm], wrong: str) -> None:
    one, other = tpms
    endorsement, attestation = one.read("ek.pub"), one.read("ak.pub")
    if wrong == "another TPM":
        endorsement = other.read("ek.pub")
    elif wrong == "another key":
        attestation = other.read("ak.pub")
    credential = bytearray(make_credential(endorsement, attestation, SECRET))
    if wrong == "a changed byte":
        credential[20] ^= 1
    with pytest.raises(subprocess.CalledProcessError):
        activate(one, bytes(credential))


def test_keys_in_each_others_place_are_refused(tpms: tuple[RealTpm, RealTpm]) -> None:
    one, _ = tpms
    with pytest.raises(TpmError):
        make_credential(one.read("ak.pub"), one.read("ak.pub"), SECRET)
    with pytest.raises(TpmError):
        make_credential(one.read("ek.pub"), one.read("ek.pub"), SECRET)


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(TpmError):
        parse_endorsement_key(data)
