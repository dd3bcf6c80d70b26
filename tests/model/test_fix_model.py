"""A real small model is asked for a fix, and meets the same gate as any fixer.

270 million parameters mend nothing. Shown is that whatever such a model does, the attempt ends at a step that
is named or in a patch that every step has passed, within its budget, and leaves nothing behind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.config import FleetConfig
from fleet.fix.fixers import model
from fleet.fix.fixers.choice import open_fixer
from fleet.fix.model import GateStep
from tests.fix.bench import Bench, Purse, make_repository, task

pytestmark = [pytest.mark.model, pytest.mark.jail, pytest.mark.timeout(1800)]

TOKENS, TURNS = 100_000, 6


@pytest.mark.anyio
async def test_a_real_models_fix_is_held_at_a_step_or_passes_them_all(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "TURNS", TURNS)
    section = {"name": "openai:gemma", "base_url": endpoint, "max_tokens": 128, "timeout": "9m"}
    config = FleetConfig.model_validate(
        {
            "propose": {"fixer": "model", "rounds": 2},
            "model": {**section, "stream": False, "context": 6000},
        }
    )
    bench, purse = Bench(tmp_path), Purse(left_s=600, tokens=TOKENS)
    url = make_repository(tmp_path / "repository")
    report = await bench.gate(task(url, config.propose), open_fixer(config, tmp_path, purse))
    for step in report.steps:
        print(f"{step.step}: {step.passed}: {step.words}")
    assert [(one.step, one.passed) for one in report.steps[:2]] == [
        (GateStep.REPRODUCE, True),
        (GateStep.TEST_FAILS, True),
    ]
    if report.patch is None:
        assert report.held_at is not None
        assert (report.held_at.passed, bool(report.held_at.words)) == (False, True)
        assert report.rounds == 2
    else:
        passed = {one.step for one in report.steps if one.passed}
        assert (report.patch.fixes, passed) == (True, set(GateStep))
    answered = [one for one in purse.charged if one and one.output_tokens]
    assert answered, "the model never answered"
    assert len(purse.charged) <= 2 * TURNS
    assert 0 < TOKENS - purse.tokens <= TOKENS
    assert list((tmp_path / "trees").iterdir()) == []
