"""What a person who installs the agent gets wrong is said so that it can be put right."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from pathlib import Path

import pytest
import trustme

from assay.model.errors import AssayError
from assay.node.agent.controller_connection import ControllerConnection, ControllerUnreachable
from assay.tell.server.server_certificate import ListenConfig, make_tls_context


def test_a_file_of_certificates_that_is_not_there_or_holds_none_is_named(tmp_path):
    (tmp_path / "empty.pem").write_text("no certificate\n")
    for name, why in (("nowhere.pem", "No such file or directory"), ("empty.pem", "it holds no certificate")):
        with pytest.raises(ValueError, match=rf"{name}: {why}"):
            ControllerConnection("https://controller", str, ca=str(tmp_path / name))


def test_certificates_are_read_again_and_bad_ones_leave_those_before(tmp_path):
    """A controller with a certificate of a new authority is trusted after the agent has read that authority's."""
    old, new, ca = trustme.CA(), trustme.CA(), tmp_path / "ca.pem"
    old.cert_pem.write_to_path(str(ca))
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    new.issue_cert("127.0.0.1").configure_cert(served)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        line = ControllerConnection(f"https://127.0.0.1:{listening.getsockname()[1]}", lambda: "token", ca=str(ca))
        threading.Thread(target=_answer, args=(listening, served), daemon=True).start()
        with pytest.raises(ControllerUnreachable, match="not trusted"):
            line.post("/", b"{}")
        new.cert_pem.write_to_path(str(ca))
        with pytest.raises(ControllerUnreachable, match="not trusted"):
            line.post("/", b"{}")
        line.read_certificates_again()
        assert line.post("/", b"{}").status == 200
        ca.write_text("no certificate\n")
        with pytest.raises(ValueError, match="it holds no certificate"):
            line.read_certificates_again()
        assert line.post("/", b"{}").status == 200


def _answer(listening: socket.socket, served: ssl.SSLContext) -> None:
    """Answer 200 to each request, until the test ends."""
    while True:
        try:
            with served.wrap_socket(listening.accept()[0], server_side=True) as connection:
                while connection.recv(65536):
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        except ssl.SSLError:
            continue
        except OSError:
            return


def test_a_fingerprint_is_taken_as_openssl_prints_it():
    plain = "ab" * 32
    printed = f"sha256 Fingerprint={':'.join(['AB'] * 32)}"
    assert (
        ControllerConnection("https://controller", str, pin=printed)._pin
        == ControllerConnection("https://controller", str, pin=plain)._pin
        == plain
    )


@pytest.mark.parametrize("ending", ["closed", "reset"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_who_is_hung_up_on_is_told_so_and_asked_for_https_only_if_it_spoke_plain_http(scheme, ending):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_hang_up, args=(listening, ending), daemon=True).start()
        line = ControllerConnection(f"{scheme}://127.0.0.1:{listening.getsockname()[1]}", lambda: "token")
        with pytest.raises(ControllerUnreachable) as caught:
            line.post("/", b"{}")
    assert ("does it want https?" in str(caught.value)) == (scheme == "http")


def _hang_up(listening: socket.socket, ending: str) -> None:
    """Close a connection. "reset": with an RST, as the system also sends when a request was not read whole."""
    connection, _ = listening.accept()
    connection.recv(65536)
    if ending == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("what", ["no key", "another's key", "no certificate", "nothing"])
def test_a_certificate_and_key_that_cannot_be_shown_are_named_without_the_words_of_a_library(tmp_path, what):
    mine, other = (trustme.CA().issue_cert("127.0.0.1") for _ in range(2))
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    mine.cert_chain_pems[0].write_to_path(certificate)
    other.private_key_pem.write_to_path(key)
    if what == "no certificate":
        certificate.write_text("none\n")
    if what == "nothing":
        certificate.unlink()
    with pytest.raises(AssayError) as caught:
        make_tls_context(ListenConfig("127.0.0.1", 0, certificate, None if what == "no key" else key))
    assert (caught.value.where, caught.value.what) == (str(certificate), "no certificate and key can be read")
    assert caught.value.fix.endswith("No such file or directory" if what == "nothing" else "without a passphrase")
    assert "_ssl" not in caught.value.fix


def test_what_fits_can_be_shown(tmp_path):
    path = Path(tmp_path / "both.pem")
    trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(path)
    assert isinstance(make_tls_context(ListenConfig("0.0.0.0", 0, path)), ssl.SSLContext)
