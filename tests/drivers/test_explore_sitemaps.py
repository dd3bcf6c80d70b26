"""Compressed sitemaps on a real server: the pages that they alone name are asked, the files are read once."""

from __future__ import annotations

import gzip
from itertools import count

import anyio.to_thread
import pytest

from fleet.drivers.explore.web import explorer
from tests.drivers.http_guest import explored
from tests.sandbox.doubles import Got, bench, http_answer

pytestmark = pytest.mark.anyio
MTIME = count(1)
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
PACKED = "content-encoding: gzip"
URLS = f"<?xml version='1.0'?>\n<urlset {NS}><url><loc>@/hidden?a=1&amp;b=2</loc></url></urlset>"
NAMED = "<s:urlset xmlns:s='x'><s:url><s:loc>\n <![CDATA[@/hidden?a=1&b=2]]></s:loc></s:url></s:urlset>"
PAD = "<!--" + "x" * 900 + "-->"


def served(got: Got, name: str, text: str, kind: str, fields: tuple[str, ...]) -> bytes:
    site = f"http://{got.headers['host']}"
    path = got.path.partition("?")[0]
    if path == name:
        raw = gzip.compress(text.replace("@", site).encode(), mtime=next(MTIME))  # as many servers do
        return http_answer(200, raw, f"content-type: {kind}", *fields)
    pages = {
        "/": ("text/html", "<!doctype html><html lang=en><title>home</title><h1>home</h1></html>"),
        "/robots.txt": ("text/plain", f"User-agent: *\nSitemap: {site}/sitemap.xml\n"),
        "/sitemap.xml": (
            "application/xml",
            f"<sitemapindex {NS}><sitemap><loc>{site}{name}</loc></sitemap></sitemapindex>",
        ),
    }
    if path == "/hidden":
        return http_answer(500, b"Internal Server Error", "content-type: text/plain")
    shown_kind, shown = pages.get(path, ("text/plain", "not here"))
    return http_answer(200 if path in pages else 404, shown.encode(), f"content-type: {shown_kind}")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "text", "kind", "fields"),
    [
        ("/sitemap-1.xml.gz", URLS, "application/x-gzip", ()),
        ("/sitemap-1.xml.gz", NAMED, "application/octet-stream", ()),
        ("/sitemap-1.xml.gz", URLS, "application/xml", (PACKED,)),
        ("/sitemap-1.xml.gz", URLS, "application/x-gzip", (PACKED,)),
        ("/posts.gz", "\ufeff" + PAD + URLS, "application/gzip", ()),
        ("/sitemap-1.xml", URLS, "application/octet-stream", (PACKED,)),
    ],
)
async def test_the_pages_of_a_compressed_sitemap_are_asked(
    name: str, text: str, kind: str, fields: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(lambda got: served(got, name, text, kind, fields)) as it:
        monkeypatch.setenv("QA_BROKER", it.address)
        asked, found, _ = await anyio.to_thread.run_sync(explored, explorer.make, it.site.url)
    assert "{site}/hidden?a=1&b=2" in asked
    assert "server-error {site}/hidden 500" in found
    packed = [url for url in asked if ".gz" in url]
    assert not [url for url in packed if "?" in url]
    assert len(packed) <= 2


async def test_an_archive_is_no_place_for_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even when each answer is another, as a stamp in it makes it."""
    async with bench(lambda got: served(got, "/backup.tar.gz", "\0" * 9, "application/gzip", ())) as it:
        monkeypatch.setenv("QA_BROKER", it.address)
        asked, _, _ = await anyio.to_thread.run_sync(explored, explorer.make, it.site.url)
    assert [url for url in asked if "/backup.tar" in url] == ["{site}/backup.tar.gz"]
