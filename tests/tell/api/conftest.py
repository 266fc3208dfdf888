"""A server in this process whose fleet has two days of history, and its visitors."""

from __future__ import annotations

import hashlib

import pytest

from assay.tell.server.app_state import AppState
from assay.tell.server.server import build_app
from assay.tell.server.server_certificate import ListenConfig, ServerCertificate
from tests.tell.asgi_calls import Caller, let_in, make_state
from tests.tell.fleet_with_history import make_fleet_with_history

TOKENS = {"ann": "token-of-ann", "vic": "token-of-vic", "tim": "token-of-tim", "acme": "token-of-acme"}
RIGHTS = {
    "ann": {"role": "operator"},
    "vic": {"role": "viewer"},
    "tim": {"role": "technician"},
    "acme": {"role": "customer", "pools": ["h100-a"]},
}
ACCESS = {
    "visitors": {
        name: {**rights, "token": {"sha256": hashlib.sha256(TOKENS[name].encode()).hexdigest()}}
        for name, rights in RIGHTS.items()
    }
}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> AppState:
    """Return the state of the server."""
    root = tmp_path_factory.mktemp("site")
    fleet = make_fleet_with_history(root)
    return make_state(let_in(fleet, ACCESS), root / ".assay")


@pytest.fixture(scope="module")
def stranger(state: AppState) -> Caller:
    """Return a caller without a token."""
    return Caller(build_app(state, ServerCertificate(ListenConfig("127.0.0.1", 0), lambda _: None)))


@pytest.fixture(scope="module")
def ann(stranger: Caller) -> Caller:
    """Return an operator."""
    return stranger.showing(TOKENS["ann"])


@pytest.fixture(scope="module")
def acme(stranger: Caller) -> Caller:
    """Return a customer of the pool h100-a."""
    return stranger.showing(TOKENS["acme"])
