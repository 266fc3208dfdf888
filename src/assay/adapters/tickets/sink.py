"""What a ticket sink is: one module, and an entry point of the group `assay.ticket_sinks` that names its class.

The entry point's name is the key below which a TicketRoute declares the sink's settings. A sink imports what takes long
to load (an HTTP client) in its constructor: assay loads all sinks' classes to check a TicketRoute. `SinkHttpClient` is
for sinks that speak to a web service: requests with a deadline, answers as JSON, error messages without secrets.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import requests
from urllib3.exceptions import HTTPError

from assay.adapters.bmc.tls import DeadlineHttpAdapter, make_ca_context
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.specs.technician_work import SinkSettings
from assay.model.text.safe_text import escape_document, redact

if TYPE_CHECKING:
    from assay.model.ticket import TicketRecord

REQUEST_TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 16 * 1024 * 1024
RETRYABLE_STATUSES = {408, 425, 500, 502, 503, 504}
DEFAULT_WAIT_S = 60.0
"""How long to wait for a service that asks for it without a readable time."""
RequestSigner = Callable[[requests.PreparedRequest], requests.PreparedRequest]


@frozen
class SinkContext:
    """What a sink gets besides its settings.

    `where` names the route in error messages. `secret` is what the settings' `credentials` lead to, "" without
    credentials: printable ASCII. `root` is the fleet repository, `home` its folder `.assay/`.
    """

    where: str
    secret: str
    root: Path
    home: Path


class TicketSink(Protocol):
    """One destination of tickets. To deliver a ticket twice leaves one ticket there, up to date."""

    settings_model: ClassVar[type[SinkSettings]]
    """The type of the settings."""
    is_local: ClassVar[bool]
    """Whether tickets stay on this machine. A lab's tickets go to local sinks only."""

    def __init__(self, settings: Any, context: SinkContext) -> None:
        """Open the sink. `settings` is an instance of `settings_model`. May raise AssayError."""

    def deliver(self, record: TicketRecord, version: str, external_id: str) -> str:
        """Create the ticket in the sink, or bring it up to date. Return the sink's own name for it (a path, a URL).

        `version` identifies what there is to say of the ticket. `external_id` is what an earlier delivery returned,
        "" if none did: then the sink first looks for a ticket that an interrupted delivery may have left.
        Raises TicketRefusal or SinkUnavailable.
        """

    def holds(self, external_id: str) -> bool:
        """Say whether the delivered ticket is still there. A sink that needs a request to find out returns True."""


class TicketRefusal(AssayError):
    """The sink refuses this ticket. It may take others."""


class TicketNotFound(TicketRefusal):
    """The ticket that an earlier delivery created no longer exists in the sink."""


class SinkUnavailable(AssayError):
    """The sink takes no ticket now.

    `soon`: another attempt within seconds may work. `after_s`: the seconds that the sink asks to wait, 0 for none.
    """

    def __init__(self, problem: str, *, where: str = "", fix: str = "", soon: bool = False, after_s: float = 0) -> None:
        super().__init__(problem, where=where, fix=fix)
        self.soon, self.after_s = soon, after_s


@frozen
class SinkHttpAnswer:
    """A successful answer. `data` is its JSON, None if the body is none."""

    headers: Mapping[str, str]
    data: Any


