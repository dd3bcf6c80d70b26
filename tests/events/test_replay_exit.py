"""What `fleet runs replay` says with its exit code."""

from __future__ import annotations

import pytest

from fleet.cli.run.replay import exit_code


@pytest.mark.parametrize(("different", "unseen", "code"), [(0, 0, 0), (1, 0, 1), (2, 3, 1), (0, 1, 75)])
def test_what_was_not_seen_is_never_the_same(different: int, unseen: int, code: int) -> None:
    assert exit_code({"different": different, "unseen": unseen}) == code
