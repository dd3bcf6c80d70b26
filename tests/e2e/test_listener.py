"""The listener of a whole run: heard where a server asks for what it was sent, and not where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest

from tests.e2e.conftest import command

pytestmark = [pytest.mark.jail, pytest.mark.timeout(300)]

WORD = "qah0123456789ab"


@contextmanager
def _preview(*, fetches: bool) -> Iterator[str]:
    """A site that previews addresses, and asks for them or does not."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            for url in parse_qs(urlsplit(self.path).query).get("url", ()) if fetches else ():
                urlopen(url, timeout=60).close()
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    ("fetches", "listener", "heard"), [(True, "", [WORD]), (False, "", []), (True, "off", None)]
)
def test_what_a_server_asks_for_is_heard(
    fetches: bool, listener: str, heard: list[str] | None, tmp_path: Path
) -> None:
    with _preview(fetches=fetches) as site:
        (tmp_path / "platforms").mkdir()
        profile = f'name = "x"\n[web]\nsite = "{site}"\nlistener = "{listener}"\n'
        (tmp_path / "platforms" / "x.toml").write_text(profile, "utf-8")
        asked = 'qa_fetch(url="{site}/preview?url={listener}/' + f'{WORD}")'
        fleet = command(tmp_path, CONFIGURATION_DIRECTORY=str(tmp_path))
        said = fleet("call", asked, "--platform", "x", "--json")
        if heard is None:
            assert (said.code, "reaches no listener of the fleet: web.listener" in said.err) == (75, True)
        else:
            assert said.data["calls"][0]["result"]["heard"] == heard
