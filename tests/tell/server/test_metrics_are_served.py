"""/metrics and /readyz: who may read them, and what they say when something is not there."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.types import Message

from assay.act.loop.context import ControllerContext
from assay.act.loop.enrollment import enroll_nodes
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.specs.credential_reference import TokenReference
from assay.observe.evidence_store import EvidenceStore
from assay.tell.server.agent_tokens import find_reader_token
from assay.tell.server.metrics_routes import build_metrics_app, parse_address, start_metrics_server
from tests.support.places import ROOT
from tests.support.site_of_agents import digest

TOKEN = "token-of-prometheus-51b2"
HERE, ELSEWHERE = "127.0.0.1", "198.51.100.7"


class Reader:
    """What asks an application, from an address and with headers, without a network between."""

    def __init__(self, home: Path) -> None:
        fleet = load_fleet(ROOT)
        self.said = list[str]()
        self.is_usable = True
        self.context = ControllerContext(
            fleet, Ledger.open(home / "ledger.sqlite"), EvidenceStore(home / "e"), SystemClock(), home, home / "r"
        )
        enroll_nodes(self.context)

    def accept(self, *references: TokenReference) -> None:
        exporters = self.context.fleet.monitorings["exporters"].model_copy(update={"metrics_token": list(references)})
        self.context = replace(self.context, fleet=replace(self.context.fleet, monitorings={"exporters": exporters}))

    @property
    def local(self) -> dict[str, str]:
        """The headers of who can read the file with the token."""
        return {"Authorization": f"Bearer {find_reader_token(self.context.home).read_text().strip()}"}

    @property
    def app(self) -> Starlette:
        return build_metrics_app(lambda: self.context, lambda: self.is_usable, self.said.append)

    def get(self, path: str, address: str, headers: Mapping[str, str] = {}) -> tuple[int, str]:
        return asyncio.run(self._get(path, address, headers))

    async def _get(self, path: str, address: str, headers: Mapping[str, str]) -> tuple[int, str]:
        encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
        scope |= {"headers": encoded, "client": (address, 40000), "server": ("x", 80), "scheme": "http"}
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent).decode()


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    reader = Reader(tmp_path_factory.mktemp("home"))
    yield reader
    reader.context.ledger.close()


@pytest.fixture(autouse=True)
def nothing_declared(reader: Reader) -> None:
    reader.accept()
    reader.said.clear()
    reader.is_usable = True


@pytest.mark.parametrize("address", [HERE, "::1", ELSEWHERE])
def test_an_address_proves_nothing_and_who_can_read_the_file_may_read(reader: Reader, address: str) -> None:
    status, text = reader.get("/metrics", address, reader.local)
    assert (status, "assay_ledger_up 1.0" in text.splitlines()) == (200, True)
    assert reader.get("/metrics", address)[0] == 401
    assert find_reader_token(reader.context.home).stat().st_mode & 0o777 == 0o600


def test_the_token_of_a_monitoring_opens_them(reader: Reader, tmp_path: Path) -> None:
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert reader.get("/metrics", ELSEWHERE, bearer)[0] == 401
    reader.accept(TokenReference(sha256=digest(TOKEN)))
    assert reader.get("/metrics", ELSEWHERE)[0] == 401
    assert reader.get("/metrics", ELSEWHERE, {"Authorization": "Bearer another"})[0] == 401
    assert reader.get("/metrics", ELSEWHERE, bearer)[0] == 200
    (tmp_path / "token").write_text(TOKEN)
    reader.accept(TokenReference(file=str(tmp_path / "none")), TokenReference(file=str(tmp_path / "token")))
    assert reader.get("/metrics", ELSEWHERE, bearer)[0] == 200


def test_an_empty_token_file_lets_nobody_in_and_one_that_is_missing_is_told(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    reader.accept(TokenReference(file=str(tmp_path / "empty")), TokenReference(file=str(tmp_path / "none")))
    for shown in ("Bearer ", "Bearer another"):
        assert reader.get("/metrics", ELSEWHERE, {"Authorization": shown})[0] == 401
    assert any("metrics_token" in line for line in reader.said)


def test_ready_says_what_is_not(reader: Reader, tmp_path: Path) -> None:
    assert reader.get("/readyz", ELSEWHERE) == (200, '{"ok":true}')
    reader.is_usable = False
    status, text = reader.get("/readyz", ELSEWHERE)
    assert (status, list(json.loads(text))) == (503, ["ok", "fleet"])
    good, reader.is_usable = reader.context, True
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    (tmp_path / "ledger.sqlite").rename(tmp_path / "gone")
    ledger.close()
    reader.context = replace(good, ledger=ledger)
    status, text = reader.get("/readyz", ELSEWHERE)
    reader.context = good
    assert (status, list(json.loads(text))) == (503, ["ok", "ledger"])


def test_what_cannot_be_collected_is_refused_and_told_and_not_half_of_it_given(reader: Reader) -> None:
    good = reader.context
    reader.context = replace(good, fleet=replace(good.fleet, policies={}))
    status, text = reader.get("/metrics", HERE, reader.local)
    reader.context = good
    assert (status, "assay_" in text) == (503, False)
    assert "the metrics cannot be collected" in reader.said[0]


def test_a_server_of_its_own_gives_them_to_a_real_reader(reader: Reader) -> None:
    url = start_metrics_server("127.0.0.1:0", lambda: reader.context, lambda: True, reader.said.append)
    with urllib.request.urlopen(urllib.request.Request(url, headers=reader.local), timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert b"\nassay_nodes{" in answer.read()
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(url, timeout=60)


@pytest.mark.parametrize("text", ["9464", "localhost:9464", "127.0.0.1", "127.0.0.1:http", "[::1]:70000"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(AssayError, match="no address to listen on"):
        parse_address(text)


def test_addresses_of_both_families_are_read() -> None:
    assert [parse_address("0.0.0.0:9464"), parse_address("[::1]:0")] == [("0.0.0.0", 9464), ("::1", 0)]
