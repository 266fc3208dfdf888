"""Turns a BMC's silence or refusal into typed errors with plain messages that hold no secret."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import requests
from redfish.rest.v1 import JsonDecodingError, RestResponse

from assay.adapters.bmc.tls import CertificateNotPinned
from assay.model.errors import AssayError
from assay.model.reading import CERTIFICATE_REFUSED
from assay.model.text.safe_text import redact


class BmcUnreachable(AssayError):
    """No answer: no route, no trust, no time left, or a service that is away for a while (503)."""


class BmcAnswerLost(BmcUnreachable):
    """A request was sent, and no answer came: nobody knows whether the service did what it says."""


class BmcUntrusted(BmcUnreachable):
    """The service shows another certificate than the declared one. No waiting heals that, except while it starts."""


class BmcLoginRefused(AssayError):
    """The service refuses the user or the password. Some BMCs do so for a moment while they start."""


class BmcPasswordChangeRequired(AssayError):
    """The service accepts the login, and answers nothing before the password of `account`, a path, is changed."""

    def __init__(self, account: str, where: str) -> None:
        fix = "change it on the BMC, and at the place that bmc_credentials refers to"
        super().__init__("the BMC wants its password changed before it answers anything", where=where, fix=fix)
        self.account = account


class BmcResourceMissing(AssayError):
    """The service has no such resource."""


def error_for_response(response: RestResponse, method: str, path: str, where: str) -> AssayError:
    """Return the error for a response whose status is no success."""
    if response.status == 404:
        return BmcResourceMissing(f"the BMC has no {path}", where=where)
    message = _message(response)
    problem = f"{method} {path} answered {response.status}{': ' + message if message else ''}"
    return {503: BmcUnreachable, 401: BmcLoginRefused}.get(response.status, AssayError)(problem, where=where)


def describe_request_error(error: BaseException, limit_s: float, authority: str, *, late: bool) -> str:
    """Return why a request failed, in words.

    `authority` names who decides on the certificate, `limit_s` the time limit of the request. `late` says that the
    connection was cut on the deadline: then that is the reason, whatever the error.
    """
    chain = list(_causes(error))
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"{CERTIFICATE_REFUSED} is not accepted by {authority}: {cause.verify_message}"
        if isinstance(cause, CertificateNotPinned):
            return f"{CERTIFICATE_REFUSED} is not the one that {authority} pins: it shows {cause.shown}"
    if late or any(isinstance(cause, requests.Timeout | TimeoutError) for cause in chain):
        return f"no answer within {limit_s:g} s"
    for cause in chain:
        if isinstance(cause, ssl.SSLError):
            return f"no TLS: {cause.reason or 'handshake failed'}".lower().replace("_", " ")
        if isinstance(cause, OSError) and cause.errno and cause.strerror:
            return cause.strerror.lower()
    if isinstance(error, JsonDecodingError):
        return "its answer is no JSON"
    return f"the connection broke ({type(chain[-1]).__name__})"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all errors inside it: its cause, context, reason and arguments, at any depth."""
    seen: set[int] = set()
    queue: list[BaseException] = [error]
    while queue:
        outer = queue.pop(0)
        if id(outer) in seen:
            continue
        seen.add(id(outer))
        yield outer
        nested = [outer.__cause__, outer.__context__, getattr(outer, "reason", None), *outer.args]
        queue += [inner for inner in nested if isinstance(inner, BaseException)]


def _message(response: RestResponse) -> str:
    """Return the first message of a Redfish error body in one line, "" where there is none."""
    try:
        error = response.dict["error"]
        extended = error.get("@Message.ExtendedInfo") or [{}]
        message = extended[0].get("Message") or error.get("message") or ""
    except Exception:  # a broken BMC answers with anything; the status is enough
        return ""
    return redact(" ".join(str(message).split()))[:200]  # some repeat the password that they do not take
