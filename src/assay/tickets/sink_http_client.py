"""One service on the web: bounded requests, answers as JSON, and what went wrong in words that hold no secret."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import requests
from urllib3.exceptions import HTTPError

from assay.model.secret_redaction import redact
from assay.redfish.tls_connection import DeadlineHttpAdapter, make_ca_context
from assay.tickets.sink_protocol import SinkUnavailable, TicketNotFound, TicketRefusal

REQUEST_TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 16 * 1024 * 1024
RETRYABLE_STATUSES = {408, 425, 500, 502, 503, 504}
RequestSigner = Callable[[requests.PreparedRequest], requests.PreparedRequest]


@dataclass(frozen=True, slots=True)
class SinkHttpAnswer:
    """A success. `data` is its JSON, None where it holds none."""

    headers: Mapping[str, str]
    data: Any


class SinkHttpClient:
    """Requests below `base`, each signed by `sign`; that also keeps a password of ~/.netrc from taking its place."""

    def __init__(self, base: str, where: str, sign: RequestSigner, timeout_s: float = REQUEST_TIMEOUT_S) -> None:
        self._base, self.where, self._timeout_s = base.rstrip("/"), where, timeout_s
        self._session, self._line = requests.Session(), DeadlineHttpAdapter(make_ca_context(None))
        self._session.auth = sign
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, self._line)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> SinkHttpAnswer:
        """Send one request, once. Raises Gone, Refused or Unavailable."""
        said = {"Accept": "application/json", "Content-Type": "application/json", **(headers or {})}
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode(errors="replace")
        with self._line.cut_after(self._timeout_s) as late:  # a byte now and then outlives any timeout of the library
            try:
                with self._session.request(
                    method,
                    self._base + path,
                    params=query,
                    data=data,
                    headers=said,
                    timeout=self._timeout_s,
                    allow_redirects=False,  # a request that changes things goes where the spec says, or nowhere
                    stream=True,
                ) as response:
                    content = self._read(response)
                    if late.is_set():  # a head that was cut reads like a short one
                        raise requests.Timeout
                    return self._classify_response(response, _json(content))
            except (requests.RequestException, HTTPError, OSError) as error:
                raise SinkUnavailable(
                    self._describe_failure(error, late=late.is_set()), where=self.where, soon=True
                ) from None

    def read_list(self, answer: SinkHttpAnswer, *steps: str) -> list[dict[str, Any]]:
        """Return the list of objects that an answer must hold, below `steps`."""
        data = answer.data
        for step in steps:
            data = data.get(step) if isinstance(data, dict) else None
        if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
            raise SinkUnavailable(
                "answers with something else than it should", where=self.where, fix="look at its address"
            )
        return data

    def read_text(self, answer: SinkHttpAnswer, name: str) -> str:
        """Return a text that an answer must hold."""
        found = answer.data.get(name) if isinstance(answer.data, dict) else None
        if not isinstance(found, str) or not found:
            raise SinkUnavailable(f"answers without {name}", where=self.where, fix="look at its address")
        return found

    def _read(self, response: requests.Response) -> bytes:
        content = b""
        for piece in response.iter_content(65536):
            content += piece
            if len(content) > MAX_ANSWER_BYTES:
                raise SinkUnavailable("answers with too much", where=self.where)
        return content

    def _classify_response(self, response: requests.Response, data: Any) -> SinkHttpAnswer:
        status = response.status_code
        if 200 <= status < 300:
            return SinkHttpAnswer(response.headers, data)
        told = _read_refusal(data)
        said = f"answers {status}{': ' if told else ''}{told}"
        wait_s = _parse_wait_s(response.headers)
        if status == 429 or (status == 403 and wait_s):
            raise SinkUnavailable(f"asks to wait ({status})", where=self.where, soon=True, after_s=wait_s or 60)
        if status in RETRYABLE_STATUSES or status >= 500:
            raise SinkUnavailable(said, where=self.where, soon=True, after_s=wait_s)
        if status in (401, 403):
            raise SinkUnavailable(
                said, where=self.where, fix="correct what its credentials refer to, and what they may do"
            )
        if 300 <= status < 400:
            raise SinkUnavailable(f"is elsewhere now ({status})", where=self.where, fix="correct its address")
        raise (TicketNotFound if status in (404, 410) else TicketRefusal)(said, where=self.where)

    def _describe_failure(self, error: Exception, *, late: bool) -> str:
        if late or isinstance(error, requests.Timeout):
            return f"no answer within {self._timeout_s:g} s"
        if isinstance(error, requests.exceptions.SSLError):
            return "its certificate is not trusted"
        return "no connection, or one that broke"


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _read_refusal(data: Any) -> str:
    """Return what a service says about a refusal: `message` (GitHub), `errorMessages` and `errors` (Jira)."""
    if not isinstance(data, dict):
        return ""
    found = [data.get("message"), data.get("errorMessages"), data.get("errors")]
    text = "; ".join(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in found if one)
    return " ".join(redact(text).split())[:200]


def _parse_wait_s(headers: Mapping[str, str]) -> float:
    """Return the seconds that an answer asks to wait, 0 where it asks nothing."""
    after = headers.get("Retry-After", "")
    if after.isdecimal():
        return float(after[:9])
    if after:
        try:
            return max(1.0, parsedate_to_datetime(after).timestamp() - time.time())
        except (ValueError, OverflowError):
            return 60.0
    reset = headers.get("X-RateLimit-Reset", "")
    if headers.get("X-RateLimit-Remaining") == "0" and reset.isdecimal():
        return max(1.0, float(reset[:12]) - time.time())
    return 0.0
