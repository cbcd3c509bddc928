"""The demo's checkpoints are judged as what they are: the useless one by its prefix, the good one fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuimon.demo import models
from tuimon.demo.scenarios import SCENARIOS
from tuimon.diagnose import preflight


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
def test_the_draft_is_useless_only_where_the_scenario_says_so(tmp_path: Path, scenario: str) -> None:
    models.write(tmp_path, scenario)
    draft, target = str(tmp_path / models.DRAFT), str(tmp_path / models.TARGET)
    found = preflight.check_local(draft, target, "sglang", "0.5.6")

    if scenario in models.USELESS:
        assert found.verdict == "silent"
        (flaw,) = found.findings
        assert (flaw.rule, flaw.key) == ("weights.prefix", "draft_model.*")
    else:
        assert (found.verdict, found.findings) == ("ok", ())


def test_they_take_no_room_on_the_disk(tmp_path: Path) -> None:
    models.write(tmp_path, "healthy")
    weights = (tmp_path / models.DRAFT / "model.safetensors").stat()
    assert weights.st_size > 1 << 30
    assert weights.st_blocks * 512 < 1 << 16
