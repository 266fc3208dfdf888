"""Files of an S3 bucket that asks for keys, from a server that computes each signature itself (moto)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest
import requests
from moto.server import ThreadedMotoServer

from assay.act.boot.image_store import ImageStore
from assay.model.errors import AssayError
from assay.model.specs.firmware_bundle import FirmwareArtifact
from assay.model.specs.image import ImageArtifact

CONTENT = b"an image of a BMC" * 1000
MAY_READ = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}


@contextmanager
def serve_bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the URL of an object in a bucket; the keys of one who may only read it are in the environment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "setup")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        strictness = f"http://{host}:{port}/moto-api/reset-auth"
        session = boto3.Session()
        store, people = session.client("s3"), session.client("iam")
        store.create_bucket(Bucket="firmware")
        store.put_object(Bucket="firmware", Key="bmc/image.bin", Body=CONTENT)
        people.create_user(UserName="assay")
        people.put_user_policy(UserName="assay", PolicyName="read", PolicyDocument=json.dumps(MAY_READ))
        keys = people.create_access_key(UserName="assay")["AccessKey"]
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys["AccessKeyId"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys["SecretAccessKey"])
        requests.post(strictness, data=b"0", timeout=60).raise_for_status()
        yield "s3://firmware/bmc/image.bin"
        requests.post(strictness, data=b"inf", timeout=60).raise_for_status()  # its state is the process's
        requests.post(f"http://{host}:{port}/moto-api/reset", timeout=60).raise_for_status()
    finally:
        server.stop()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with serve_bucket(monkeypatch) as url:
        yield url


def make_artifact(url: str) -> ImageArtifact:
    return ImageArtifact(url=url, sha256=hashlib.sha256(CONTENT).hexdigest())


def test_an_object_comes_with_the_keys_of_the_environment(bucket: str, tmp_path: Path) -> None:
    assert FirmwareArtifact(url=bucket, sha256=make_artifact(bucket).sha256).name == "image.bin"
    store = ImageStore(tmp_path / "store")
    assert store.fetch_file(make_artifact(bucket), "bmc").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "SignatureDoesNotMatch"),
        ({"AWS_ACCESS_KEY_ID": "stranger"}, "InvalidAccessKeyId"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "Unable to locate credentials"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "Could not connect"),
    ],
)
def test_what_the_bucket_refuses_is_told_and_leaves_nothing(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], refusal: str
) -> None:
    for name, value in changed.items():
        monkeypatch.setenv(name, value)
    store = ImageStore(tmp_path / "store")
    with pytest.raises(AssayError, match=f"cannot be fetched: S3: .*{refusal}") as refused:
        store.fetch_file(make_artifact(bucket), "bmc")
    assert bucket in str(refused.value)
    assert not list(store.folder.iterdir())


def test_a_key_that_is_not_there_is_told(bucket: str, tmp_path: Path) -> None:
    with pytest.raises(AssayError, match="NoSuchKey"):
        ImageStore(tmp_path / "store").fetch_file(make_artifact(f"{bucket}.old"), "bmc")
