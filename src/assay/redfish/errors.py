"""What a BMC's silence or refusal means, in words for people, with nothing in them that must stay secret."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import requests
from redfish.rest.v1 import JsonDecodingError, RestResponse

from assay.model.errors import AssayError


class BmcUnreachable(AssayError):
    """Nothing came back: no route, no trust, no time left, or only that the service is away for a while (503)."""


class BmcLoginRefused(AssayError):
    """The service does not accept who we say we are. Some do not for a moment while they start."""


class BmcResourceMissing(AssayError):
    """The service says that it has no such resource."""


def error_for_response(response: RestResponse, method: str, path: str, where: str) -> AssayError:
    """Return the Trouble for a response that is no success."""
    if response.status == 404:
        return BmcResourceMissing(f"the BMC has no {path}", where=where)
    said = _message(response)
    what = f"{method} {path} answered {response.status}{': ' + said if said else ''}"
    return {503: BmcUnreachable, 401: BmcLoginRefused}.get(response.status, AssayError)(what, where=where)


def describe_request_error(error: BaseException, limit_s: float, authority: str, *, late: bool) -> str:
    """Say why a request came to nothing. `late` where the line was cut on the deadline, whatever error that gave."""
    chain = list(_causes(error))
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not accepted by {authority}: {cause.verify_message}"
        if "Fingerprints did not match" in str(cause):
            return f"its certificate is not the one that {authority} pins"
    if late or any(isinstance(cause, requests.Timeout | TimeoutError) for cause in chain):
        return f"no answer within {limit_s:g} s"
    for cause in chain:
        if isinstance(cause, ssl.SSLError):
            return f"no TLS: {cause.reason or 'handshake failed'}".lower().replace("_", " ")
        if isinstance(cause, OSError) and cause.errno and cause.strerror:
            return cause.strerror.lower()
    if isinstance(error, JsonDecodingError):
        return "its answer is no JSON"
    return f"the line broke ({type(chain[-1]).__name__})"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and everything it came from, however the libraries below wrapped it."""
    seen: set[int] = set()
    queue: list[BaseException] = [error]
    while queue:
        one = queue.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        nested = [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
        queue += [inner for inner in nested if isinstance(inner, BaseException)]


def _message(response: RestResponse) -> str:
    """Return the first message of a Redfish error body, one line."""
    try:
        error = response.dict["error"]
        extended = error.get("@Message.ExtendedInfo") or [{}]
        said = extended[0].get("Message") or error.get("message") or ""
    except Exception:  # a BMC in trouble answers with anything; the status says enough
        return ""
    return " ".join(str(said).split())[:200]