class SinkHttpClient:
    """Sends requests below the URL `base`. `where` names the sink in error messages.

    `sign` adds the credentials to each request. It also keeps requests from using a password of ~/.netrc instead.
    """

    def __init__(self, base: str, where: str, sign: RequestSigner, timeout_s: float = REQUEST_TIMEOUT_S) -> None:
        self._base = base.rstrip("/")
        self.where = where
        self._timeout_s = timeout_s
        self._session, self._adapter = requests.Session(), DeadlineHttpAdapter(make_ca_context(None))
        self._session.auth = sign
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, self._adapter)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> SinkHttpAnswer:
        """Send one request, once, with the control characters in its texts escaped.

        Raises TicketNotFound, TicketRefusal or SinkUnavailable.
        """
        headers = {"Accept": "application/json", "Content-Type": "application/json", **(headers or {})}
        data = None if body is None else json.dumps(escape_document(body), ensure_ascii=False).encode(errors="replace")
        with self._adapter.cut_after(self._timeout_s) as late:  # the library's timeout starts anew with every byte
            try:
                with self._session.request(
                    method,
                    self._base + path,
                    params=query,
                    data=data,
                    headers=headers,
                    timeout=self._timeout_s,
                    allow_redirects=False,  # a request that changes something goes where the route says, or nowhere
                    stream=True,
                ) as response:
                    content = self._read(response)
                    if late.is_set():  # a header that was cut reads like a short one
                        raise requests.Timeout
                    return self._classify_response(response, _parse_json(content))
            except (requests.RequestException, HTTPError, OSError) as error:
                problem = self._describe_failure(error, late=late.is_set())
                raise SinkUnavailable(problem, where=self.where, soon=True) from None

    def read_list(self, answer: SinkHttpAnswer, *steps: str) -> list[dict[str, Any]]:
        """Return the list of objects at the path `steps` of an answer. Raises SinkUnavailable if there is none."""
        data = answer.data
        for step in steps:
            data = data.get(step) if isinstance(data, dict) else None
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            problem = "the service answers without the list that its API promises"
            raise SinkUnavailable(problem, where=self.where, fix="check the address in the route")
        return data

    def read_text(self, answer: SinkHttpAnswer, name: str) -> str:
        """Return the text in the field `name` of an answer. Raises SinkUnavailable if there is none."""
        text = answer.data.get(name) if isinstance(answer.data, dict) else None
        if not isinstance(text, str) or not text:
            problem = f"the service answers without {name}"
            raise SinkUnavailable(problem, where=self.where, fix="check the address in the route")
        return text

    def _read(self, response: requests.Response) -> bytes:
        content = b""
        for piece in response.iter_content(65536):
            content += piece
            if len(content) > MAX_ANSWER_BYTES:
                raise SinkUnavailable(f"the answer is larger than {MAX_ANSWER_BYTES} bytes", where=self.where)
        return content

    def _classify_response(self, response: requests.Response, data: Any) -> SinkHttpAnswer:
        status = response.status_code
        if 200 <= status < 300:
            return SinkHttpAnswer(response.headers, data)
        reason = _read_reason(data)
        problem = f"answers {status}: {reason}" if reason else f"answers {status}"
        wait_s = _parse_wait_s(response.headers)
        if status == 429 or (status == 403 and wait_s):
            problem = f"asks to wait ({status})"
            raise SinkUnavailable(problem, where=self.where, soon=True, after_s=wait_s or DEFAULT_WAIT_S)
        if status in RETRYABLE_STATUSES or status >= 500:
            raise SinkUnavailable(problem, where=self.where, soon=True, after_s=wait_s)
        if status in (401, 403):
            fix = "correct the route's credentials, or the rights that they have"
            raise SinkUnavailable(problem, where=self.where, fix=fix)
        if 300 <= status < 400:
            problem = f"redirects to another address ({status})"
            raise SinkUnavailable(problem, where=self.where, fix="correct the address in the route")
        raise (TicketNotFound if status in (404, 410) else TicketRefusal)(problem, where=self.where)

    def _describe_failure(self, error: Exception, *, late: bool) -> str:
        if late or isinstance(error, requests.Timeout):
            return f"no answer within {self._timeout_s:g} s"
        if isinstance(error, requests.exceptions.SSLError):
            return "its certificate is not trusted"
        return "no connection, or one that broke"


def _parse_json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _read_reason(data: Any) -> str:
    """Return why a service refuses: `message` (GitHub), `errorMessages` and `errors` (Jira)."""
    if not isinstance(data, dict):
        return ""
    reasons = [data.get("message"), data.get("errorMessages"), data.get("errors")]
    texts = [
        reason if isinstance(reason, str) else json.dumps(reason, ensure_ascii=False) for reason in reasons if reason
    ]
    return " ".join(redact("; ".join(texts)).split())[:200]


def _parse_wait_s(headers: Mapping[str, str]) -> float:
    """Return the seconds that an answer asks to wait, 0 if it does not ask (RFC 9110 and GitHub's rate limits)."""
    after = headers.get("Retry-After", "")
    if after.isdecimal():
        return float(after[:9])
    if after:
        try:
            return max(1.0, parsedate_to_datetime(after).timestamp() - time.time())
        except (ValueError, OverflowError):
            return DEFAULT_WAIT_S
    reset = headers.get("X-RateLimit-Reset", "")
    if headers.get("X-RateLimit-Remaining") == "0" and reset.isdecimal():
        return max(1.0, float(reset[:12]) - time.time())
    return 0.0
