"""TLS is spoken outside of the jail: the endpoint's certificate is checked there."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fleet.broker.forward import tls
from fleet.fix.fixers.endpoint import ModelEgress
from tests.fix.test_endpoint import KEY, asked, post, refusal
from tests.sandbox.doubles import http_answer, listener, read_request


@pytest.mark.anyio
async def test_the_endpoint_is_reached_by_tls_and_its_certificate_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = _certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await read_request(reader)
            writer.write(http_answer(200, b"by tls"))
            await writer.drain()
        writer.close()

    upstream = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{upstream.sockets[0].getsockname()[1]}/v1"
    said = []
    for trusted in (None, certificate):
        if trusted:
            monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        tls.cache_clear()
        way = ModelEgress(url, key=KEY)
        with listener() as sock:
            async with way.egress(sock):
                said.append(await asked(sock.getsockname()[1], post("/v1/a")))
    tls.cache_clear()
    upstream.close()
    assert refusal(said[0]) == (502, "unreachable")
    assert said[1].endswith(b"by tls")


def _certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a model")])
    now = datetime.datetime.now(datetime.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(alternative, critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "c.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "k.pem").write_bytes(key.private_bytes(*private))
    return folder / "c.pem", folder / "k.pem"
