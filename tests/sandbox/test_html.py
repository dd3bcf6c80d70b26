"""Markup: rules fire on what is certainly wrong, the canary only where it would run, and nothing raises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.pages.html import Analysis, read

GOOD = """<!doctype html><html lang="en"><head><title>A</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head><body>
<a href="/"><img src="x" alt="home"></a><a name="here"></a><a href="/b" aria-label="b"></a>
<button>Go</button><button aria-label="close"><svg></svg></button><img src="y" alt="">
<label>Name <input type="text"></label><label for="q">Q</label><input id="q"><input type="hidden">
<input type="submit"><select aria-label="s"><option>1</option></select>
<textarea title="t"></textarea><iframe title="f"></iframe>
</body></html>"""


def analyse(markup: str, canary: str = "") -> Analysis:
    return read(markup, canary)[0]


def test_a_good_page_is_silent() -> None:
    assert analyse(GOOD, "CANARY") == Analysis()


@pytest.mark.parametrize(
    ("markup", "rules"),
    [
        ("<html><title>x</title></html>", ("html-lang",)),
        ("<html><body><main></main><script type=module src=/a.js></script>", ()),
        ("<html><noscript>Switch scripts on</noscript><script src=/a.js></script>", ()),
        ("<html><body><h1>Moss</h1><script src=/a.js></script>", ("html-lang", "title")),
        ("<html><body><main></main><script>moss()</script>", ("html-lang", "title")),
        ("<html lang='en'></html>", ("title",)),
        ("<html lang='en'><svg><title>icon</title></svg></html>", ("title",)),
        ("<img src=x>", ("image-alt",)),
        ("<img src=x role=presentation>", ()),
        ("<input type=text>", ("label",)),
        ("<label for=a>A</label><input id=b>", ("label",)),
        ("<input id=a><label for=a>A</label>", ()),
        ("<input type=image>", ("input-image-alt",)),
        ("<select></select>", ("select-name",)),  # as axe-core has it
        ("<textarea></textarea>", ("label",)),
        ("<button></button>", ("button-name",)),
        ("<button><span> </span></button>", ("button-name",)),
        ("<button><img alt='x'></button>", ()),
        ("<button>", ("button-name",)),
        ("<a href=x></a>", ("link-name",)),
        ("<a href=x><img src=y alt=''></a>", ("link-name",)),
        ("<a href=x>t</a>", ()),
        ("<iframe src=x></iframe>", ("frame-title",)),
        ("<meta name=viewport content='width=1, user-scalable=no'>", ("meta-viewport",)),
        ("plain text", ()),
    ],
)
def test_rules(markup: str, rules: tuple[str, ...]) -> None:
    assert analyse(markup).a11y == rules


@pytest.mark.parametrize(
    ("markup", "runs"),
    [
        ("<script>var x = 'CANARY'</script>", True),
        ("<SCRIPT >CANARY</SCRIPT >", True),
        ("<script>CANARY", False),
        ('<img src=x onerror="CANARY()">', True),
        ("<body ONLOAD='CANARY'>", True),
        ("<a href='java\tscript:CANARY'>x</a>", True),
        ("<iframe srcdoc='<script>CANARY</script>'></iframe>", True),
        ("<svg onload=CANARY />", True),
        ("<p>CANARY</p>", False),
        ("&lt;script&gt;CANARY&lt;/script&gt;", False),
        ("<input value='CANARY'>", False),
        ("<script>safe()</script><p>CANARY</p>", False),
        ("<!-- <script>CANARY</script> -->", False),
        ("<textarea><b>CANARY</b></textarea>", False),
        ("<a href='/search?q=CANARY'>x</a>", False),
        ("<p on='CANARY'>", False),
    ],
)
def test_canary(markup: str, runs: bool) -> None:
    assert analyse(markup, "CANARY").canary_executable is runs
    assert analyse(markup, "").canary_executable is False


TAGS = st.sampled_from(
    [
        "<script>",
        "</script>",
        "<img ",
        "alt=''",
        ">",
        "<!",
        "<![CDATA[",
        "<?",
        "&#",
        "&#x;",
        "<a href=",
        "'",
        '"',
        "</",
        "<svg/>",
        "\0",
        "<title>",
    ]
)


@given(st.lists(TAGS | st.text(max_size=8), max_size=40).map("".join), st.text(max_size=4))
def test_never_raises(markup: str, canary: str) -> None:
    assert set(analyse(markup, canary).a11y) <= {
        "html-lang",
        "title",
        "image-alt",
        "input-image-alt",
        "label",
        "button-name",
        "link-name",
        "frame-title",
        "meta-viewport",
        "select-name",
    }


@pytest.mark.parametrize("unit", ["<a ", "<a b='"])
def test_a_page_that_is_made_to_be_slow_costs_its_share_and_no_more(unit: str) -> None:
    """Without a limit the first of them takes longer than this test may."""
    assert analyse("<html>" + unit * 100_000, "canary") == Analysis(judged=False)
    assert analyse("<html>") == Analysis(("html-lang", "title"))
