"""A source repository with real, reproducible defects: the devnet's own compiler and platform, cut out of
the fleet at test time, with what the devnet seeds by switches written into the code.

`rustlite/` is the compiler, `service/` the platform's pages and proxy over a chain in memory. Every defect is
a change of the sound code, so its true fix is that change taken back.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import fleet
from fleet.config.compiler import CompilerSection
from fleet.config.platform import ChainSection, Platform, WebSection
from fleet.config.propose import (
    ProposeSection,
    RegressionSection,
    RepositorySection,
    ServiceSection,
    TreeCompilerSection,
)

ROOT = Path(fleet.__file__).parent
PLATFORM = ROOT / "devnet" / "platform"
COMPILER = ROOT / "devnet" / "compiler" / "rustlite"
PYTEST = ("{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider")


@dataclass(frozen=True, slots=True)
class SampleDefect:
    """One defect: the file, the sound code and the code with the defect; `repro` shows it."""

    name: str
    file: str
    sound: str
    broken: str
    surface: str
    oracle: str
    repro: str


DEFECTS = (
    SampleDefect(
        "compiler-panic",
        "rustlite/diagnostic.py",
        '    line = 1 + source.count(b"\\n", 0, start)\n',
        "    line = _line_bytewise(source, start, end)\n",
        "compiler",
        "compiler-broken",
        'qa_compile(source="// gr\\u00f6\\u00dfe\\nfn frame(t: i32) -> i32 { t + missing }")',
    ),
    SampleDefect(
        "loader-crash",
        "rustlite/loader.py",
        "    except MalformedModule:\n        raise\n",
        "    except MalformedModule:\n        os.abort()\n",
        "compiler",
        "compiler-broken",
        'qa_compile(module_hex="0061736d0100000007ff")',
    ),
    SampleDefect(
        "script-in-face",
        "service/faces.py",
        "    return query\n",
        "    return Markup(query)\n",
        "security",
        "script-injection",
        'qa_fetch(url="{face:docs}?q=qacanary", canary="qacanary"); '
        'qa_fetch(url="{face:docs}?q=%3Cscript%3Eqacanary%3C%2Fscript%3E", canary="qacanary")',
    ),
    SampleDefect(
        "proxy-fails",
        "service/proxy.py",
        "    except BadToken as error:\n",
        "    except KeyError as error:\n",
        "ux",
        "server-error",
        'qa_fetch(body="{}", method="POST", url="{proxy}/v1beta/models/demo:generateContent")',
    ),
)
"""The first three are of three kinds: a panic, a crash, and a page that reflects markup; the last is the
proxy's."""

_REPLACED = (
    (
        "rustlite/diagnostic.py",
        '    if "compiler-panic" in defects:\n        line = _line_bytewise(source, start, end)\n'
        '    else:\n        line = 1 + source.count(b"\\n", 0, start)\n',
        DEFECTS[0].sound,
    ),
    (
        "rustlite/loader.py",
        '        if "loader-crash" in defects:'
        "  # seeded defect: maps the section before it looks at its length\n"
        "            os.abort()\n",
        "",
    ),
    (
        "service/faces.py",
        '    return Markup(query) if "script-in-face" in site.defects else query\n',
        DEFECTS[2].sound,
    ),
)
_NAMES = (
    ("fleet.devnet.platform", "service"),
    ("fleet.devnet.defects", "service.defects"),
    ("fleet.chain.node.", "service."),
    ("fleet.chain.signing.", "service."),
    ("fleet.chain.", "service."),
    ("fleet.clock", "service.clock"),
    ("fleet.errors", "service.errors"),
)
_OWN = {
    "service/__init__.py": "",
    "service/defects.py": "ALL_IDS: frozenset[str] = frozenset()\n",
    "service/tx.py": "HALF_N = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0\n",
    "service/keys.py": (
        "from service.digest import keccak256\n\n\n"
        "def public_address(public) -> str:\n"
        '    return "0x" + keccak256(public.format(compressed=False)[1:])[12:].hex()\n'
    ),
    "service/__main__.py": (
        "import sys\n\nimport uvicorn\n\n"
        "from service.app import create_app\n"
        "from service.chain import DiamondDouble\n"
        "from service.site import Settings\n\n"
        'chain = DiamondDouble(names={"docs": "0x" + "1" * 40, "shop": "0x" + "2" * 40})\n'
        "app = create_app(chain, frozenset(), Settings())\n"
        'uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")\n'
    ),
    "tests/test_compiler.py": (
        "import subprocess\nimport sys\n\n"
        'GOOD = b"fn frame(t: i32) -> i32 { t + 1 }"\n\n\n'
        "def call(data, *more):\n"
        '    argv = [sys.executable, "rustlite", *more]\n'
        "    return subprocess.run(argv, input=data, capture_output=True, timeout=20)\n\n\n"
        "def test_a_program_becomes_a_module_with_an_entry():\n"
        "    done = call(GOOD)\n"
        '    assert done.returncode == 0 and done.stdout[:4] == b"\\0asm"\n'
        '    assert call(done.stdout, "--entry").stdout == b"frame\\n"\n\n\n'
        "def test_an_unknown_name_is_refused():\n"
        '    assert call(b"fn frame(t: i32) -> i32 { missing }").returncode == 1\n'
    ),
    "tests/test_pages.py": (
        "from service.names import is_name\n\n\n"
        "def test_names():\n"
        '    assert is_name("docs") and not is_name("../docs")\n'
    ),
    ".gitignore": "__pycache__/\n",
    ".github/workflows/ci.yml": "on: push\n",
    "README.md": "# A platform and its compiler\n",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """`path` is a git repository whose branch `main` has every defect in `defects`; `fixes` are the true
    fixes as patches, by defect."""

    path: Path
    defects: tuple[SampleDefect, ...]
    fixes: dict[str, bytes]


def git(folder: Path, *words: str) -> bytes:
    """Git without anything of this machine's configuration."""
    who = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        **{f"GIT_{one}": "sample@example.org" for one in who},
    }
    return subprocess.run(
        ["git", "-C", str(folder), *words], env=environment, check=True, capture_output=True, timeout=60
    ).stdout


