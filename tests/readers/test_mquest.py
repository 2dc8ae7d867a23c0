"""The M-QUEST reader on made-up releases: layouts, oddities, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.mquest.load import MquestRelease, open_release
from memantics.benchmarks.mquest.statistics import statistics, survey
from memantics.core.data import Source
from memantics.core.errors import DataError, InputError
from tests.readers.mquest_release import (
    CAT_GRAPH,
    NEW,
    individual,
    write_pair,
    write_raw,
    write_refined,
    write_release,
)
from tests.readers.releases import complain

LAYOUTS = {
    "clone": {
        "qa": "output_reversed/hateful_memes_out_final",
        "kb": "output_reversed/hateful-memes-out",
        "images": "img/hateful-memes-img",
    },
    "inner": {"qa": "hateful_memes_out_final", "kb": "hateful-memes-out", "images": "images"},
    "shared": {"qa": "qa", "kb": "kb", "images": "images"},
    "bare": {"qa": ".", "kb": ".", "images": "images"},
}


def opened(root: Path, images: Path | None = None) -> MquestRelease:
    return open_release(Source("release", root, images))


def complaint(root: Path) -> str:
    """What reading everything in a folder says is wrong with it."""
    return complain(lambda source: survey(open_release(source)), root)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_recognised(tmp_path: Path, layout: str) -> None:
    release = opened(write_release(tmp_path, LAYOUTS[layout]))
    questions = {question.id: question for question in release.questions()}
    assert sorted(questions) == [
        "00001_ColorComposition_qa_0000000a",
        "00001_ToxicityAssessment_qa_0000000a",
        "cat_2-b_Emotion_qa_0000000a",
    ]
    toxicity = questions["00001_ToxicityAssessment_qa_0000000a"]
    assert (toxicity.meme, toxicity.dimension, toxicity.answer) == ("00001", "Toxicity", 1)
    assert toxicity.related == ("cat",)
    assert toxicity.image == release.images / "00001.png" if release.images else False
    assert questions["cat_2-b_Emotion_qa_0000000a"].image is None
    assert len(list(release.individuals("raw"))) == 6
    assert release.memes == ("00001", "cat_2-b")


def test_flat_question_folders_are_read(tmp_path: Path) -> None:
    write_pair(tmp_path / "benchmark_extracted", "00007", "Scene", flat=True)
    (tmp_path / "benchmark_imgs").mkdir()
    (tmp_path / "benchmark_imgs" / "00007.png").touch()
    (question,) = opened(tmp_path).questions()
    assert (question.dimension, question.image is not None) == ("Scene", True)


def test_given_image_folder_comes_first(tmp_path: Path) -> None:
    root = write_release(tmp_path / "release")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "cat_2-b.png").touch()
    found = {q.meme: q.image for q in opened(root, tmp_path / "elsewhere").questions()}
    assert found == {"00001": None, "cat_2-b": tmp_path / "elsewhere" / "cat_2-b.png"}


def test_ten_leaves_out_the_three_extra_dimensions(tmp_path: Path) -> None:
    release = opened(write_release(tmp_path))
    assert {q.dimension for q in release.questions("ten")} == {"Toxicity", "Emotion"}


def test_unknown_split_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown split 'twelve'.*ten"):
        opened(write_release(tmp_path)).questions("twelve")


def test_raw_individuals_keep_their_relations(tmp_path: Path) -> None:
    found = list(opened(write_release(tmp_path)).individuals("raw"))
    joy, room, naps = found[:3]
    assert (joy.dimension, joy.declared, joy.label) == ("Emotion", "EmotionExpression", "the joy")
    assert [(r.source, r.name, r.target) for r in room.relations] == [("cat", "sleeps on", "sofa")]
    assert [(r.source, r.name, r.target) for r in naps.relations] == [("naps", "relatedTo", "cat")]


def test_refined_individuals_are_found_in_both_namespaces(tmp_path: Path) -> None:
    found = list(opened(write_release(tmp_path)).individuals("refined"))
    by_meme = {meme: [i for i in found if i.meme == meme] for meme in ("00001", "cat_2-b")}
    shapes = [(i.dimension, i.name, i.label, i.description) for i in by_meme["00001"]]
    assert shapes == [
        ("VisualMaterial", "cat", "cat", "a cat"),
        ("TargetCommunity", "cat", "cat people", ""),
        ("Emotion", "joy", "joy", ""),
    ]
    assert shapes == [(i.dimension, i.name, i.label, i.description) for i in by_meme["cat_2-b"]]
    assert {i.namespace for i in by_meme["cat_2-b"]} == {NEW}
    assert [(r.name, r.target) for r in by_meme["00001"][2].relations] == [("hasExpressor", "cat")]


def test_model_written_values_that_are_no_text_are_kept(tmp_path: Path) -> None:
    write_raw(tmp_path, "00001", [individual("Scene", "sofa", label=None, description=["a", 1])])
    (found,) = opened(tmp_path).individuals("raw")
    assert (found.label, found.description) == ("null", '["a",1]')


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"options": ("a", "b", "None of the others")}, "has 3 options instead of 4"),
        ({"options": ("a", "a", "b", "None of the others")}, "repeats an option"),
        ({"key": 9}, "does not mark exactly one option"),
        ({"options": ("a", "b", "c", "d")}, "does not offer 'None of the others'"),
    ],
)
def test_malformed_questions_are_counted_skips(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    write_release(tmp_path)
    write_pair(tmp_path / "qa", "00009", "Scene", **changes)
    release = opened(tmp_path)
    (skip,) = survey(release).skips
    assert reason in skip.reason
    assert skip.file == "qa/00009_qa/Scene/00009_Scene_qa_0000000a.jsonld"
    assert len(list(release.questions())) == 3
    assert statistics(release)["questions.malformed"] == 1


def test_none_option_is_matched_without_case_and_period(tmp_path: Path) -> None:
    write_pair(tmp_path, "00009", "Scene", options=("a", "b", "c", "none of the Others."), key=3)
    release = opened(tmp_path)
    assert [q.answer for q in release.questions()] == [3]
    assert statistics(release)["key.none"] == 1


def test_wrong_folder_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "holiday.txt").touch()
    text = complaint(tmp_path)
    assert "<id>_qa/<Dimension>/*.jsonld" in text
    assert "_dimensions_reversed_raw.json" in text
    assert "semantic-memes" in text
    assert "folder not found" in complaint(tmp_path / "nowhere")


def test_corrupt_json_names_the_file(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "00009", "Scene")
    lines = json.dumps(json.loads(path.read_text()), indent=1).splitlines()
    path.write_text("\n".join([*lines[:6], "oops,", *lines[7:]]))
    text = complaint(tmp_path)
    assert "00009_Scene_qa_0000000a.jsonld: not valid JSON" in text
    assert "line 7" in text


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"question": ""}, "field 'question'"),
        ({"relatedInstances": "cat"}, "field 'relatedInstances'"),
        ({"answers": [{"text": "a", "is_correct": "yes"}]}, "field 'answers.0.is_correct'"),
        ({"dimension": "Weather"}, "unknown dimension 'Weather'"),
        ({"dimension": "Emotion"}, "states dimension Emotion, but is in the folder Scene"),
        (
            {"sourceImage": {"@id": "", "@type": "", "filename": "../../secret.png", "path": ""}},
            "points outside the image folder",
        ),
    ],
)
def test_broken_questions_are_refused(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    write_pair(tmp_path, "00009", "Scene", **changes)
    text = complaint(tmp_path)
    assert text.startswith("00009_Scene_qa_0000000a.jsonld: ")
    assert problem in text


def test_missing_field_is_named(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "00009", "Scene")
    value = json.loads(path.read_text())
    del value["explanation"]
    path.write_text(json.dumps(value))
    assert "missing field 'explanation'" in complaint(tmp_path)


def test_strange_file_names_are_refused(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "00009", "Scene")
    path.rename(path.with_name("00008_Scene_qa_0000000a.jsonld"))
    assert "expected a name like 00009_<Dimension>_qa_<id>.jsonld" in complaint(tmp_path)


def test_two_questions_of_one_id_are_refused(tmp_path: Path) -> None:
    write_pair(tmp_path, "00009", "Scene")
    write_pair(tmp_path, "00009", "Scene", flat=True)
    assert "a question with this id is also in" in complaint(tmp_path)


@pytest.mark.parametrize(
    ("individuals", "changes", "problem"),
    [
        ([], {}, "contains no individual"),
        ([individual("Weather", "rain")], {}, "unknown dimension 'Weather'"),
        ([individual("Scene", "sofa", smell="old")], {}, "unknown field 'dimensions.0.smell'"),
        ([individual("Scene", "sofa")], {"success": "yes"}, "field 'success'"),
    ],
)
def test_broken_knowledge_bases_are_refused(
    tmp_path: Path, individuals: list[dict[str, Any]], changes: dict[str, Any], problem: str
) -> None:
    write_raw(tmp_path, "00009", individuals, **changes)
    text = complaint(tmp_path)
    assert text.startswith("00009_dimensions_reversed_raw.json: ")
    assert problem in text


def test_graph_without_individuals_fails_loudly(tmp_path: Path) -> None:
    write_refined(tmp_path, "00009", NEW, ":cat a :Animal .\n")
    assert "contains no individual of a known dimension, in any namespace" in complaint(tmp_path)


def test_invalid_turtle_is_one_line(tmp_path: Path) -> None:
    write_refined(tmp_path, "00009", NEW, CAT_GRAPH + ":cat a a a .\n")
    assert "00009_refined_ontology.ttl: not valid Turtle" in complaint(tmp_path)


def test_survey_counts_and_explains(tmp_path: Path) -> None:
    found = survey(opened(write_release(tmp_path)))
    assert found.records == 3
    assert found.counts["memes"] == 2
    assert found.counts["individuals"] == 6
    assert found.counts["individuals in refined graphs"] == 6
    assert (found.images_found, found.images_expected) == (1, 2)
    assert found.repairs == {
        "EmotionExpression read as Emotion": 4,
        "ToxicityAssessment read as Toxicity": 1,
    }
    assert any("1 memes have no image" in note for note in found.notes)
    assert found.files == (
        "qa/*_qa/**/*.jsonld",
        "kb/*_dimensions_reversed_raw.json",
        "kb/*_refined_ontology.ttl",
    )


def test_checksum_follows_the_data_not_the_images(tmp_path: Path) -> None:
    root = write_release(tmp_path)
    before = survey(opened(root)).checksum
    (root / "images" / "cat_2-b.png").touch()
    assert survey(opened(root)).checksum == before
    write_pair(root / "qa", "cat_2-b", "Emotion", key=2)
    assert survey(opened(root)).checksum != before


def test_missing_images_are_explained(tmp_path: Path) -> None:
    write_pair(tmp_path, "00009", "Scene")
    found = survey(opened(tmp_path))
    assert any("Images are not in this copy" in note for note in found.notes)
    assert any("This copy contains no raw knowledge bases." in note for note in found.notes)


def test_statistics_of_parts_that_are_absent_are_none(tmp_path: Path) -> None:
    write_pair(tmp_path / "a", "00009", "Scene")
    numbers = statistics(opened(tmp_path / "a"))
    assert numbers["questions.total"] == 1
    for key in ("individuals.raw.total", "individuals.refined.Scene", "ontology.triples"):
        assert numbers[key] is None
    write_raw(tmp_path / "b", "00009", [individual("Scene", "sofa")])
    numbers = statistics(opened(tmp_path / "b"))
    assert numbers["individuals.raw.Scene"] == 1
    assert numbers["questions.total"] is None
    assert numbers["key.position.0"] is None
    assert numbers["individuals.files.total"] is None


def test_files_per_individual_are_counted_in_a_clone(tmp_path: Path) -> None:
    write_release(tmp_path, LAYOUTS["clone"])
    folder = tmp_path / "output_reversed/hateful-memes-out/dimensions/Scene"
    folder.mkdir(parents=True)
    (folder / "00001_sofa.jsonld").touch()
    (folder / "00001_bed.jsonld").touch()
    assert statistics(opened(tmp_path))["individuals.files.total"] == 2


def test_no_question_of_a_split_is_an_error(tmp_path: Path) -> None:
    write_pair(tmp_path, "00009", "Metadata")
    with pytest.raises(DataError, match="contains none of the questions of split ten"):
        opened(tmp_path).questions("ten")
