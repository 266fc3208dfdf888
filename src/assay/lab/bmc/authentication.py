"""The accounts and login sessions of one BMC, and the errors of Redfish, with which it also refuses a login.

Sessions end with the process, as on a real BMC. An error is an HTTP status and a message of DMTF's Base registry.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ROLES = {
    "Administrator": ["Login", "ConfigureManager", "ConfigureUsers", "ConfigureComponents", "ConfigureSelf"],
    "Operator": ["Login", "ConfigureComponents", "ConfigureSelf"],
    "ReadOnly": ["Login", "ConfigureSelf"],
}
SESSION_TIMEOUT_S = 1800


class RedfishErrorResponse(Exception):
    """An error as the answer to a request. `message_id` such as `PropertyMissing`; `arguments` are its MessageArgs."""

    def __init__(self, status: int, message_id: str, text: str, *arguments: str, **headers: str) -> None:
        super().__init__(text)
        self.status = status
        self.message_id = message_id
        self.text = text
        self.arguments = arguments
        self.headers = {name.replace("_", "-"): content for name, content in headers.items()}

    def body(self) -> dict[str, Any]:
        """Return the error body of the Redfish specification."""
        (info,) = self.infos
        return {"error": {"code": info["MessageId"], "message": self.text, "@Message.ExtendedInfo": [info]}}

    @property
    def infos(self) -> list[dict[str, Any]]:
        """The messages of the error."""
        return [make_message(self.message_id, self.text, *self.arguments, severity="Critical")]


def make_message(message_id: str, text: str, *arguments: str, severity: str = "OK") -> dict[str, Any]:
    """Return one Message object."""
    full_id = message_id if "." in message_id else f"Base.1.18.{message_id}"
    return {
        "@odata.type": "#Message.v1_1_2.Message",
        "MessageId": full_id,
        "Message": text,
        "MessageArgs": list(arguments),
        "MessageSeverity": severity,
        "Severity": severity,
        "Resolution": "None" if severity == "OK" else "Correct the request and send it again.",
    }


def not_found(path: str) -> RedfishErrorResponse:
    """Return a 404: there is no such resource."""
    return RedfishErrorResponse(404, "ResourceMissingAtURI", f"There is no resource at {path}", path)


def unauthorized() -> RedfishErrorResponse:
    """Return a 401: no or wrong credentials."""
    return RedfishErrorResponse(
        401,
        "NoValidSession",
        "There is no valid session; log in or send credentials",
        WWW_Authenticate='Basic realm="bmc"',
    )


def password_change_required(account_path: str) -> RedfishErrorResponse:
    """Return a 403: the user must change the password first, at this path."""
    text = "The password must be changed before access is granted"
    return RedfishErrorResponse(403, "PasswordChangeRequired", text, account_path)


def malformed_body(reason: str) -> RedfishErrorResponse:
    """Return a 400: the body is not the expected JSON object."""
    return RedfishErrorResponse(400, "MalformedJSON", f"The request body cannot be read: {reason}")


def missing_property(name: str) -> RedfishErrorResponse:
    """Return a 400: a required property or parameter is missing."""
    return RedfishErrorResponse(400, "PropertyMissing", f"The property {name} is required and missing", name)


def not_in_list(value: object, name: str) -> RedfishErrorResponse:
    """Return a 400: the value is not one of the allowed ones."""
    return RedfishErrorResponse(
        400, "PropertyValueNotInList", f"The value {value} of {name} is not in the list of values", str(value), name
    )


def not_writable(name: str) -> RedfishErrorResponse:
    """Return a 400: the property is read only."""
    return RedfishErrorResponse(400, "PropertyNotWritable", f"The property {name} is read only", name)


def state_conflict(text: str) -> RedfishErrorResponse:
    """Return a 409: the resource's present state does not allow the operation."""
    return RedfishErrorResponse(409, "OperationFailed", text)


def digest_password(account_id: str, password: str) -> str:
    """Return what the lab keeps of a password. A lab has few rounds: it answers thousands of requests."""
    return hashlib.pbkdf2_hmac("sha256", password.encode(), account_id.encode(), 100).hex()


@dataclass(slots=True)
class BmcAccount:
    """One user. `role` is a key of `ROLES`. `digest` is of the password; nobody can log in without one.

    `must_change`: the user may only change the password, as with the first login of many machines.
    """

    id: str
    user: str
    digest: str = field(default="", repr=False)
    role: str = "Administrator"
    enabled: bool = True
    locked: bool = False
    must_change: bool = False


@dataclass(slots=True)
class LoginSession:
    """One login. `last_used` is monotonic time."""

    id: str
    account: BmcAccount
    token: str = field(repr=False)
    last_used: float = 0.0


class BmcLogins:
    """The accounts and sessions of one BMC, by id. `credentials` is `user:password` of the first administrator."""

    def __init__(self, credentials: str) -> None:
        user, _, password = credentials.partition(":")
        self.accounts = {"1": BmcAccount("1", user, digest_password("1", password))}
        self.sessions: dict[str, LoginSession] = {}

    def log_in(self, user: str, password: str) -> LoginSession:
        """Open a session. Raises RedfishErrorResponse (401) for a wrong user or password."""
        account = self._password_account(user, password)
        session = LoginSession(secrets.token_hex(5), account, secrets.token_hex(24), time.monotonic())
        self.sessions[session.id] = session
        return session

    def account_of(self, headers: Mapping[str, str]) -> BmcAccount:
        """Return the account of a request's X-Auth-Token or Basic credentials. Raises a 401 if there is none."""
        if token := headers.get("x-auth-token"):
            for session in self.live_sessions().values():
                if hmac.compare_digest(session.token.encode(), token.encode()) and session.account.enabled:
                    session.last_used = time.monotonic()
                    return session.account
            raise unauthorized()
        scheme, _, content = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            raise unauthorized()
        try:
            user, _, password = base64.b64decode(content, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise unauthorized() from None
        return self._password_account(user, password)

    def load_accounts(self, stored: Mapping[str, Mapping[str, Any]]) -> None:
        """Take over the accounts in the node's state. The first account is there in any case."""
        for ident, entry in stored.items():
            account = self.accounts.setdefault(ident, BmcAccount(ident, ""))
            for name, content in entry.items():
                setattr(account, name, content)
        for ident in self.accounts.keys() - stored.keys() - {"1"}:
            dropped = self.accounts.pop(ident)
            self.sessions = {name: session for name, session in self.sessions.items() if session.account is not dropped}

    def live_sessions(self) -> dict[str, LoginSession]:
        """Drop expired sessions and return the others."""
        oldest = time.monotonic() - SESSION_TIMEOUT_S
        self.sessions = {name: session for name, session in self.sessions.items() if session.last_used > oldest}
        return self.sessions

    def _password_account(self, user: str, password: str) -> BmcAccount:
        for account in self.accounts.values():
            if account.user != user or not account.enabled or account.locked:
                continue
            if hmac.compare_digest(account.digest, digest_password(account.id, password)):
                return account
        raise unauthorized()
