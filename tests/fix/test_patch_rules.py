"""The rules of patches: a table of hostile ones, and what the reader may never believe."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.config.propose import ProposeSection
from fleet.errors import PatchRefused
from fleet.fix.model import CheckedPatch
from fleet.fix.repository.patch_rules import BYTES, check_patch, glob
from fleet.fix.repository.patch_text import read_patch
from tests.fix.repositories import TEST, task

BASE = "a" * 40
OLD, NEW, NONE = "1" * 40, "2" * 40, "0" * 40
REPOSITORY = task("/x").repository.model_copy(update={"paths": ("src/**", "tests/**", "*", ".*/**")})


def check(text: str | bytes, **limits: object) -> CheckedPatch:
    data = text if isinstance(text, bytes) else text.encode()
    given_limits = ProposeSection.model_validate({"fixer": "command", **limits})
    return check_patch(data, base=BASE, test=TEST, repository=REPOSITORY, limits=given_limits)


def rule_of(text: str | bytes, **limits: object) -> str:
    with pytest.raises(PatchRefused) as refused:
        check(text, **limits)
    return refused.value.rule


def changed(path: str = "src/a.py", added: str = "b = 2", mode: str = "100644") -> str:
    return (
        f"diff --git a/{path} b/{path}\nindex {OLD}..{NEW} {mode}\n--- a/{path}\n+++ b/{path}\n"
        f"@@ -1,2 +1,2 @@ def f():\n a = 1\n-b = 1\n+{added}\n"
    )


def new(path: str, mode: str = "100644", *lines: str) -> str:
    body = "".join(f"+{text}\n" for text in lines or ("x",))
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode}\nindex {NONE}..{NEW}\n--- /dev/null\n"
        f"+++ b/{path}\n@@ -0,0 +1,{len(lines) or 1} @@\n{body}"
    )


def deleted(path: str, mode: str = "100644") -> str:
    return (
        f"diff --git a/{path} b/{path}\ndeleted file mode {mode}\nindex {OLD}..{NONE}\n--- a/{path}\n"
        f"+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    )


def test_a_plain_patch_passes_with_what_it_changes() -> None:
    text = changed() + new("src/b c.py", "100644", "one", "two").replace(
        "+++ b/src/b c.py", "+++ b/src/b c.py\t"
    )
    found = check(text + deleted("src/c.py"))
    assert (found.files, found.added, found.removed) == (("src/a.py", "src/b c.py", "src/c.py"), 3, 2)
    assert found.fixes
    assert (found.base, found.test) == (BASE, TEST)


def test_a_new_test_may_be_added_and_a_program_edited() -> None:
    assert check(new("tests/test_more.py")).files == ("tests/test_more.py",)
    assert check(changed("src/run", mode="100755")).files == ("src/run",)


HOSTILE: dict[str, tuple[str, str]] = {
    "elsewhere": ("path", changed("docs/a.py")),
    "above": ("name", changed("src/../a.py")),
    "absolute": ("name", changed("/etc/passwd")),
    "folder of dots": ("name", changed("src/.../a.py")),
    "backslash": ("name", changed("src\\a.py")),
    "quoted": ("name", changed().replace("a/src/a.py b/src/a.py", '"a/src/\\303\\251" "b/src/\\303\\251"')),
    "workflow": ("workflows", new(".github/workflows/x.yml")),
    "workflow, upper case": ("workflows", new(".GitHub/Workflows/x.yml")),
    "gitlab": ("workflows", changed(".gitlab-ci.yml")),
    "gitlab, below": ("workflows", changed("src/.gitlab-ci.yml")),
    "jenkins": ("workflows", changed("src/Jenkinsfile")),
    "owners": ("workflows", changed("src/CODEOWNERS")),
    "git folder": ("repository", new("src/.git/config")),
    "git modules": ("repository", changed(".gitmodules")),
    "attributes": ("repository", new("src/.gitattributes")),
    "ignore": ("repository", changed("src/.gitignore")),
    "lock": ("locks", changed("src/uv.lock")),
    "lock of npm": ("locks", changed("src/package-lock.json")),
    "sums of go": ("locks", changed("go.sum")),
    "conftest": ("setup", new("tests/conftest.py")),
    "manifest": ("setup", changed("src/package.json")),
    "make": ("setup", changed("Makefile")),
    "instructions": ("setup", new("src/CLAUDE.md")),
    "our test": ("regression-test", changed(TEST.path)),
    "our test, new": ("regression-test", new(TEST.path)),
    "our test, upper case": ("regression-test", new(TEST.path.upper())),
    "a folder in its place": ("regression-test", new(TEST.path + "/x")),
    "a file in its folder's place": ("regression-test", new("tests/qa")),
    "a test, weaker": ("tests", changed("tests/test_double.py", "skip()")),
    "a test beside its source": ("tests", changed("src/double_test.go")),
    "a test, gone": ("tests", deleted("tests/test_double.py")),
    "symlink": ("symlink", new("src/l", "120000", "/etc/passwd")),
    "symlink, gone": ("symlink", deleted("src/l", "120000")),
    "symlink, changed": ("symlink", changed("src/l", mode="120000")),
    "submodule": ("submodule", new("src/m", "160000", f"Subproject commit {NEW}")),
    "program": ("mode", new("src/run", "100755")),
    "mode": ("mode", "diff --git a/src/a b/src/a\nold mode 100644\nnew mode 100755\n"),
    "odd mode": ("mode", new("src/a", "100664")),
    "binary": (
        "binary",
        f"diff --git a/src/a b/src/a\nindex {OLD}..{NEW} 100644\nGIT binary patch\nliteral 1\nIcmZ\n\n",
    ),
    "twice": ("case", changed() + changed()),
    "twice, upper case": ("case", changed() + new("src/A.py")),
    "escape": ("control", changed(added="x = '\x1b[2J'")),
    "bidi": ("control", changed(added="x = '\u202e'  # \u2066")),
    "invisible": ("control", changed(added="x\u200b = 1")),
    "tag": ("control", changed(added="x = 1 # \U000e0041")),
    "carriage return inside": ("control", changed(added="good()\rbad()")),
    "form feed": ("control", changed(added="a\x0cb")),
    "NUL": ("control", changed(added="a\0b")),
    "long line": ("line", changed(added="x" * 1001)),
    "names the test": ("detects-test", changed(added=f"if '{TEST.path}' in argv: return 4")),
    "names its marker": ("detects-test", changed(added=f"print('{TEST.marker}')")),
    **{
        f"names the jail: {place}": ("detects-jail", changed(added=f"if os.path.exists({place!r}): return 4"))
        for place in (
            "/box",
            "/box/src",
            "/opt/sandbox",
            "/opt/site",
            "/opt/py/bin",
            "/opt/qa_tree",
            "/x/qa_task",
        )
    },
    "names a variable of the jail": ("detects-jail", changed(added="if 'QA_PLACES' in os.environ: return 4")),
    "token": ("secret", changed(added="t = 'ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6" + "'")),
    "key": (
        "secret",
        new("src/k", "100644", "-----BEGIN PRIVATE KEY-----", "TUlJRQ", "-----END PRIVATE KEY-----"),
    ),
    "empty": ("empty", ""),
    "rename": (
        "format",
        "diff --git a/src/a b/src/b\nsimilarity index 100%\nrename from src/a\nrename to src/b\n",
    ),
    "rename, same": ("format", "diff --git a/src/a b/src/a\nrename from x\nrename to .github/y\n"),
    "no git": ("format", "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-a\n+b\n"),
    "before the first": ("format", "Subject: x\n\n" + changed()),
    "between": ("format", changed() + "\n" + changed("src/b.py")),
    "two names of an empty file": (
        "format",
        f"diff --git a/src/aaa b/.git/b\nnew file mode 100644\nindex {NONE}..{NEW}\n",
    ),
    "names without a space": (
        "format",
        f"diff --git a/src/a\tb/src/a\nnew file mode 100644\nindex {NONE}..{NEW}\n",
    ),
    "letters that are not quoted": ("format", changed("src/é.py")),
    "a control character that is not quoted": ("name", changed("src/a\x07.py")),
    "another name below": ("format", changed().replace("+++ b/src/a.py", "+++ b/.github/x")),
    "another name above": ("format", changed().replace("--- a/src/a.py", "--- a/src/b.py")),
    "longer than it says": ("format", changed() + "+more\n"),
    "shorter than it says": ("format", changed().replace("+1,2", "+1,3")),
    "hidden below a hunk": ("format", changed() + "--- a/x\n+++ b/.github/x\n@@ -1 +1 @@\n-a\n+b\n"),
    "an odd line in a hunk": ("format", changed().replace("-b = 1\n", "-b = 1\nodd\n")),
    "huge numbers": ("format", changed().replace("-1,2", "-1,9999999999")),
    "short objects": ("format", changed().replace(OLD, "1111111")),
    "nothing said": ("format", "diff --git a/src/a b/src/a\n"),
    "a head alone": ("format", changed().partition("@@")[0]),
    "no end": ("format", changed()[:-1]),
}


@pytest.mark.parametrize(("rule", "text"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_patch_is_refused_by_its_rule(rule: str, text: str) -> None:
    assert rule_of(text) == rule


def test_limits_are_those_of_the_operator() -> None:
    text = "".join(changed(f"src/{name}.py") for name in "abc")
    assert check(text, files=3, lines=6).removed == 3
    assert rule_of(text, files=2) == "files"
    assert rule_of(text, lines=5) == "lines"
    assert rule_of(b"x" * (BYTES + 1)) == "size"
    assert rule_of(changed().encode().replace(b"+b = 2", b"+b = '\xff'")) == "control"


def test_an_empty_patch_is_fine_where_none_is_made() -> None:
    assert check("", fixer="none").fixes is False


def test_a_base_is_a_commit() -> None:
    with pytest.raises(PatchRefused) as refused:
        check_patch(b"", base="main", test=TEST, repository=REPOSITORY, limits=ProposeSection())
    assert refused.value.rule == "base"


def test_files_with_carriage_returns_and_without_a_last_line_end_are_fine() -> None:
    assert check(changed(added="b = 2\r")).added == 1
    assert check(changed() + "\\ No newline at end of file\n").added == 1


@given(st.binary(max_size=400))
def test_any_bytes_are_refused_or_read(text: bytes) -> None:
    for data in (text, changed().encode() + text, b"diff --git a/src/a b/src/a\n" + text):
        with suppress(PatchRefused):
            assert check(data).text == data


@given(st.data())
def test_no_edit_of_a_patch_reaches_a_path_that_is_refused(data: st.DataObject) -> None:
    """Whatever is cut or put in: a patch that passes names allowed paths only, as git would read them."""
    text = changed() + new("src/b.py")
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, min(len(text), at + 30)))
    piece = data.draw(
        st.sampled_from(["", "\n", "+++ b/.github/x\n", "rename to .github/x\n", "../", "\t", '"'])
    )
    try:
        found = check(text[:at] + piece + text[end:])
    except PatchRefused:
        return
    assert found.files == tuple(change.path for change in read_patch(found.text))
    assert all(path.startswith("src/") and ".github" not in path for path in found.files)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "src/a/b.py", True),
        ("src/**", "src", False),
        ("src/**", "srcs/a", False),
        ("src/*.py", "src/a/b.py", False),
        ("src/*.py", "src/b.py", True),
        ("**/x.py", "x.py", True),
        ("**/x.py", "a/b/x.py", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a+b{c}", "a+b{c}", True),
        ("src/*", "src/a\n", True),
        ("src/a", "src/a\n", False),
    ],
)
def test_patterns_of_paths(pattern: str, path: str, fits: bool) -> None:
    assert (glob(pattern).match(path) is not None) is fits


BY_KIND = {
    "workflows": """
        azure-pipelines.yaml ci/azure-pipelines.star deploy/pipeline-prod.yml .github/x mergify.yml
        config/mergify.yaml src/renovate.json5 tools/ci.yml ops/build.yaml action.yml codecov.yml
        src/githooks/pre-commit git-hooks/pre-push ci/run.py infra/workflows/x .drone.jsonnet
    """,
    "setup": """
        bazelrc.rc tools/defs.bzl src/rules.bazel lib/x.cmake gradlew gradlew.bat mvnw.cmd crate/build.rs
        src/Build.RS build.zig Setup.hs configure configure.ac src/x.csproj buildSrc/src/x.kt cmake/find.txt
        build.py make.bat run_tests.sh settings.yml a.nix Earthfile src/wscript Procfile tasks.py
        Directory.Build.props
    """,
    "hidden": """
        .bazelrc .builds/x .githooks/pre-commit .mergify/x src/.eslintrc .bazelversion .x/a.py
        .config/nextest src/.cache/a.py .tool-versions
    """,
}
PLAIN = """
    src/a.py src/build.py src/hooks/use_state.ts src/ci.py src/circle.py src/actions.ts src/pipeline.py
    src/workflow.go src/data/rows.json src/deploy.rb src/release_notes.py src/main.rs
    src/conf/defaults.yml src/drone.c src/configure.py src/build/x.rs src/setup.js
"""
"""Sources with names that are like those."""


def anywhere(path: str) -> str:
    """The rule that refuses a path where an operator has allowed every path; "" for none."""
    section = REPOSITORY.model_copy(update={"paths": ("**",)})
    limits = ProposeSection.model_validate({"fixer": "command"})
    try:
        check_patch(new(path).encode(), base=BASE, test=TEST, repository=section, limits=limits)
    except PatchRefused as refused:
        return refused.rule
    return ""


@pytest.mark.parametrize("rule", BY_KIND)
def test_builds_and_pipelines_are_refused_by_kind(rule: str) -> None:
    found = {path: anywhere(path) for path in BY_KIND[rule].split()}
    assert {path: one for path, one in found.items() if not one} == {}
    assert list(found.values()).count(rule) >= len(found) - 3, found


@pytest.mark.parametrize("path", PLAIN.split())
def test_a_source_is_none_of_these_kinds(path: str) -> None:
    assert anywhere(path) == ""
