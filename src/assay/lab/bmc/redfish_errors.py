"""Redfish errors: an HTTP status and a message of DMTF's Base registry, as an error body."""

from __future__ import annotations

from typing import Any


class RedfishErrorResponse(Exception):
    """An error as the answer to a request. `message_id` such as `PropertyMissing`; `arguments` are its MessageArgs."""

    def __init__(self, status: int, message_id: str, text: str, *arguments: str, **headers: str) -> None:
        super().__init__(text)
        self.status, self.message_id, self.text, self.arguments = status, message_id, text, arguments
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


def malformed_body(why: str) -> RedfishErrorResponse:
    """Return a 400: the body is not the expected JSON object."""
    return RedfishErrorResponse(400, "MalformedJSON", f"The request body cannot be read: {why}")


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
