"""Logins: a signed cookie that says who has logged in and when. It ends after a time, and when rights change.

A logout ends it at once: a file keeps the names of ended logins, for as long as their cookies would last.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import Response

from assay.declare.secret_lookup import read_secret
from assay.model.errors import AssayError
from assay.model.ledger_entry import derive_id
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.serving import AccessRules, DeclaredVisitor
from assay.tell.server.visitor_rights import Visitor, make_visitor

SECURE_COOKIE, PLAIN_COOKIE = "__Host-assay-session", "assay-session"
SALT = "assay session"
MIN_KEY = 32


class Sessions:
    """Makes and reads the cookies of logins; `file` keeps the ended ones.

    `report` gets a line if the declared key cannot be used, or an end cannot be kept.
    """

    def __init__(self, root: Path, file: Path, report: Callable[[str], None] = lambda _: None) -> None:
        self._root, self._file, self._report = root, file, report
        self._ended: dict[str, float] = self._read_ended()
        self._own_key = secrets.token_hex(MIN_KEY)
        self._keys: dict[str, str] = {}

    def forget(self) -> None:
        """Read the key again when it is next needed."""
        self._keys.clear()

    def begin(self, rules: AccessRules, request: Request, response: Response, name: str) -> None:
        """Let the response set the cookie of a visitor who has shown a good token."""
        is_secure = request.url.scheme == "https"
        response.set_cookie(
            SECURE_COOKIE if is_secure else PLAIN_COOKIE,
            self._signer(rules).dumps([secrets.token_hex(8), name, _fingerprint(rules.visitors[name])]),
            max_age=int(rules.session_hours * 3600),
            secure=is_secure,
            httponly=True,
            samesite="lax",
        )

    def end(self, rules: AccessRules, request: Request, response: Response) -> None:
        """End the login of a request for good, and let the response delete the cookie."""
        if (cookie := self._read_cookie(rules, request)) is not None:
            now = time.time()
            self._ended = {name: until for name, until in self._ended.items() if until > now}
            self._ended[cookie[0]] = now + rules.session_hours * 3600
            self._keep_ended()
        response.delete_cookie(SECURE_COOKIE, secure=True, httponly=True, samesite="lax")
        response.delete_cookie(PLAIN_COOKIE, httponly=True, samesite="lax")

    def find_visitor(self, rules: AccessRules, request: Request) -> Visitor | None:
        """Return who has logged in; None without a login, or if it has ended or the visitor's rights have changed."""
        session, name, fingerprint = self._read_cookie(rules, request) or ("", "", "")
        declared = rules.visitors.get(name)
        if declared is None or session in self._ended or fingerprint != _fingerprint(declared):
            return None
        return make_visitor(name, declared)

    def _read_cookie(self, rules: AccessRules, request: Request) -> tuple[str, str, str] | None:
        """Return the name of the login, the visitor and the fingerprint; None without a cookie that still lasts."""
        text = request.cookies.get(SECURE_COOKIE if request.url.scheme == "https" else PLAIN_COOKIE, "")
        try:
            session, name, fingerprint = self._signer(rules).loads(text, max_age=int(rules.session_hours * 3600))
        except (BadData, ValueError, TypeError):
            return None
        return session, name, fingerprint

    def _read_ended(self) -> dict[str, float]:
        try:
            return dict(json.loads(self._file.read_text(encoding="ascii")))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            self._report(f"{self._file}: logins that were ended before may go on: {error}")
            return {}

    def _keep_ended(self) -> None:
        part = self._file.with_suffix(".part")
        try:
            part.write_text(json.dumps(self._ended), encoding="ascii")
            part.replace(self._file)
        except OSError as error:
            self._report(f"{self._file}: a logout holds until this server ends: {error.strerror}")

    def _signer(self, rules: AccessRules) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._find_key(rules), SALT)

    def _find_key(self, rules: AccessRules) -> str:
        """Return the declared key, which is read once. Without a usable one, return the server's own, and say so."""
        if rules.session_key is None:
            return self._own_key
        place = rules.session_key.model_dump_json()
        if place not in self._keys:
            self._keys[place] = self._read_key(rules.session_key)
        return self._keys[place]

    def _read_key(self, reference: CredentialReference) -> str:
        try:
            key = read_secret(reference, self._root)
            reason = "" if len(key) >= MIN_KEY else f"it has fewer than {MIN_KEY} characters"
        except AssayError as error:
            key, reason = "", error.what
        if reason:
            self._report(f"access.session_key: {reason}; logins end with this server")
        return self._own_key if reason else key


def _fingerprint(visitor: DeclaredVisitor) -> str:
    """Return what changes when the role, the pools or the tokens of a visitor do."""
    return derive_id("visitor", visitor.model_dump_json())
