"""A session with one BMC through the `redfish` library: it follows links, bounds time and shows no secret.

BMCs hold few sessions, note each login in a log of theirs, and a login costs them more than most reads. So sessions
are kept between the passes of one process.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from collections.abc import Collection, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from redfish import redfish_client
from redfish.messages.messages import RedfishPasswordChangeRequiredError
from redfish.rest.v1 import InvalidCredentialsError, RestResponse, SessionCreationError

from assay.adapters.bmc.errors import (
    BmcAnswerLost,
    BmcLoginRefused,
    BmcPasswordChangeRequired,
    BmcResourceMissing,
    BmcUnreachable,
    BmcUntrusted,
    describe_request_error,
    error_for_response,
)
from assay.adapters.bmc.quirks import BmcDialect, BmcQuirkSet
from assay.adapters.bmc.request_time import READS_AT_ONCE, REQUEST_TIMEOUT_S, OneRead, ParallelReads, RequestTime
from assay.adapters.bmc.tls import CertificateTrust, DeadlineHttpAdapter, format_url_host
from assay.declare.secret_lookup import describe_reference, read_secret
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.node import Node
from assay.model.reading import CERTIFICATE_REFUSED, ReadingTree, value

Resource = dict[str, Any]
"""The JSON object of one Redfish resource."""
NO_QUIRKS = BmcQuirkSet()
CLOSED_AT_ONCE = 16
CLOSING_S = 5.0
_MAX_PAGES = 100
_ROOT = "/redfish/v1/"
_SESSIONS = "/redfish/v1/SessionService/Sessions"
DAY_S = 86400
BUSY_TIMES, BUSY_S = 4, 30.0
"""So often and so long is a BMC waited for that says when it takes requests again."""
RENEWED_FIX = "if a flash or a person renewed it, read its SHA-256 at the BMC itself, and declare it as bmc_fingerprint"
CREDENTIALS_FIX = "name them: {env: NAME}, {file: PATH}, {command: [PROGRAM, …]} or {vault: !vault …}"


@frozen
class UserPassword:
    """A user and a password; neither appears in `repr`."""

    user: str = field(repr=False)
    password: str = field(repr=False)


def read_bmc_credentials(node: Node, root: Path) -> UserPassword:
    """Return the credentials that `bmc_credentials` of a node refers to.

    Raises AssayError where none are declared, or where the place does not hold `user:password`.
    """
    where = f"{node.name} bmc_credentials"
    reference = node.settings.bmc_credentials
    if reference is None:
        raise AssayError("no credentials are declared", where=where, fix=CREDENTIALS_FIX)
    try:
        return parse_user_password(read_secret(reference, root), describe_reference(reference))
    except AssayError as error:
        raise AssayError(error.what, where=where, fix=error.fix) from None


def parse_user_password(text: str, source: str) -> UserPassword:
    """Split `user:password`. Raises AssayError, which names `source`, where the text has another form."""
    user, colon, password = text.partition(":")
    if not (user and colon and password):
        state = 'does not hold "user:password"' if text else "is not set" if "variable" in source else "gives nothing"
        raise AssayError(f"{source} {state}", fix='put "user:password" there')
    return UserPassword(user, password)


class RedfishSession:
    """A session with the BMC of `node`. Its methods raise AssayError, whose `where` names the node and the address.

    `dialect` is how to read this BMC; quirks change it as the BMC identifies itself. `root` is the service root.
    `neighbours` are the other nodes behind this BMC, by the Ids of their systems, as last read.
    """

    def __init__(
        self, node: Node, credentials: UserPassword, trust: CertificateTrust, quirks: BmcQuirkSet = NO_QUIRKS
    ) -> None:
        self.node = node
        self.address = f"{format_url_host(node.bmc_address)}:{node.settings.bmc_port}"
        self.where = f"{node.name} BMC {self.address}"
        self._connection = DeadlineHttpAdapter(_tls_context(trust, self.where), trust.fingerprint, READS_AT_ONCE)
        self._authority = trust.description
        self._quirks = quirks
        self._identity: dict[str, Any] = {}
        self.dialect: BmcDialect = quirks.dialect_of({})
        self._credentials = credentials
        self.time = RequestTime(self.where)
        self._login_lock = threading.Lock()
        self._login_refused = False
        self._client: Any = None
        self.root: Resource = {}
        self.neighbours: list[str] = []
        self._expand_levels = 0
        self.reads = ParallelReads(1)
        self._cache: dict[tuple[str, tuple[int, ...]], OneRead[Resource]] | None = None

    @contextlib.contextmanager
    def cached_reads(self) -> Iterator[None]:
        """Read each resource at most once while the block runs: cheaper, and readings share one moment."""
        self._cache = {}
        try:
            yield
        finally:
            self._cache = None

    @contextlib.contextmanager
    def parallel_reads(self, request_s: float) -> Iterator[None]:
        """Read several resources at once in the block, each within `request_s`: one that hangs delays no other."""
        alone = self.reads
        try:
            with self.time.patience(request_s), ParallelReads(READS_AT_ONCE) as self.reads:
                yield
        finally:
            self.reads = alone

    def login(self) -> None:
        """Read the service root and open a session."""
        self._client = redfish_client(
            f"https://{self.address}",
            self._credentials.user,
            self._credentials.password,
            max_retry=0,
            check_connectivity=False,
            https_adapter=self._connection,
        )
        self._client._session.trust_env = False  # use neither proxies nor ~/.netrc for a BMC
        self._read_root()
        self._open_session()
        if not self.root:
            self.root = self.get(_ROOT)
            self.identify(vendor=self.root.get("Vendor"), product=self.root.get("Product"))
        self._expand_levels = _find_expand_levels(self.root)

    def resume(self, quirks: BmcQuirkSet) -> None:
        """Go on with a session that was kept. Where the BMC has forgotten it, the next request logs in again."""
        self._quirks = quirks
        self._read_root()
        self._expand_levels = _find_expand_levels(self.root)

    def _read_root(self) -> None:
        response = self.request("get", _ROOT)
        # some BMCs show it only after login, against the standard
        self.root = {} if response.status == 401 else self._read_resource(response, _ROOT)
        self.identify(vendor=self.root.get("Vendor"), product=self.root.get("Product"))
        self._client.root, self._client.root_resp = self.root, True
        self._client.login_url = self.root.get("Links", {}).get("Sessions", {}).get("@odata.id", _SESSIONS)

    @property
    def may_be_kept(self) -> bool:
        """Whether the BMC answers, has opened a session, and shows its service root without one."""
        return bool(self.root) and not self.time.is_silent and bool(self._client and self._client.get_session_key())

    def close_connections(self) -> None:
        """Close the connections, not the session."""
        self._connection.close()

    def identify(self, **identity: Any) -> None:
        """Add to the BMC's identity (vendor, product, manufacturer, model, bmc_version) and apply the quirks for it."""
        self._identity.update({name: text for name, text in identity.items() if text})
        self.dialect = self._quirks.dialect_of(self._identity)

    def is_own_user(self, user: object) -> bool:
        """Return whether this session logs in as a user."""
        return user == self._credentials.user

    def is_own_login(self, user: object, logins: Collection[tuple[str, str]]) -> bool:
        """Return whether this session logs in as a user, and with one of these logins."""
        return self.is_own_user(user) and (self._credentials.user, self._credentials.password) in logins

    def read_certificate(self, now: datetime) -> ReadingTree:
        """Return how the newest connection is protected: what vouches for the certificate, and for how long."""
        from cryptography.x509 import load_der_x509_certificate

        version, shown = self._connection.shown
        left_s = (load_der_x509_certificate(shown).not_valid_after_utc - now).total_seconds()
        return {"known_by": value(self._authority), "tls": value(version), "days_left": value(int(left_s // DAY_S))}

    def has_feature(self, feature: str) -> bool:
        """Return whether the service root announces a feature of the protocol, such as `FilterQuery`."""
        return bool((self.root.get("ProtocolFeaturesSupported") or {}).get(feature))

    def logout(self) -> None:
        """Close the session, since BMCs hold few. A BMC that fell silent is not asked; it lets the session time out."""
        if self._client is None or self.time.is_silent or self.time.is_over():
            self._connection.close()
            return
        with contextlib.suppress(Exception), self._connection.cut_after(self.time.left(2.0)):
            self._client.logout()

    def get(self, path: str, *levels: int) -> Resource:
        """Return a resource, with subordinate ones expanded where offered; `levels` are depths, the best first."""
        if self._cache is None:
            return self._get(path, levels)
        return self._cache.setdefault((path, levels), OneRead(lambda: self._get(path, levels))).result()

    def _get(self, path: str, levels: tuple[int, ...]) -> Resource:
        most = self._expand_levels if self.dialect.expand else 0
        depth = next((wanted for wanted in levels if wanted <= most), 0)
        response = self.request("get", path, args={"$expand": f".($levels={depth})"} if depth else None)
        if depth and response.status in (400, 500, 501):  # offered, but not for this resource
            response = self.request("get", path)
        return self._read_resource(response, path)

    def get_with(self, path: str, query: Mapping[str, str]) -> Resource:
        """Return a resource, read with query options."""
        return self._read_resource(self.request("get", path, args=dict(query)), path)

    def _read_resource(self, response: RestResponse, path: str) -> Resource:
        """Return the resource that was asked for. A task may answer 202 while it runs."""
        content = self.read_body(response, path) if response.status in (200, 202) else {}
        if response.status != 200 and content.get("@odata.id") != path:
            raise error_for_response(response, "GET", path, self.where)
        return content

    def post(
        self, path: str, body: Any, headers: Mapping[str, str] | None = None, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> RestResponse:
        """Post `body` and return the response. Raises AssayError unless its status is 2xx."""
        response = self.request("post", path, timeout_s, body=body, headers=dict(headers or {}))
        if not 200 <= response.status < 300:
            raise error_for_response(response, "POST", path, self.where)
        return response

    def follow(self, resource: Resource, link: str, *levels: int) -> Resource:
        """Return the resource behind a link; no request is needed where it came expanded."""
        target = resource.get(link)
        if not isinstance(target, dict) or "@odata.id" not in target:
            raise BmcResourceMissing(f"{resource.get('@odata.id', 'the service')} links to no {link}", where=self.where)
        return target if len(target) > 1 else self.get(target["@odata.id"], *levels)

    def members(self, collection: Resource, *, may_go: bool = False) -> list[Resource]:
        """Return the members of a collection, from all its pages. Members that did not come expanded are read.

        One that `may_go` at any time is {} if it is gone since it was listed.
        """
        return [member for page in self.pages(collection, may_go=may_go) for member in page]

    def pages(self, collection: Resource, *, may_go: bool = False) -> Iterator[list[Resource]]:
        """Yield the members of a collection page by page."""
        for _ in range(_MAX_PAGES):
            yield self.reads.gather(
                partial(self._read_member, member, may_go) for member in collection.get("Members", [])
            )
            following = collection.get("Members@odata.nextLink")
            if not following:
                return
            collection = self.get(following)
        raise AssayError(f"a collection of more than {_MAX_PAGES} pages", where=self.where)

    def _read_member(self, member: Resource, may_go: bool) -> Resource:
        with contextlib.suppress(*[BmcResourceMissing] if may_go else []):
            return member if len(member) > 1 else self.get(member["@odata.id"])
        return {}

    def require_own_machine(self) -> None:
        """Raise AssayError unless the machine is known to be the node's; it is asked before each order."""

    def request(
        self, method: str, path: str, timeout_s: float = REQUEST_TIMEOUT_S, *, of_any: bool = False, **request: Any
    ) -> RestResponse:
        """Send one request, an order only to the node's own machine unless `of_any`. Raises BmcUnreachable.

        Where the BMC no longer knows the session, log in again.
        """
        if method != "get" and not of_any:
            self.require_own_machine()
        key = self._client.get_session_key()
        response = self._send_in_time(method, path, timeout_s, request)
        if response.status == 401 and (key or self._login_refused):
            with self._login_lock:
                if self._client.get_session_key() == key:  # else another thread has just logged in
                    self._open_session()
            response = self._send_in_time(method, path, timeout_s, request)
        return response

    def _send_in_time(self, method: str, path: str, timeout_s: float, request: Mapping[str, Any]) -> RestResponse:
        """Send a request, again where the BMC had too many. One that is away (503) is waited for with an order only."""
        for _ in range(BUSY_TIMES):
            response = self._send(method, path, timeout_s, request)
            pause_s = response.retry_after
            is_busy = response.status == 429 or (response.status == 503 and pause_s is not None and method != "get")
            if not is_busy or (pause_s := min(pause_s or 1, BUSY_S)) >= self.time.left(BUSY_S + 1):
                break
            time.sleep(pause_s)
        return response

    def _send(self, method: str, path: str, timeout_s: float, request: Mapping[str, Any]) -> RestResponse:
        limit_s, began = self.time.left(timeout_s), time.monotonic()
        if "headers" in request:  # the library changes them, and the request may be sent once more
            request = {**request, "headers": dict(request["headers"])}
        with self._connection.cut_after(limit_s) as late:
            try:
                response: RestResponse = getattr(self._client, method)(path, timeout=limit_s, **request)
            except Exception as error:  # the library raises a dozen classes, some of them bare Exception
                raise self._no_answer(error, limit_s, late=late.is_set()) from None
        self.time.note_answer(time.monotonic() - began)
        return response

    def _no_answer(self, error: Exception, limit_s: float, *, late: bool) -> BmcUnreachable:
        self.time.note_silence()
        limit_s = self.time.name_limit(limit_s)
        problem = describe_request_error(error, limit_s, self._authority, late=late)
        if problem.startswith(CERTIFICATE_REFUSED):
            return BmcUntrusted(problem, where=self.where, fix=RENEWED_FIX)
        return (BmcAnswerLost if self._connection.has_sent else BmcUnreachable)(problem, where=self.where)

    def read_body(self, response: RestResponse, path: str) -> Resource:
        """Return a response's JSON object."""
        try:
            content = response.dict
        except Exception:  # JsonDecodingError carries the whole body; it is not repeated here
            content = None
        if not isinstance(content, dict):
            raise AssayError(f"{path} answered with something other than a JSON object", where=self.where)
        return content

    def own_address(self) -> str:
        """Return this machine's address on the connection to the BMC."""
        return self._connection.own_address

    def _open_session(self) -> None:
        limit_s = self.time.left(REQUEST_TIMEOUT_S)
        # A root that cannot be read without a login may offer sessions.
        offers_sessions = not self.root or "SessionService" in self.root or "Sessions" in self.root.get("Links", {})
        self._client.set_session_key(None)
        self._login_refused = True
        with self._connection.cut_after(limit_s) as late:
            try:
                self._client.login(auth=self.dialect.login if offers_sessions else "basic")
                self._login_refused = False
            except InvalidCredentialsError:
                raise BmcLoginRefused(
                    "the BMC refuses the user or the password",
                    where=self.where,
                    fix="correct what bmc_credentials refers to; of a new machine: assay discover take-over",
                ) from None
            except RedfishPasswordChangeRequiredError as error:
                raise BmcPasswordChangeRequired(str(error.args[1]), self.where) from None
            except SessionCreationError as error:  # its second line is the BMC's and may repeat the password
                reason = str(error).splitlines()[0]
                raise AssayError(f"the BMC opens no session: {reason}", where=self.where) from None
            except Exception as error:
                raise self._no_answer(error, limit_s, late=late.is_set()) from None


def _find_expand_levels(root: Resource) -> int:
    """Return how deep the service expands subordinate resources, 0 where it does not."""
    offer = root.get("ProtocolFeaturesSupported", {}).get("ExpandQuery", {})
    if not offer.get("NoLinks"):
        return 0
    return int(offer.get("MaxLevels", 1)) if offer.get("Levels") else 1


def _tls_context(trust: CertificateTrust, where: str) -> ssl.SSLContext:
    try:
        return trust.context()
    except OSError as error:
        reason = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise AssayError(f"bmc_ca {trust.ca} cannot be used: {reason}", where=where) from None


class BmcSessionPool:
    """Open sessions by whom they are with. Each is lent to one reader at a time; their secrets stay in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[Hashable, RedfishSession] = {}
        self._is_closed = False

    def take(self, key: Hashable) -> RedfishSession | None:
        """Return a kept session and forget it here, None if there is none."""
        with self._lock:
            return self._sessions.pop(key, None)

    def keep(self, key: Hashable, session: RedfishSession) -> bool:
        """Keep a session, and close its connections. Return False if none is kept any more, or one is kept already."""
        with self._lock:
            if self._is_closed or key in self._sessions or not session.may_be_kept:
                return False
            self._sessions[key] = session
        session.close_connections()
        return True

    def close(self) -> None:
        """Log out of as many as CLOSING_S allows; the others time out."""
        until = time.monotonic() + CLOSING_S
        with self._lock:
            self._is_closed, sessions = True, list(self._sessions.values())
            self._sessions.clear()
        with ThreadPoolExecutor(CLOSED_AT_ONCE) as pool:
            list(pool.map(lambda session: session.logout() if time.monotonic() < until else None, sessions))
