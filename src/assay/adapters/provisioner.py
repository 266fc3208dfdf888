"""Orders a machine's installation from another provisioner, by the HTTP requests that the Provisioning declares.

What it answers is believed for its own states alone. Whether the node runs its image, its probe tells afterwards.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.adapters.tickets.sink import SinkHttpClient, SinkUnavailable
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.image import Image
from assay.model.specs.provisioning import OtherProvisioner, ProvisionerOrder

if TYPE_CHECKING:
    import requests

POLL_S = 5.0


def make_texts(node: Node, image: Image) -> dict[str, str]:
    """Return what the texts of orders may name: the node's variables, and what is installed."""
    variables = {name: str(text) for name, text in node.settings.other_variables.items()}
    return {**variables, "node": node.name, "serial": node.serial, "image": image.name, "version": image.version}


class Provisioner:
    """The API of a provisioner, for one machine. `texts`: what orders may name."""

    def __init__(self, declared: OtherProvisioner, texts: Mapping[str, str], secret: str) -> None:
        self._declared, self._texts, self._secret = declared, texts, secret
        self._form: Mapping[str, str] = {}
        self._client = SinkHttpClient(declared.url, declared.url, self._sign)

    def install(self, ends: float) -> None:
        """Send the orders, each when the machine is ready for it, until the time `ends` (monotonic).

        Raises AssayError for one that is refused, a failed state, or one that does not come.
        """
        for order in self._declared.orders:
            state = self._await(order.after, ends) if order.after or order.unless else ""
            if state not in order.unless or not state:
                self._send(order)

    def _send(self, order: ProvisionerOrder) -> None:
        self._form = self._fill(order.form)
        try:
            self._client.request(order.method, self._fill(order.path), self._fill(order.body))
        finally:
            self._form = {}

    def _await(self, wanted: Sequence[str], ends: float) -> str:
        """Return the machine's state, once it is one of those wanted, where any is."""
        while True:
            state = self._read_state()
            if state in self._declared.failed:
                raise AssayError(f"it says that the machine is in {state}", where=self._declared.url)
            if not wanted or state in wanted:
                return state
            if time.monotonic() >= ends:
                raise AssayError(f"the machine stays in {state}, not {' or '.join(wanted)}", where=self._declared.url)
            time.sleep(POLL_S)

    def _read_state(self) -> str:
        path = self._fill(self._declared.state_path)
        state: Any = self._client.request("GET", path).data
        for field in self._declared.state_field.split("."):
            state = state.get(field) if isinstance(state, dict) else None
        if not isinstance(state, str):
            raise SinkUnavailable(f"{path} has no {self._declared.state_field}", where=self._declared.url)
        return state

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        words = {"secret": self._secret, "nonce": secrets.token_hex(8), "timestamp": str(int(time.time()))}
        request.headers.update({name: text.format_map(words) for name, text in self._declared.headers.items()})
        if self._form:
            del request.headers["Content-Type"]
            request.prepare_body(None, {name: (None, text) for name, text in self._form.items()})
        return request

    def _fill(self, value: Any) -> Any:
        """Return a declared value with its texts filled in. Raises AssayError for a name that the node lacks."""
        if isinstance(value, dict):
            return {key: self._fill(below) for key, below in value.items()}
        if isinstance(value, list):
            return [self._fill(below) for below in value]
        try:
            return value.format_map(self._texts) if isinstance(value, str) else value
        except (KeyError, ValueError, IndexError, AttributeError) as error:
            fix = f"give the host that variable, or use one of {', '.join(sorted(self._texts))}"
            raise AssayError(f"{value!r} names {error}", where="Provisioning", fix=fix) from None
