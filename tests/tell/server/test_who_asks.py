"""Who gets through the gate: tokens, logins and proxies of the policy's `access`, and nobody else."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet
from assay.model.specs.serving import AccessRules
from assay.tell.pages.page_frame import list_urls, reply_refusal_to_reader
from assay.tell.server import login_routes
from assay.tell.server.agent_tokens import READER_TOKEN
from assay.tell.server.gate import AccessGate
from assay.tell.server.visitor_rights import Visitor
from tests.support.places import ROOT
from tests.tell.asgi_calls import ELSEWHERE, READER, Caller, let_in, make_state

PROXY = "10.7.0.5"
ACCESS = {
    "visitors": {
        "ann": {"role": "operator", "token": {"sha256": hashlib.sha256(b"token-of-ann").hexdigest()}},
        "acme": {"role": "customer", "pools": ["h100-a"], "token": {"file": "acme-token"}},
        "tim": {"role": "technician"},
    },
    "proxy": {
        "addresses": [PROXY, "fd00::/64"],
        "groups": {"gpu-ops": {"role": "operator"}, "all": {"role": "viewer"}},
    },
}
ANN = {"authorization": "Bearer token-of-ann"}


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(ROOT)


@pytest.fixture
def caller(fleet: Fleet, tmp_path: Path) -> Callable[..., Caller]:
    """Return what makes a caller of a server with this `access`, whose one page says who asks."""

    def make(access: Mapping[str, Any] | None = ACCESS) -> Caller:
        (tmp_path / "acme-token").write_text("token-of-acme\n")
        state = make_state(replace(let_in(fleet, access), root=tmp_path), tmp_path)
        gate = AccessGate(state)

        async def say(request: Request) -> Response:
            visitor = await gate.admit(request)
            return JSONResponse({"name": visitor.name, "role": visitor.role, "pools": sorted(visitor.pools)})

        routes = [Route("/", say, methods=["GET", "POST"]), *login_routes.routes(state)]
        return Caller(Starlette(routes=routes, exception_handlers={HTTPException: reply_refusal_to_reader}))

    return make


def test_where_nobody_is_declared_who_can_read_a_file_of_the_server_reads_and_nobody_else(caller: Any) -> None:
    here = caller(None)
    assert here.get("/").status == 401, "an address proves nothing: a proxy may be before this server, and say nothing"
    assert here.get("/", accept="text/html").headers["location"] == "/login?next=%2F"
    assert here.showing(READER).get("/").json["role"] == "viewer"
    login = here.post("/login", f"token={READER}".encode(), sec_fetch_site="same-origin")
    assert here.get("/", cookie=login.headers["set-cookie"].partition(";")[0]).json["role"] == "viewer"


def test_the_token_of_that_file_is_made_once_and_for_its_owner(fleet: Fleet, tmp_path: Path) -> None:
    state = make_state(fleet, tmp_path)
    (tmp_path / READER_TOKEN).unlink()
    made = state.reader_token
    assert (made.stat().st_mode & 0o777, len(made.read_text().strip())) == (0o600, 64)
    assert make_state(fleet, tmp_path).reader_token == made


def test_where_access_is_declared_this_machine_is_nobody(caller: Any) -> None:
    assert caller().get("/").status == 401


@pytest.mark.parametrize(
    ("token", "who"),
    [
        ("token-of-ann", {"name": "ann", "role": "operator", "pools": []}),
        ("token-of-acme", {"name": "acme", "role": "customer", "pools": ["h100-a"]}),
    ],
)
def test_a_token_names_its_visitor(caller: Any, token: str, who: dict[str, Any]) -> None:
    assert caller().get("/", authorization=f"Bearer {token}").json == who


def test_wrong_tokens_are_refused_and_then_must_wait(caller: Any) -> None:
    stranger = caller()
    answers = [stranger.get("/", authorization=f"Bearer guess-{number}") for number in range(25)]
    assert {reply.status for reply in answers[:20]} == {401}
    assert answers[-1].status == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert replace(stranger, address=ELSEWHERE).get("/", **ANN).status == 200, "others need not wait"


def test_a_forged_header_names_nobody(caller: Any) -> None:
    assert caller().get("/", x_forwarded_user="ann").status == 401


@pytest.mark.parametrize(
    ("headers", "who"),
    [
        ([("x-forwarded-user", "ann")], "operator"),
        ([("x-forwarded-user", "bob"), ("x-forwarded-groups", "staff, all, gpu-ops")], "operator"),
        ([("x-forwarded-user", "bob"), ("x-forwarded-groups", "all")], "viewer"),
        ([("x-forwarded-user", "bob")], None),
        ([("x-forwarded-groups", "gpu-ops")], None),
        ([("x-forwarded-user", "ann"), ("x-forwarded-user", "bob")], None),
        ([("x-forwarded-user", "bob"), ("x-forwarded-groups", "all"), ("x-forwarded-groups", "gpu-ops")], None),
        ([("x-forwarded-user", "a" * 65), ("x-forwarded-groups", "all")], None),
    ],
)
def test_a_trusted_proxy_names_a_visitor_once(caller: Any, headers: list[tuple[str, str]], who: str | None) -> None:
    for address in (PROXY, f"::ffff:{PROXY}", "fd00::7"):
        reply = replace(caller(), address=address).send("GET", "/", b"", headers)
        assert (reply.json["role"] if reply.status == 200 else None) == who


def test_a_login_lasts_until_it_ends_and_its_cookie_is_kept_from_scripts(caller: Any) -> None:
    site = caller()
    reply = site.post("/login", b"token=token-of-ann", sec_fetch_site="same-origin")
    assert (reply.status, reply.headers["location"]) == (303, "/")
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith("__Host-assay-session=")
    assert {"HttpOnly", "Path=/", "SameSite=lax", "Secure"} <= {part.strip() for part in cookie.split(";")}
    assert site.get("/", cookie=cookie.partition(";")[0]).json["name"] == "ann"
    ended = site.post("/logout", sec_fetch_site="same-origin")
    assert "Max-Age=0" in ended.headers["set-cookie"]


def test_a_logout_ends_the_login_for_every_copy_of_its_cookie_and_no_other_login(caller: Any) -> None:
    access = {**ACCESS, "session_key": {"env": "ASSAY_TEST_SESSION_KEY"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_TEST_SESSION_KEY", "k" * 32)
        site = caller(access)
        replies = [site.post("/login", b"token=token-of-ann", sec_fetch_site="same-origin") for _ in range(2)]
        copied, other = (reply.headers["set-cookie"].partition(";")[0] for reply in replies)
        site.post("/logout", sec_fetch_site="same-origin", cookie=copied)
        assert (site.get("/", cookie=copied).status, site.get("/", cookie=other).status) == (401, 200)
        again = caller(access)
        assert (again.get("/", cookie=copied).status, again.get("/", cookie=other).status) == (401, 200)


def test_a_login_leads_to_the_page_that_was_asked_for(caller: Any) -> None:
    site = caller()
    sent = site.get("/tickets/cc17?all=true", accept="text/html")
    assert sent.status == 404, "this site has one page"
    form = site.get("/login?next=%2Ftickets%2Fcc17%3Fall%3Dtrue").body.decode()
    assert 'name="next" value="/tickets/cc17?all=true"' in form
    body = b"token=token-of-ann&next=%2Ftickets%2Fcc17%3Fall%3Dtrue"
    assert site.post("/login", body, sec_fetch_site="same-origin").headers["location"] == "/tickets/cc17?all=true"


def test_a_wrong_token_shows_the_form_again_and_the_page_is_still_asked_for(caller: Any) -> None:
    body = b"token=guess&next=%2Ftickets%2Fcc17"
    page = caller().post("/login", body, sec_fetch_site="same-origin", accept="text/html")
    assert page.status == 401
    assert 'name="next" value="/tickets/cc17"' in page.body.decode()
    assert "This token is nobody&#39;s." in page.body.decode()
    assert caller().post("/login", body, sec_fetch_site="same-origin").json["error"] == "this token is nobody's"


@pytest.mark.parametrize("address", ["//evil.example", "https://evil.example", "/\\evil.example", "", "javascript:x"])
def test_a_login_leads_nowhere_else(caller: Any, address: str) -> None:
    body = urlencode({"token": "token-of-ann", "next": address}).encode()
    assert caller().post("/login", body, sec_fetch_site="same-origin").headers["location"] == "/"


def test_a_browser_reads_why_it_was_refused_and_a_program_parses_it(caller: Any) -> None:
    page = caller().get("/nosuch", accept="text/html,application/xhtml+xml")
    assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "width=device-width" in page.body.decode()
    refused = caller().get("/nosuch")
    assert refused.headers["content-type"] == "application/problem+json"
    words = {"title": "Not Found", "detail": "Not Found", "error": "Not Found"}
    assert refused.json == {"type": "about:blank", "status": 404, **words}


def test_the_form_of_a_login_has_the_stylesheet_of_all_pages(caller: Any) -> None:
    assert list_urls()["style.css"] in caller().get("/login").body.decode()


def test_a_cookie_that_was_changed_or_is_too_old_is_nobodys(caller: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site = caller()
    cookie = site.post("/login", b"token=token-of-ann", sec_fetch_site="same-origin").headers["set-cookie"]
    good = cookie.partition(";")[0]
    changed = good[:-9] + ("A" if good[-9] != "A" else "B") + good[-8:]
    assert site.get("/", cookie=changed).status == 401
    later = time.time() + 12 * 3600 + 60
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: later)
    assert site.get("/", cookie=good).status == 401


def test_a_login_ends_when_the_rights_of_its_visitor_change(caller: Any) -> None:
    access = {**ACCESS, "session_key": {"env": "ASSAY_TEST_SESSION_KEY"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_TEST_SESSION_KEY", "k" * 32)
        form = (b"token=token-of-ann", "same-origin")
        cookie = caller(access).post("/login", form[0], sec_fetch_site=form[1]).headers["set-cookie"].partition(";")[0]
        assert caller(access).get("/", cookie=cookie).json["role"] == "operator", "another server with the same key"
        lesser = {**ACCESS["visitors"], "ann": {**ACCESS["visitors"]["ann"], "role": "viewer"}}  # type: ignore[dict-item]
        assert caller({**access, "visitors": lesser}).get("/", cookie=cookie).status == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", ""])
def test_a_change_that_another_site_asks_for_is_refused(caller: Any, site: str) -> None:
    here = caller()
    cookie = here.post("/login", b"token=token-of-ann", sec_fetch_site="same-origin").headers["set-cookie"]
    headers = {"cookie": cookie.partition(";")[0], **({"sec_fetch_site": site} if site else {})}
    assert here.post("/", **headers).status == 403
    assert here.post("/login", b"token=token-of-ann", **headers).status == 403
    assert replace(here, address=PROXY).post("/", x_forwarded_user="ann", **headers).status == 403
    assert here.post("/", **ANN, **headers).status == 200, "a token is no thing that a browser adds on its own"


def test_a_browser_without_a_login_is_led_to_the_form(caller: Any) -> None:
    reply = caller().get("/", accept="text/html,*/*")
    assert (reply.status, reply.headers["location"]) == (303, "/login?next=%2F")
    form = caller().get("/login")
    assert b'action="/login"' in form.body
    assert "default-src 'self'" in form.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in form.headers["content-security-policy"]
    assert form.headers["x-content-type-options"] == "nosniff"


@given(role=st.sampled_from(["viewer", "technician", "operator"]), pool=st.text())
def test_only_customers_see_less_than_everything(role: Any, pool: str) -> None:
    node = type("Node", (), {"pool": pool})()
    assert Visitor("x", role).may_see(node)
    assert not Visitor("x", "customer", frozenset({f"{pool}!"})).may_see(node)
    assert Visitor("x", "customer", frozenset({pool})).may_see(node)


def test_who_may_give_which_order() -> None:
    given = {role: Visitor("x", role).may_order for role in ("viewer", "customer", "technician", "operator")}
    assert [role for role, may in given.items() if may()] == ["customer", "technician", "operator"]
    assert [role for role, may in given.items() if may("operation")] == ["customer", "operator"]
    assert [role for role, may in given.items() if may("certify")] == ["technician", "operator"]
    assert [role for role, may in given.items() if may("hold")] == ["operator"]
    assert not given["operator"]("reflash")


@pytest.mark.parametrize(
    "wrong",
    [
        {"visitors": {"acme": {"role": "customer"}}},
        {"visitors": {"ann": {"role": "viewer", "pools": ["a"]}}},
        {"visitors": {"": {"role": "viewer"}}},
        {"visitors": {"ann": {"role": "root"}}},
        {"proxy": {"addresses": []}},
        {"proxy": {"addresses": ["10.0.0.1/8"]}},
        {"session_hours": 0},
    ],
)
def test_access_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AccessRules.model_validate(wrong)
