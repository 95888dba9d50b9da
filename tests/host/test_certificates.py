"""A lobby's certificate: websockets and HTTP calls trust the same ones, and the advice is about the certificate."""

import asyncio
import datetime
import ipaddress
import ssl
import sys

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from websockets.asyncio.server import serve

import bothost.messages as m
from bothost.host import certificates
from bothost.host.transport import HttpCalls
from bothost.host.websocket import OpenFailed, WebSocket
from bothost.testing.hosting import until

LOBBY = """
[[lobby]]
name = "far"
adapter = "embedded"
url = "{url}"
  [[lobby.account]]
  name = "ada"
  token = {{ file = "token" }}
  wish = [{{ game = "othello" }}]
[[route]]
strategy = "random"
"""


@pytest.fixture
def certificate(tmp_path):
    """The path of a certificate for 127.0.0.1 that no authority signed, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "lobby")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
    pem = made.add_extension(address, False).sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path = tmp_path / "lobby.pem"
    path.write_bytes(key.private_bytes(*form) + pem)
    return path


@pytest.fixture
async def lobby(certificate):
    """The address of a server with that certificate, without its scheme."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with serve(lambda connection: connection.wait_closed(), "127.0.0.1", 0, ssl=context) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.fixture
def read_anew(monkeypatch):
    """Certificates are read for every test, not once an hour."""
    certificates._read.cache_clear()
    yield monkeypatch
    certificates._read.cache_clear()


async def called(address):
    """What an HTTP call gets for an answer."""
    results = []
    calls = HttpCalls(results.append)
    calls.request(m.HttpRequest(1, "GET", f"https://{address}"))
    await until(lambda: results)
    await calls.aclose()
    return results[0]


def socket(address):
    return WebSocket(f"wss://{address}", (), 1000, lambda data: None, lambda code, reason: None)


async def test_both_transports_say_that_they_do_not_trust_a_certificate(lobby, read_anew):
    with pytest.raises(OpenFailed, match="CERTIFICATE_VERIFY_FAILED"):
        await socket(lobby).open()
    answer = await called(lobby)
    assert answer.status == 0 and answer.body.startswith(b"ConnectError: [SSL: CERTIFICATE_VERIFY_FAILED]")
    assert lobby.encode() not in answer.body


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "the system's own"])
async def test_both_transports_trust_the_same_certificates(lobby, certificate, read_anew, variable):
    if variable == "SSL_CERT_FILE":
        read_anew.setenv(variable, str(certificate))
    else:
        make = ssl.create_default_context
        read_anew.setattr(ssl, "create_default_context", lambda: make(cafile=certificate))
    opened = await socket(lobby).open()
    opened.close()
    assert (await called(lobby)).status == 426  # it wants a websocket


def test_a_system_without_certificates_has_those_of_certifi(read_anew):
    none = ssl.get_default_verify_paths()._replace(cafile=None, capath=None)
    read_anew.setattr(ssl, "get_default_verify_paths", lambda: none)
    assert certificates.trusted().cert_store_stats()["x509_ca"] > 50


@pytest.mark.parametrize("command", [("doctor", "--json"), ("lobby", "check", "far"), ("run", "--fail-fast")])
async def test_the_advice_is_about_the_certificate(lobby, tmp_path, command):
    config = tmp_path / "config.toml"
    config.write_text(LOBBY.format(url=f"wss://{lobby}"))
    (tmp_path / "token").write_text("secret")
    assert (await bothost("db", "upgrade", "--config", config))[0] == 0
    code, said = await bothost(*command, "--config", config)
    assert code == 75 and certificates.ADVICE in said


async def bothost(*arguments):
    """The exit code of the command line, and what it printed."""
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bothost", *map(str, arguments), **pipes)
    said, _ = await process.communicate()
    return process.returncode, said.decode()
