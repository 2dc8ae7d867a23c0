"""Groups of three that are taken apart are found again, and the page says how many."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.construction.hard_negatives import check_hard_negatives
from memantics.core.errors import DataError
from memantics.evaluation.paper import paper
from tests.commands import Shell
from tests.metrics.tiny_models import make_image_encoder
from tests.punmemecn.test_released import make_clone

pytestmark = pytest.mark.slow


def test_the_page_says_how_many_groups_are_found_again(shell: Shell) -> None:
    out = shell.folder / "figures.json"
    told = shell.done("build", "check-hard-negatives", "--data", "sample", "--out", out)
    assert "10 of 10 groups are recovered by image, 10 by text" in told
    sheet = paper("punmemecn", data="sample", statistics=[out])
    (part,) = (part for part in sheet.parts if part.label == "Look-alikes")
    assert [(cell.value, cell.n, cell.status) for cell in part.cells] == [(10, 10, "computed")] * 2
    (empty,) = (p for p in paper("punmemecn", data="sample").parts if p.label == "Look-alikes")
    assert all("build check-hard-negatives --out" in cell.fill for cell in empty.cells)


@pytest.mark.parametrize("family", ["CLIP", "Siglip", "ChineseCLIP"])
def test_pictures_are_compared_by_an_encoder_of_the_user(family: str, tmp_path: Path) -> None:
    """Tiny random weights: how many groups they find is chance, words find all as before."""
    folder = make_image_encoder(tmp_path / family, family)
    found = check_hard_negatives(data="sample", image_encoder=folder)
    assert (found.groups, found.text) == (10, 10)
    assert 0 <= found.image <= 10
    assert check_hard_negatives(data="sample", image_encoder=folder) == found


def test_without_images_there_is_nothing_to_check(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(shell.home))
    shell.done("data", "add", "punmemecn", make_clone(shell.folder / "clone"))
    with pytest.raises(DataError, match="no group has all three images"):
        check_hard_negatives(data="release")
