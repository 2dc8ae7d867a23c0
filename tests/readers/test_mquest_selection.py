"""The recovered list of evaluated questions: where it comes from and what it holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from memantics.benchmarks.mquest import load as selection
from memantics.benchmarks.mquest.load import (
    SHIPPED,
    find_selection,
    open_release,
    read_list,
    read_log,
)
from memantics.core.data import Source
from memantics.core.errors import DataError
from tests.readers.mquest_release import write_pair

LOG = """Loading model: some-model
[FINISH]  /somewhere/00009_qa/00009_Scene_qa_0000000a.jsonld
[FAILED]  /somewhere/00009_qa/00009_Emotion_qa_0000000b.jsonld
[FINISH]  /somewhere/cat_2-b_qa/cat_2-b_ToxicityAssessment_qa_0000000c.jsonld
[FINISH]  /somewhere/00009_qa/00009_Scene_qa_0000000a.jsonld
"""
FINISHED = ("00009_Scene_qa_0000000a", "cat_2-b_ToxicityAssessment_qa_0000000c")


def test_shipped_list_has_the_published_make_up() -> None:
    stems = read_list(SHIPPED)
    parts = [stem.split("_") for stem in stems]
    assert Counter(part[1] for part in parts) == {
        "ToxicityAssessment": 307,
        "VisualMaterial": 13,
        "TextualMaterial": 10,
        "BackgroundKnowledge": 9,
        "Scene": 6,
        "OverallIntent": 5,
    }
    assert len({part[0] for part in parts}) == 307
    toxic = {part[0] for part in parts if part[1] == "ToxicityAssessment"}
    assert {part[0] for part in parts} == toxic


def test_log_lines_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.out").write_text(LOG)
    assert read_log(tmp_path / "x.out") == FINISHED


def test_own_list_comes_first(tmp_path: Path) -> None:
    (tmp_path / "toxmquest350.txt").write_text("# mine\n00009_Scene_qa_0000000a.jsonld\n\n")
    (tmp_path / "x.out").write_text(LOG)
    assert find_selection(tmp_path) == ("00009_Scene_qa_0000000a",)


@pytest.mark.parametrize("place", ["x.out", "slurm_logs/x.log", "../VLMs_meme-inference/x.txt"])
def test_logs_are_found_where_no_list_ships(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "SHIPPED", tmp_path / "absent.txt")
    root = tmp_path / "release"
    path = root / place
    root.mkdir()
    path.parent.mkdir(exist_ok=True)
    path.write_text(LOG)
    (path.parent / "broken_off.log").write_text("\n".join(LOG.splitlines()[:2]))
    assert find_selection(root) == FINISHED


def test_shipped_list_beats_a_shorter_log(tmp_path: Path) -> None:
    (tmp_path / "x.out").write_text(LOG)
    assert len(find_selection(tmp_path)) == 350


def test_no_list_at_all_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "SHIPPED", tmp_path / "absent.txt")
    write_pair(tmp_path, "00009", "Scene")
    with pytest.raises(
        DataError,
        match=r"the list of the questions that the paper evaluated is missing.*toxmquest350\.txt",
    ):
        open_release(Source("release", tmp_path)).questions("toxmquest350")


def test_split_takes_the_listed_questions_only(tmp_path: Path) -> None:
    write_pair(tmp_path, "00009", "Scene")
    write_pair(tmp_path, "00009", "Emotion")
    (tmp_path / "toxmquest350.txt").write_text("00009_Scene_qa_0000000a\n")
    release = open_release(Source("release", tmp_path))
    assert [q.dimension for q in release.questions("toxmquest350")] == ["Scene"]


def test_copy_without_any_listed_question_is_an_error(tmp_path: Path) -> None:
    write_pair(tmp_path, "99999", "Scene")
    with pytest.raises(DataError, match="none of the questions of split toxmquest350"):
        open_release(Source("release", tmp_path)).questions("toxmquest350")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "00009_Scene_qa_0000000a\n../../etc/passwd\n",
            "row 2: .* is not the name of a question file",
        ),
        ("00009_Scene_qa_0000000a\n" * 2, "row 2: .* is already listed in row 1"),
    ],
)
def test_broken_lists_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "toxmquest350.txt").write_text(text)
    with pytest.raises(DataError, match=problem):
        find_selection(tmp_path)
