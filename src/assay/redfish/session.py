"""A session with one BMC through the `redfish` library: links are followed, time is bounded, no secret is shown."""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Any

from redfish import redfish_client
from redfish.messages.messages import RedfishPasswordChangeRequiredError
from redfish.rest.v1 import InvalidCredentialsError, RestResponse, SessionCreationError

from assay.model.errors import AssayError
from assay.model.node import Node
from assay.redfish.credentials import UserPassword
from assay.redfish.errors import (
    BmcLoginRefused,
    BmcResourceMissing,
    BmcUnreachable,
    describe_request_error,
    error_for_response,
)
from assay.redfish.quirks import BmcDialect, BmcQuirkSet
from assay.redfish.tls_connection import CertificateTrust, DeadlineHttpAdapter

Resource = dict[str, Any]
REQUEST_TIMEOUT_S = 10.0
"""How long one request of an action may take; a read has one deadline for all of its requests."""

NO_QUIRKS = BmcQuirkSet()
_MAX_PAGES = 100
_ROOT = "/redfish/v1/"
_SESSIONS = "/redfish/v1/SessionService/Sessions"


class RedfishSession:
    """A session with the BMC of `node`. Every method raises Trouble that names the node and the address."""

    def __init__(
        self, node: Node, credentials: UserPassword, trusted: CertificateTrust, quirks: BmcQuirkSet = NO_QUIRKS
    ) -> None:
        self.node = node
        self.address = f"{node.bmc_address}:{node.settings.bmc_port}"
        self.where = f"{node.name} BMC {self.address}"
        self._connection = DeadlineHttpAdapter(_tls_context(trusted, self.where), trusted.fingerprint)
        self._authority = trusted.description
        self._quirks = quirks
        self._identity: dict[str, Any] = {}
        self.dialect: BmcDialect = quirks.dialect_of({})
        self._credentials = credentials
        self._ends_at = float("inf")
        self._limit_s = REQUEST_TIMEOUT_S
        self._unreachable = False
        self._login_refused = False
        self._client: Any = None
        self.root: Resource = {}
        self._levels = 0
        self._cache: dict[tuple[str, tuple[int, ...]], Resource] | None = None

    @contextlib.contextmanager
    def cached_reads(self) -> Iterator[None]:
        """Ask for each resource once while the block runs: what several readings need is of one moment, and cheaper."""
        self._cache = {}
        try:
            yield
        finally:
            self._cache = None

    @contextlib.contextmanager
    def deadline(self, seconds: float, of: float | None = None) -> Iterator[None]:
        """Hold everything that the block asks to one deadline; past it, what waits is cut and the rest is refused.

        `of` is what people are told of as the limit, where the block has what is left of it.
        """
        ends_at, before = time.monotonic() + seconds, (self._ends_at, self._limit_s)
        if ends_at < self._ends_at:
            self._ends_at, self._limit_s = ends_at, of or seconds
        try:
            with self._connection.cut_after(self._ends_at - time.monotonic()):
                yield
        finally:
            self._ends_at, self._limit_s = before

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
        self._client._session.trust_env = False  # neither proxies nor ~/.netrc stand between us and a BMC
        self.root = self._service_root()
        self.identify(vendor=self.root.get("Vendor"), product=self.root.get("Product"))
        self._client.root, self._client.root_resp = self.root, True
        self._client.login_url = self.root.get("Links", {}).get("Sessions", {}).get("@odata.id", _SESSIONS)
        self._open_session()
        if not self.root:
            self.root = self.get(_ROOT)
            self.identify(vendor=self.root.get("Vendor"), product=self.root.get("Product"))
        self._levels = _expand_levels(self.root)

    def identify(self, **said: Any) -> None:
        """Take in what the BMC says of itself, which may bring quirks with it."""
        self._identity.update({name: text for name, text in said.items() if text})
        self.dialect = self._quirks.dialect_of(self._identity)

    def has_feature(self, feature: str) -> bool:
        """Whether the service root says that it has a feature of the protocol, `FilterQuery`."""
        return bool((self.root.get("ProtocolFeaturesSupported") or {}).get(feature))

    def logout(self) -> None:
        """Close the session, as BMCs hold few. One that fell silent is not asked again and forgets it by itself."""
        left = min(2.0, self._ends_at - time.monotonic())
        if self._client is None or self._unreachable or left <= 0:
            self._connection.cut()
            return
        self._client._timeout = left
        with contextlib.suppress(Exception), self._connection.cut_after(left):
            self._client.logout()

    def get(self, path: str, *levels: int) -> Resource:
        """Return a resource; `levels` are depths to read along with `$expand`, best first, where it is offered."""
        if self._cache is None:
            return self._get(path, levels)
        if (path, levels) not in self._cache:
            self._cache[path, levels] = self._get(path, levels)
        return self._cache[path, levels]

    def _get(self, path: str, levels: tuple[int, ...]) -> Resource:
        most = self._levels if self.dialect.expand else 0
        depth = next((wanted for wanted in levels if wanted <= most), 0)
        response = self.request("get", path, args={"$expand": f".($levels={depth})"} if depth else None)
        if depth and response.status in (400, 500, 501):  # offered, but not here: ask plainly
            response = self.request("get", path)
        if response.status != 200:
            raise error_for_response(response, "GET", path, self.where)
        return self.read_body(response, path)

    def get_with(self, path: str, query: Mapping[str, str]) -> Resource:
        """Return a resource as it is asked for with query options."""
        response = self.request("get", path, args=dict(query))
        if response.status != 200:
            raise error_for_response(response, "GET", path, self.where)
        return self.read_body(response, path)

    def post(
        self, path: str, body: Any, headers: Mapping[str, str] | None = None, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> RestResponse:
        """Post `body` and return the response, which is a success (2xx)."""
        response = self.request("post", path, timeout_s, body=body, headers=dict(headers or {}))
        if not 200 <= response.status < 300:
            raise error_for_response(response, "POST", path, self.where)
        return response

    def follow(self, resource: Resource, link: str, *levels: int) -> Resource:
        """Return what `resource` links to as `link`, without a request where it came expanded."""
        target = resource.get(link)
        if not isinstance(target, dict) or "@odata.id" not in target:
            raise BmcResourceMissing(f"{resource.get('@odata.id', 'the service')} links to no {link}", where=self.where)
        return target if len(target) > 1 else self.get(target["@odata.id"], *levels)

    def members(self, collection: Resource) -> list[Resource]:
        """Return the members of a collection, over all its pages, each read where it did not come expanded."""
        return [member for page in self.pages(collection) for member in page]

    def pages(self, collection: Resource) -> Iterator[list[Resource]]:
        """Yield the members of a collection page by page."""
        for _ in range(_MAX_PAGES):
            members = collection.get("Members", [])
            yield [member if len(member) > 1 else self.get(member["@odata.id"]) for member in members]
            following = collection.get("Members@odata.nextLink")
            if not following:
                return
            collection = self.get(following)
        raise AssayError(f"a collection of more than {_MAX_PAGES} pages", where=self.where)

    def request(self, method: str, path: str, timeout_s: float = REQUEST_TIMEOUT_S, **request: Any) -> RestResponse:
        """Send one request, with a new session where the old one is no longer known. Raises NoAnswer in words."""
        response = self._send(method, path, timeout_s, request)
        if response.status == 401 and (self._client.get_session_key() or self._login_refused):
            self._open_session()
            response = self._send(method, path, timeout_s, request)
        return response

    def _send(self, method: str, path: str, timeout_s: float, request: Mapping[str, Any]) -> RestResponse:
        limit_s = self._time_left(timeout_s)
        try:
            response: RestResponse = getattr(self._client, method)(path, timeout=limit_s, **request)
        except Exception as error:  # the library raises a dozen kinds, some of them bare
            raise self._no_answer(error, limit_s) from None
        self._unreachable = False
        return response

    def _time_left(self, at_most_s: float) -> float:
        left = self._ends_at - time.monotonic()
        if left <= 0:
            self._unreachable = True
            raise BmcUnreachable(f"no answer within {self._limit_s:g} s", where=self.where)
        return min(at_most_s, left)

    def _no_answer(self, error: Exception, limit_s: float) -> BmcUnreachable:
        self._unreachable = True
        late = time.monotonic() >= self._ends_at - 0.01
        return BmcUnreachable(
            describe_request_error(error, self._limit_s if late else limit_s, self._authority, late=late),
            where=self.where,
        )

    def read_body(self, response: RestResponse, path: str) -> Resource:
        """Return a response's JSON object."""
        try:
            content = response.dict
        except Exception:  # JsonDecodingError carries the whole body; it is not repeated here
            content = None
        if not isinstance(content, dict):
            raise AssayError(f"{path} answered with something that is no JSON object", where=self.where)
        return content

    @contextlib.contextmanager
    def stream_lines(self, path: str, headers: Mapping[str, str], idle_s: float) -> Iterator[Iterator[str]]:
        """Give the lines of a stream as they come; it ends with the deadline, and raises NoAnswer where it breaks.

        The library reads a body to its end before it hands it over, so the stream goes past it, on its line.
        """
        asked = {**self._client._get_req_headers(), **headers, "Accept": "text/event-stream"}
        limit_s = self._time_left(idle_s)
        try:
            with self._client._session.get(
                f"https://{self.address}{path}", headers=asked, timeout=limit_s, stream=True, allow_redirects=False
            ) as answer:
                if answer.status_code != 200:
                    raise AssayError(f"GET {path} answered {answer.status_code}", where=self.where)
                yield answer.iter_lines(chunk_size=1, decode_unicode=True)
        except AssayError:
            raise
        except Exception as error:
            trouble = self._no_answer(error, limit_s)
            self._unreachable = False  # a stream that was cut says nothing of the BMC: it is still to be logged out
            raise trouble from None
        raise BmcUnreachable("the stream ended", where=self.where)

    def own_address(self) -> str:
        """Return our own address as the BMC sees it."""
        return self._connection.own_address

    def _service_root(self) -> Resource:
        """Return the service root, empty where it is shown to those only who are logged in (against the standard)."""
        response = self.request("get", _ROOT)
        if response.status == 401:
            return {}
        if response.status != 200:
            raise error_for_response(response, "GET", _ROOT, self.where)
        return self.read_body(response, _ROOT)

    def _open_session(self) -> None:
        limit_s = self._client._timeout = self._time_left(REQUEST_TIMEOUT_S)
        self._client.set_session_key(None)
        self._login_refused = True
        try:
            self._client.login(auth=self.dialect.login)
            self._login_refused = False
        except InvalidCredentialsError:
            raise BmcLoginRefused(
                "the BMC refuses the user or the password",
                where=self.where,
                fix="correct what bmc_credentials refers to",
            ) from None
        except RedfishPasswordChangeRequiredError:
            raise AssayError(
                "the BMC wants its password changed before it answers anything",
                where=self.where,
                fix="change it there, and where bmc_credentials refers to",
            ) from None
        except SessionCreationError as error:  # its second line is the BMC's own and may repeat what we sent
            raise AssayError(f"the BMC opens no session: {str(error).splitlines()[0]}", where=self.where) from None
        except Exception as error:
            raise self._no_answer(error, limit_s) from None


def _expand_levels(root: Resource) -> int:
    """Return how deep the service expands subordinate resources, 0 where it does not offer it."""
    offer = root.get("ProtocolFeaturesSupported", {}).get("ExpandQuery", {})
    if not offer.get("NoLinks"):
        return 0
    return int(offer.get("MaxLevels", 1)) if offer.get("Levels") else 1


def _tls_context(trusted: CertificateTrust, where: str) -> ssl.SSLContext:
    try:
        return trusted.context()
    except OSError as error:
        reason = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise AssayError(f"bmc_ca {trusted.ca} cannot be used: {reason}", where=where) from None
