"""The digest sink `email`: a plain text message by SMTP, encrypted by STARTTLS or from the start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import SHUT_RDWR
from threading import Timer
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.sink_settings import DigestSettings
from assay.model.texts.printable_text import escape_line
from assay.tickets.digests.digest import Digest
from assay.tickets.digests.digest_text import format_digest_lines, format_headline
from assay.tickets.sink_protocol import SinkContext, SinkUnavailable, TicketRefusal

if TYPE_CHECKING:
    import smtplib
    from email.message import EmailMessage

SMTP_TIMEOUT_S, DELIVERY_S = 10.0, 60.0
"""Of one answer, and of the whole delivery: a server may send a byte now and then."""
THIS_MACHINE = ("localhost", "127.0.0.1")
ADDRESS = r"^[^\s@<>,]+@[^\s@<>,]+$"


class EmailRoute(DigestSettings):
    """Messages `to` some addresses, from the address `sender`, through an SMTP `server` and its `port`.

    `tls`: `starttls`, `implicit` (port 465), or `none` for a mail server on this machine. `credentials` lead to
    `user:password`; without them, assay does not log in.
    """

    destination_fields: ClassVar = ("server", "to")

    server: str = Field(min_length=1)
    port: int = Field(default=587, ge=1, le=65535)
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    sender: str = Field(pattern=ADDRESS)
    to: list[str] = Field(min_length=1)
    credentials: CredentialReference | None = None

    @model_validator(mode="after")
    def _is_encrypted(self) -> Self:
        if self.tls == "none" and self.server not in THIS_MACHINE:
            raise ValueError(f"tls: none is only for a mail server on this machine, not for {self.server}")
        return self


class EmailRecipients:
    """One message to all addresses. A repeated message has the same `Message-ID`, by which mail servers drop it."""

    settings_model = EmailRoute
    is_local = False

    def __init__(self, settings: EmailRoute, context: SinkContext) -> None:
        self._settings, self._context = settings, context

    def announce(self, digest: Digest) -> None:
        """Send the message, in one connection. Raises SinkUnavailable or TicketRefusal."""
        import smtplib

        where = self._context.where
        try:
            with self._make_connection() as connection, _cut_after(connection, DELIVERY_S):
                self._open(connection)
                if self._context.secret:
                    user, _, password = self._context.secret.partition(":")
                    connection.login(user, password)
                connection.send_message(self._make_message(digest))
        except smtplib.SMTPAuthenticationError:
            fix = "correct the route's credentials: user:password"
            raise SinkUnavailable("the mail server refuses the login", where=where, fix=fix) from None
        except (smtplib.SMTPRecipientsRefused, smtplib.SMTPSenderRefused):
            raise TicketRefusal("the mail server refuses the sender or an address", where=where) from None
        except (smtplib.SMTPException, OSError) as error:
            what = f"the mail server cannot be used: {type(error).__name__}"
            raise SinkUnavailable(what, where=where, soon=True) from None

    def _make_connection(self) -> smtplib.SMTP:
        """Return a connection that is not open yet."""
        import smtplib

        from assay.redfish.connection.tls_connection import make_ca_context

        if self._settings.tls == "implicit":
            return smtplib.SMTP_SSL(timeout=SMTP_TIMEOUT_S, context=make_ca_context(None))
        return smtplib.SMTP(timeout=SMTP_TIMEOUT_S)

    def _open(self, connection: smtplib.SMTP) -> None:
        from assay.redfish.connection.tls_connection import make_ca_context

        settings = self._settings
        connection._host = settings.server  # type: ignore[attr-defined]  # for the server's name in TLS
        connection.connect(settings.server, settings.port)
        if settings.tls == "starttls":
            connection.starttls(context=make_ca_context(None))

    def _make_message(self, digest: Digest) -> EmailMessage:
        from email.message import EmailMessage

        message = EmailMessage()
        message["Subject"] = escape_line(format_headline(digest))
        message["From"], message["To"] = self._settings.sender, ", ".join(self._settings.to)
        message["Message-ID"] = f"<assay-{digest.id}@{self._settings.sender.partition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's holiday notice answers it
        message.set_content("".join(f"{escape_line(line)}\n" for line in format_digest_lines(digest)))
        return message


@contextmanager
def _cut_after(connection: smtplib.SMTP, seconds: float) -> Iterator[None]:
    """Cut the connection when the time is over: the call that waits then fails."""

    def cut() -> None:
        with suppress(OSError, AttributeError):  # there is no socket yet, or no longer
            connection.sock.shutdown(SHUT_RDWR)  # type: ignore[union-attr]

    timer = Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