def build(folder: Path, defects: tuple[SampleDefect, ...] = DEFECTS) -> Sample:
    """Make the repository in a new folder."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for path, text in _sound().items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for one in defects:
        _change(folder / one.file, one.sound, one.broken)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "A platform and its compiler")
    fixes = {}
    for one in defects:
        _change(folder / one.file, one.broken, one.sound)
        fixes[one.name] = git(folder, "diff", "--binary", "--full-index", "--no-renames")
        git(folder, "checkout", "-q", "--", ".")
    return Sample(folder, defects, fixes)


def repository(sample: Sample) -> RepositorySection:
    """How the repository is configured."""
    return RepositorySection(
        url=str(sample.path),
        surfaces=("compiler", "security", "ux"),
        build=(("{python}", "-m", "compileall", "-q", "rustlite", "service"),),
        test=(*PYTEST, "tests"),
        timeout_s=60,
        paths=("rustlite/**", "service/**"),
        regression=RegressionSection(
            path="tests/test_qa_{item}.py", template="pytest-compiler", command=(*PYTEST, "{path}")
        ),
        service=ServiceSection(command=("{python}", "-m", "service", "{port}"), starts_s=20),
        compiler=TreeCompilerSection(
            command=("{python}", "{tree}/rustlite"), loader=("{python}", "{tree}/rustlite", "--entry")
        ),
    )


def for_service(section: RepositorySection) -> RepositorySection:
    """The same for items of pages."""
    regression = section.regression.model_copy(update={"template": "pytest-service"})
    return section.model_copy(update={"regression": regression})


def limits(fixer: str = "command", rounds: int = 2) -> ProposeSection:
    """The limits of a proposal."""
    return ProposeSection.model_validate({"fixer": fixer, "rounds": rounds})


PROFILE = Platform(
    name="sample",
    chain=ChainSection(rpc="http://127.0.0.1:1", id=31337, diamond="0x" + "1" * 40),
    web=WebSection(
        site="http://127.0.0.1:9", proxy="http://127.0.0.1:9", face="http://127.0.0.1:9/face/{name}/"
    ),
    compiler=CompilerSection(
        command=("{python}", "/opt/tc"),
        loader=("{python}", "/opt/tc", "--entry"),
        language="rustlite",
        family="rust",
        tool_chain="python",
        entries=("frame", "render"),
        sample="fn frame(t: i32) -> i32 { t + 1 }",
    ),
)
"""The platform that is built from it."""


def _sound() -> dict[str, str]:
    files = {
        f"rustlite/{one.name}": one.read_text() for one in COMPILER.glob("*.py") if one.name != "generate.py"
    }
    for one in PLATFORM.glob("*.py"):
        if one.name not in ("__main__.py", "rpc_chain.py"):
            files[f"service/{one.name}"] = one.read_text()
    for one in (PLATFORM / "templates").iterdir():
        files[f"service/templates/{one.name}"] = one.read_text()
    for source, name in (
        ("chain/node/digest", "digest"),
        ("clock", "clock"),
        ("errors", "errors"),
    ):
        files[f"service/{name}.py"] = (ROOT / f"{source}.py").read_text()
    for path in [path for path in files if path.startswith("service/") and path.endswith(".py")]:
        for before, after in _NAMES:
            files[path] = files[path].replace(before, after)
    files |= _OWN
    for path, before, after in _REPLACED:
        assert before in files[path], path
        files[path] = files[path].replace(before, after)
    return files


def _change(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert text.count(before) == 1, (file, text.count(before))
    file.write_text(text.replace(before, after))
