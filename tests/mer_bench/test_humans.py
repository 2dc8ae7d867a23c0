"""The human study: a blind queue, judges beside people, win rates, several judges."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.mer_bench.humans import (
    PAIRS,
    JudgeStudy,
    agree_among_judges,
    agree_among_people,
    agree_with_choices,
    compare_with_people,
    export_outputs,
    make_study,
    read_people,
    win_rates,
)
from memantics.core.data import Source
from memantics.core.errors import InputError, StoreError
from memantics.core.labels import PERSON, OfferedVersion, Preference, append_preference
from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    read_queue,
    write_annotations,
)
from memantics.core.records import Request
from memantics.core.rundir import RunWriter, read_items
from memantics.evaluation.ask import ask
from memantics.evaluation.human_eval import (
    score_human_eval,
    score_preferences,
    tabulate_agreement,
)
from memantics.models.engine import AskSettings
from memantics.models.fake import FakeModel
from tests.mer_bench.samples import reply, write_release
from tests.mer_bench.test_judge import target_of, task_on
from tests.runs import make_facts


def judge(
    folder: Path, source: Source, rate: Callable[[str], Mapping[str, Any]], **options: str
) -> Path:
    task = task_on(source, **options)
    facts = make_facts("mer_bench/judge", f"fake/{folder.name}", options)

    def script(request: Request) -> str:
        return json.dumps(rate(target_of(request)))

    async def scenario() -> None:
        with RunWriter(folder, facts) as writer:
            await ask(task, FakeModel(script), writer, None, AskSettings(concurrency=2))

    asyncio.run(scenario())
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return write_release(tmp_path / "release", 8)


@pytest.fixture
def runs(tmp_path: Path, source: Source) -> dict[str, Path]:
    """One judge is what people say, the other always two steps of the scale below."""
    low = {
        f"{part}__{key}": 2
        for part, key in (
            ("visual_assessment", "generation_quality_1_5"),
            ("overall_generation_quality", "overall_generation_quality_1_5"),
        )
    }
    return {
        "RF-VF": judge(tmp_path / "a", source, reply, rationale="RF"),
        "RL-VF": judge(
            tmp_path / "b", source, lambda t: reply(t, last=True, **low), rationale="RL"
        ),
    }


def vote(person: str, target: str, **changes: Any) -> IndividualAnnotation:
    said = {"vgq": 4.75, "vea": 6, "tgq": 3.5, "tea": 4.75, "hgq": 4.75, "pes": 4.75}
    return IndividualAnnotation(
        annotator=person, stage="rate", values={**said, "lc": "yes", "label": target, **changes}
    )


def rate(
    queue: Path, pairs: Mapping[str, str], targets: Mapping[str, str]
) -> list[AggregatedAnnotation]:
    _, items = read_queue(queue)
    return [
        AggregatedAnnotation(
            item=item.id,
            group=item.group,
            workflow="rate-edits",
            kept=True,
            values={},
            annotations=[vote("p1", targets[pairs[item.id]]), vote("p2", targets[pairs[item.id]])],
        )
        for item in items
    ]


def targets_of(source: Source) -> dict[str, str]:
    return {item.id: item.tags["target"] for item in task_on(source).items()}


def test_the_queue_shows_both_pictures_and_hides_the_editor(
    tmp_path: Path, runs: dict[str, Path]
) -> None:
    done = export_outputs(list(runs.values()), tmp_path / "out", seed=1, memes=5)
    assert (done.rows, done.settings) == (5, 2)
    card, items = read_queue(done.queue)
    assert card.workflow == "rate-edits"
    text = (done.queue / "items.jsonl").read_text(encoding="utf-8")
    assert not any(name in text for name in ('"one', '"two', "one/", "two/"))
    for item in items:
        assert [Path(image).stem.partition("-")[2] for image in item.images] == ["source", "edited"]
        assert all((done.queue / image).is_file() for image in item.images)
        assert [shown.label for shown in item.shown] == ["Feeling of the source", "Target feeling"]
    keys = [json.loads(line) for line in done.key.read_text().splitlines()]
    pairs = [json.loads(line) for line in (tmp_path / "out" / PAIRS).read_text().splitlines()]
    assert [key["model"] for key in keys] == [pair["item"].partition("/")[0] for pair in pairs]
    with pytest.raises(StoreError, match="already exists"):
        export_outputs(list(runs.values()), tmp_path / "out", memes=5)
    with pytest.raises(InputError, match="given twice"):
        export_outputs([runs["RF-VF"]] * 2, tmp_path / "other")
    with pytest.raises(InputError, match="no run was given"):
        export_outputs([], tmp_path / "other")


def test_judges_beside_people(tmp_path: Path, source: Source, runs: dict[str, Path]) -> None:
    done = export_outputs(list(runs.values()), tmp_path / "out", memes=100)
    assert done.rows == 16
    rows = [json.loads(line) for line in (tmp_path / "out" / PAIRS).read_text().splitlines()]
    annotations = rate(done.queue, {row["id"]: row["item"] for row in rows}, targets_of(source))
    study = make_study(runs, read_people(done.queue, annotations))
    found = {(s.by, s.label, s.key): s for s in compare_with_people(study)}
    assert found["people, RF-VF", "vgq", "apart"].value == pytest.approx(0.0)
    assert found["people, RL-VF", "vgq", "apart"].value == pytest.approx(0.5)
    assert found["people, RL-VF", "ppe", "apart"].value == 0.0
    assert found["people, RF-VF", "vea", "apart"].n == 16
    assert {s.label: s.value for s in agree_among_people(study)}.keys() >= {"vgq", "ppe"}
    wins = {s.label: s for s in win_rates(study)}
    # Two of eight dimensions are won, six are ties.
    assert wins["RF-VF"].value == pytest.approx((2 + 6 * 0.5) / 8)
    assert wins["RL-VF"].value == pytest.approx(6 * 0.5 / 8)
    assert wins["RF-VF"].n == 16 * 8
    among = {(s.label, s.key): s.value for s in agree_among_judges(study)}
    assert among["vgq", "sd"] == pytest.approx((2 * 0.25**2) ** 0.5)
    assert among["vea", "sd"] == 0.0


def test_one_judge_has_nobody_to_win_against() -> None:
    study = JudgeStudy(
        {"only": {"one/1.png": dict.fromkeys(("vgq",), 1.0)}}, {}, {"one/1.png": "1"}
    )
    assert list(agree_among_judges(study)) == []
    assert [(s.value, s.n) for s in win_rates(study)] == [(None, 0)]
    assert list(agree_among_judges(JudgeStudy({}, {}, {}))) == []


def prefer(name: str, chosen: int | None, *authors: str) -> Preference:
    offered = [
        OfferedVersion(captions=[f"{name} {n}"], by=author, status="done", kindness=0.5)
        for n, author in enumerate(authors, 1)
    ]
    return Preference(id=name, meme=f"{name}.png", candidates=offered, chosen=chosen)


def test_judges_are_compared_with_what_people_chose(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "preferences.jsonl"
    for choice in (
        prefer("a", 2, "m", "m"),
        prefer("b", 1, "m", "m", "m"),
        prefer("c", 1, "m", "m"),
        prefer("c", None, "m", "m"),  # taken back
        prefer("d", 2, "m", PERSON),  # a person's own version was not offered
    ):
        append_preference(path, choice)
    ours, kind = score_preferences(path)
    assert (ours.label, ours.n) == ("offered order", 3)
    assert ours.value == pytest.approx(2 / 3)
    assert ours.interval is not None
    assert ours.interval[0] < 2 / 3 < ours.interval[1]
    assert (kind.n, kind.value, kind.note) == (0, None, "4 ties")
    assert tabulate_agreement([ours]).rows[0][:2] == ("offered order", "0.667")
    (judged,) = agree_with_choices([prefer("a", 2, "m", "m")], {"j": {("a", 2): 1, ("a", 1): 0}})
    assert (judged.value, judged.n) == (1.0, 1)
    empty = tmp_path / "empty.jsonl"
    append_preference(empty, prefer("c", None, "m"))
    with pytest.raises(InputError, match="no choice between versions"):
        score_preferences(empty)


def test_a_run_of_the_judge_on_versions_is_a_judge_of_choices(
    tmp_path: Path, runs: dict[str, Path]
) -> None:
    release = write_release(tmp_path / "versions", 3, ("version-1", "version-2"))
    judged = judge(tmp_path / "v", release, reply, rationale="RF")
    path = tmp_path / "preferences.jsonl"
    meme = next(iter(read_items(judged))).item.group
    choice = prefer("x", 2, "m", "m")
    append_preference(path, choice.model_copy(update={"meme": Path(meme).stem}))
    *_, rfs = score_preferences(path, [judged])
    # This judge says the same of all versions.
    assert (rfs.label, rfs.n, rfs.note) == ("RFS, v", 0, "1 ties")
    with pytest.raises(InputError, match="has no judgements of the folders version-1"):
        score_preferences(path, [runs["RF-VF"]])


def test_ratings_of_a_sample_correct_the_judge_of_all_edits(
    tmp_path: Path, source: Source, runs: dict[str, Path]
) -> None:
    """People rate 10 of 16 edits; the judge that is two steps too low is put right."""
    done = export_outputs(list(runs.values()), tmp_path / "out", memes=10)
    rows = [json.loads(line) for line in (tmp_path / "out" / PAIRS).read_text().splitlines()]
    annotations = rate(done.queue, {row["id"]: row["item"] for row in rows}, targets_of(source))
    write_annotations(done.queue / "annotations.jsonl", annotations)
    found = score_human_eval(tmp_path / "out", list(runs.values()))
    by = {(one.note.partition(",")[0], one.key): one for one in found.corrected}
    name = runs["RL-VF"].name
    low = next(one for (judge, key), one in by.items() if key == "vgq" and name in judge)
    assert low.value == pytest.approx(0.75)
    assert low.n == 16
    assert "corrected with ratings of 10 outputs; judge alone 0.25, people alone 0.75" in low.note
    assert len(found.corrected) == 2 * 8
    assert "vgq" in str(found.corrected_table().rows)
