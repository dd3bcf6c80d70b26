"""TLS is spoken outside of the jail: the endpoint's certificate is checked there."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import ssl
from functools import partial
from pathlib import Path
from typing import cast

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fleet import http_client
from fleet.broker.forward import tls
from fleet.config import FleetConfig, ModelSection
from fleet.drivers.model import endpoint
from fleet.drivers.model.endpoint import open_endpoint
from fleet.errors import ConfigError
from fleet.events.outbound import attempt, post_signed
from fleet.events.sinks import SinkQueue
from fleet.fix.fixers.endpoint import ModelEgress
from fleet.http_client import HttpFailure, get, open_client, trust_store
from fleet.service.notify.receivers import receivers_of
from fleet.service.notify.state import NoticeMessage
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


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2])
async def test_no_provider_is_spoken_to_by_less_than_tls_1_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newest: ssl.TLSVersion
) -> None:
    certificate, key = _certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1_1, newest
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.load_cert_chain(certificate, key)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    ours = ssl.create_default_context(cafile=str(certificate))
    ours.set_ciphers("DEFAULT@SECLEVEL=0")
    trust_store.cache_clear()
    theirs = httpx2.create_ssl_context(trust_env=False)
    for fitted in (ours, theirs, trust_store()):
        fitted.load_verify_locations(certificate)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await read_request(reader)
            writer.write(http_answer(200, b"by tls"))
            await writer.drain()
        writer.close()

    upstream = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{upstream.sockets[0].getsockname()[1]}/"
    ours.minimum_version = ssl.TLSVersion.TLSv1_1
    _, speaks = await asyncio.open_connection("127.0.0.1", upstream.sockets[0].getsockname()[1], ssl=ours)
    assert speaks.get_extra_info("ssl_object").version() == newest.name.replace("_", ".")  # so it does speak
    speaks.close()
    async with (
        open_client(url) as client,
        httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(verify=theirs)) as model,
    ):
        if newest is ssl.TLSVersion.TLSv1_2:
            assert (await get(client, url, limit=100))[0] == 200
            assert (await model.get(url)).status_code == 200
        else:
            with pytest.raises(HttpFailure):
                await get(client, url, limit=100)
            with pytest.raises(httpx2.TransportError):
                await model.get(url)
    trust_store.cache_clear()
    upstream.close()


@pytest.mark.anyio
async def test_a_provider_that_asks_for_a_certificate_gets_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = _certificate(tmp_path)
    ours = tmp_path / "ours.pem"
    ours.touch(mode=0o600)
    ours.write_bytes(certificate.read_bytes() + key.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    monkeypatch.setattr(
        http_client, "_trust_store", lambda: ssl.create_default_context(cafile=str(certificate))
    )
    monkeypatch.setattr(
        httpx2, "create_ssl_context", lambda **_: ssl.create_default_context(cafile=str(certificate))
    )
    trust_store.cache_clear()
    monkeypatch.setitem(endpoint._MAKE, "openai", lambda name, url, key, http: http)
    bodies = list[object]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            bodies.append(await read_request(reader))
            writer.write(http_answer(200, b"{}"))
            await writer.drain()
        writer.close()

    upstream = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{upstream.sockets[0].getsockname()[1]}/v1"
    (tmp_path / "keys").mkdir(mode=0o700)
    secret = tmp_path / "keys" / "notify-webhook"
    secret.touch(mode=0o600)
    secret.write_bytes(b"s" * 32)
    message = NoticeMessage(id="a", title="t", body="b", at="", events=("finding",), left=())
    for shown, arrives in (("", False), (str(ours), True)):
        config = FleetConfig.model_validate({"notify": {"webhook": url, "certificate_file": shown}})
        why = await receivers_of(config, tmp_path).by_name["webhook"](message)
        assert (why == "") is arrives
        queue = SinkQueue("ci", url, lambda _: {}, certificate=shown)
        client = queue._client
        assert (await attempt(partial(post_signed, client, url, b"{}", {}), 5.0) == "") is arrives
        queue.close()
        queue._out.close()
        await client.aclose()
        section = ModelSection(name="openai:m", base_url=url, certificate_file=shown)
        async with open_endpoint(section, "", 5.0) as model:
            http = cast(httpx2.AsyncClient, model)
            if arrives:
                assert (await http.get(url)).status_code == 200
            else:
                with pytest.raises(httpx2.TransportError):
                    await http.get(url)
    assert len(bodies) == 3
    ours.chmod(0o644)
    with pytest.raises(ConfigError, match=r"ours\.pem"):
        receivers_of(config, tmp_path)
    trust_store.cache_clear()
    upstream.close()


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
