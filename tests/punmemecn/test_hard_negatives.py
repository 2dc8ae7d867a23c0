"""Groups of three that are taken apart are found again, and the page says how many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memantics.construction.hard_negatives import check_hard_negatives, pair_up
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
    (part,) = (part for part in sheet.parts if part.label == "Hard negatives")
    assert [(cell.value, cell.n, cell.status) for cell in part.cells] == [(10, 10, "computed")] * 2
    (empty,) = (p for p in paper("punmemecn", data="sample").parts if p.label == "Hard negatives")
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
    with pytest.raises(DataError, match="no pun and its two hard negatives have all three images"):
        check_hard_negatives(data="release")


@pytest.mark.parametrize(("puns", "others"), [(4, 8), (4, 5), (4, 2), (1, 2), (3, 9)])
def test_groups_are_complete_where_all_captions_are_equal(puns: int, others: int) -> None:
    draws = np.random.default_rng(others)
    images = draws.normal(size=(puns + others, 8))
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    equal = np.tile(images[:1], (puns + others, 1))
    found = pair_up(images, equal, puns)
    assert set(found["image"]) == set(found["text"])
    assert len(found["image"]) == min(puns, others // 2)
    used = [other for pairs in found.values() for other, _ in pairs.values()]
    assert len(set(used)) == len(used)


def test_of_too_many_puns_those_with_the_most_similar_pair_get_a_group() -> None:
    puns, others = np.eye(3)[:2], np.array([[0, 0.9, 0], [0, 0.8, 0.1], [0.1, 0, 0.9]])
    both = np.vstack([puns, others])
    found = pair_up(both, both, 2)
    assert {kind: set(pairs) for kind, pairs in found.items()} == {"image": {1}, "text": {1}}
    assert {pairs[1][0] for pairs in found.values()} == {0, 1}
