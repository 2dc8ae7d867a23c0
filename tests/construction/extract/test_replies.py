"""Hostile and clumsy replies: everything that was said is kept, or it is a readable complaint."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memantics.construction import build
from memantics.core.meaning import Dimension
from memantics.core.reply import MAX_DEPTH, find_values
from memantics.core.task import Unparsed
from memantics.understanding.extraction.reading import (
    MOST,
    ReadReply,
    make_name,
    read_individuals,
    read_links,
)
from memantics.understanding.knowledge.ontology.vocabulary import RELATIONS, SPATIAL
from memantics.understanding.knowledge.records import Individual, Relation, read_knowledge

CAT = {"name": "cat", "label": "a cat", "description": "It sits."}
DOG = {"name": "dog", "label": "a dog", "description": "It barks."}
KNOWN = [
    Individual("VisualMaterial", "cat", "a cat"),
    Individual("TextualMaterial", "cat", "the word cat"),
    Individual("TextualMaterial", "caption", "the caption"),
]


def read(text: str) -> ReadReply:
    return read_individuals(text, "VisualMaterial")


def names(text: str) -> list[str]:
    return [own.name for own in read(text).individuals]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"individuals": [CAT, DOG]}),
        json.dumps([CAT, DOG]),
        f"Sure, here it is:\n```json\n{json.dumps([CAT, DOG], indent=2)}\n```\nAnything else?",
        f"```\n{json.dumps({'individuals': [CAT, DOG]})}\n```",
        f"{json.dumps(CAT)}\n{json.dumps(DOG)}",
        f"First {json.dumps(CAT)}, and then {json.dumps(DOG)}.",
        json.dumps([[CAT], [[DOG]]]),
        json.dumps({"individuals": [[CAT, DOG]]}),
        f"<think>Perhaps {json.dumps([CAT])}? No.</think>{json.dumps([CAT, DOG])}",
        f"{json.dumps([CAT, DOG])} To repeat: {json.dumps([CAT, DOG])}",
        f"In short [1] there are two {{so}}: {json.dumps([CAT, DOG])}",
    ],
    ids=[
        "object",
        "bare list",
        "prose and fence",
        "fence",
        "one a line",
        "one by one in prose",
        "lists in lists",
        "list in object",
        "draft in reasoning",
        "said twice",
        "brackets in prose",
    ],
)
def test_no_individual_is_lost(text: str) -> None:
    assert names(text) == ["cat", "dog"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no JSON"),
        ("I cannot see any.", "no JSON"),
        (f"{json.dumps([CAT])} or {json.dumps([DOG])}", "2 JSON values: give exactly one"),
        (json.dumps([CAT, DOG])[:-3], "cut off"),
        (json.dumps({"individuals": [CAT, DOG]})[:60], "cut off"),
        ('[{"name": "cat", "label": "a "cat""}]', "not valid JSON"),
        ('{"individuals": [], "individuals": [{"label": "a cat"}]}', "comes twice"),
        ('[{"name": "cat", "label": 5}]', "the field 'label' must be a text"),
        ('[{"name": "cat"}]', "the field 'label' is missing"),
        ('["cat", "dog"]', "must be a JSON object"),
        ('[{"label": "a cat", "relations": "none"}]', "the field 'relations' must be a list"),
        ('{"individuals": "a cat"}', "must be a list"),
        ('{"result": []}', "'individuals' is missing"),
        ('[{"label": "\u200b \u202e"}]', "a label is empty"),
        ('[{"label": "what people call it", "description": "one sentence"}]', "the example of"),
        ('[{"label": "a cat", "description": NaN}]', "NaN is not a valid JSON value"),
        ("[" * 100_000, "nested too deeply"),
        ('{"individuals": ' + "[" * 5000 + "]" * 5000 + "}", "nested too deeply"),
        ('{"individuals": ' + "[" * 100 + "]" * 100 + "}", "nested too deeply"),
        ("{" * 1000 + '{"a', "cut off"),
        ("x" * 2_000_001, "write at most"),
        (
            '[{"label": "x", "relations": [{"relation": "loves", "target": "y"}]}]',
            "'loves' is not allowed here",
        ),
    ],
)
def test_what_cannot_be_read_is_a_complaint(text: str, complaint: str) -> None:
    with pytest.raises(Unparsed) as caught:
        read(text)
    assert complaint in str(caught.value)
    assert len(str(caught.value)) < 500


def test_depth_has_a_limit_of_its_own() -> None:
    """Each Python gives up at another depth."""
    at, beyond = ("[" * depth + "]" * depth for depth in (MAX_DEPTH, MAX_DEPTH + 1))
    assert json.dumps(find_values(at)) == f"[{at}]"
    assert len(find_values("[[]] " * (MAX_DEPTH + 1))) == MAX_DEPTH + 1
    with pytest.raises(Unparsed, match="nested too deeply"):
        find_values(beyond)


@pytest.mark.parametrize("text", ["[]", '{"individuals": []}', "None here: []", "```json\n[]\n```"])
def test_an_empty_dimension_is_a_result(text: str) -> None:
    assert read(text) == ReadReply(())


def test_ten_thousand_individuals_are_too_many() -> None:
    crowd = [{"name": f"cat_{n}", "label": f"cat {n}"} for n in range(10_000)]
    with pytest.raises(Unparsed, match="10,000 entries are too many: give the 200"):
        read(json.dumps({"individuals": crowd}))
    assert len(read(json.dumps(crowd[:MOST])).individuals) == MOST


def test_a_stuck_model_that_repeats_itself_says_one_thing() -> None:
    found = read(json.dumps([CAT] * 10_000))
    assert [own.name for own in found.individuals] == ["cat"]
    assert found.merged == 9_999


def test_two_things_of_one_name_are_both_kept() -> None:
    other = CAT | {"label": "another cat"}
    found = read(json.dumps([CAT, other]))
    assert [own.name for own in found.individuals] == ["cat", "cat_2"]
    assert found.renamed == 1


def test_names_that_only_look_alike_are_told_apart() -> None:
    cyrillic = {"name": "сat", "label": "a cat in obfuscation"}
    found = read(json.dumps([CAT, cyrillic])).individuals
    assert [own.name for own in found] == ["cat", "сat_2"]


def test_hidden_characters_never_reach_the_records() -> None:
    text = (
        '[{"name": "ca\\u200bt\\ud800", "label": "\\u202ecat\\u2066 \\ud83d\\ude00",'
        ' "description": "a\\u0000b\\ud9ab"}]'
    )
    (own,) = read(text).individuals
    assert own.name == "cat"
    assert own.label == "cat 😀"
    assert own.description == "a b\N{REPLACEMENT CHARACTER}"
    orjson.dumps(own.label + own.description)


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "<script>", "Scene/x", "' OR 1=1", ""])
def test_names_cannot_reach_out(name: str) -> None:
    (own,) = read(json.dumps([{"name": name, "label": "thing"}])).individuals
    assert own.name == make_name(own.name) != ""
    assert own.key.count("/") == 1


def test_toxicity_has_a_kind_of_the_list_whatever_its_spelling() -> None:
    said = [{"name": "a", "label": "a", "kind": "mysogynous"}]
    assert read_individuals(json.dumps(said), "Toxicity").individuals[0].kind == "Misogynous"
    with pytest.raises(Unparsed, match="'Islamophobia' is not one of Abusive, Cyberbullying"):
        read_individuals('[{"label": "a", "kind": "Islamophobia"}]', "Toxicity")


def target(said: str) -> str:
    link = {"relation": "hasParticipant", "target": said}
    text = json.dumps([{"label": "x", "relations": [link]}])
    (relation,) = read_individuals(text, "Scene", KNOWN).individuals[0].relations
    return relation.target


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("VisualMaterial/cat", "VisualMaterial/cat"),
        ("VisualMaterial: Cat", "VisualMaterial/cat"),
        ("VisualMaterial/сat", "VisualMaterial/cat"),
        ("The Caption", "TextualMaterial/caption"),
        ("caption", "TextualMaterial/caption"),
        ("cat", "cat"),
        ("VisualMaterial/dog", "VisualMaterial/dog"),
    ],
    ids=["exact", "loose", "lookalike", "label", "bare", "not clear", "dangling"],
)
def test_references_are_resolved_or_stay_as_they_were_said(said: str, found: str) -> None:
    assert target(said) == found


def test_links_of_the_second_pass_need_a_known_source() -> None:
    scene = Individual("Scene", "duel", "a duel")
    link = {"source": "duel", "relation": "hasParticipant", "target": "VisualMaterial/cat"}
    (made,) = read_links(json.dumps({"relations": [link, link]}), [scene], KNOWN)
    assert made.source == "Scene/duel"
    assert made.relation == Relation("hasParticipant", "VisualMaterial/cat")
    with pytest.raises(Unparsed, match="source 'ball' is not one of those listed"):
        read_links(json.dumps([link | {"source": "ball"}]), [scene], KNOWN)
    with pytest.raises(Unparsed, match="too many"):
        read_links(json.dumps([link] * 501), [scene], KNOWN)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.characters(codec=None) | st.sampled_from('{}[]":,\\'), max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        said = [own.label for own in read(text).individuals]
    except Unparsed as error:
        said = [str(error)]
    # Either way what comes out can be written, and a complaint says something.
    assert orjson.loads(orjson.dumps(said)) == said
    assert all(said)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30))
def test_names_are_safe_whatever_was_said(text: str) -> None:
    name = make_name(text)
    assert make_name(name) == name
    assert all(c == "_" or c.isalnum() or unicodedata.category(c)[0] == "M" for c in name)


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        st.text("abc{}[]\"'", max_size=5), st.text("xyz{}[]\"' ", max_size=9), min_size=1
    )
)
def test_json_between_prose_is_found_whole(value: dict[str, str]) -> None:
    assert find_values(f"Well: {json.dumps(value)} (that is all)") == [value]


@pytest.mark.parametrize(
    "text",
    [
        '{"individuals": [{"name": "cat", "label": "a cat"}], "note": "x"}',
        '[{"name": "cat", "label": "a cat", "hasParticipant": "dog", "color": {"name": "red"}}]',
        '[{"name": "cat", "label": "a cat", "relations": [], "kind": "x", "colour": "red"}]',
    ],
)
def test_what_nobody_asked_for_costs_nothing(text: str) -> None:
    assert read_individuals(text, "VisualMaterial") == read_individuals(
        '[{"name": "cat", "label": "a cat"}]', "VisualMaterial"
    )


def test_a_relation_of_ours_that_was_not_offered_is_left_out() -> None:
    names = ("hasMappingEntity", "mappedOnto")
    ends = [{"relation": name, "target": "y"} for name in names]
    said = json.dumps([{"label": "x is y", "relations": ends}])
    (own,) = read_individuals(said, "AnalogicalMapping", (), ["hasMappingEntity"]).individuals
    assert [link.relation for link in own.relations] == ["hasMappingEntity"]


def test_a_closed_list_names_only_what_is_allowed_here() -> None:
    said = '[{"label": "x", "relations": [{"relation": "loves", "target": "y"}]}]'
    with pytest.raises(Unparsed, match=r"^relation 'loves' is not allowed here: hasParticipant$"):
        read_individuals(said, "Scene", (), ["hasParticipant"])
    with pytest.raises(Unparsed, match="none: leave the list empty"):
        read_individuals(said, "VisualMaterial", (), [])


@pytest.mark.parametrize(
    ("dimension", "field", "told"),
    [
        ("Emotion", {"holder": "viewer"}, "It smiles. (felt by the viewer)"),
        ("Emotion", {"holder": "nobody"}, "It smiles."),
        ("TargetCommunity", {"role": "Attacked"}, "It smiles. (attacked)"),
        ("TargetCommunity", {"role": "attacked (mildly)"}, "It smiles. (attacked)"),
        ("Scene", {"role": "attacked"}, "It smiles."),
    ],
)
def test_who_feels_it_and_who_is_meant_are_told(
    dimension: Dimension, field: dict[str, str], told: str
) -> None:
    said = json.dumps([{"label": "joy", "description": "It smiles."} | field])
    (found,) = read_individuals(said, dimension).individuals
    assert found.description == told


def test_a_scene_says_how_things_stand_to_each_other() -> None:
    """Relations in space and free ones belong to the things themselves, not to the scene."""
    things = [Individual("VisualMaterial", name, name) for name in ("cat", "dog")]
    entry = {"name": "chase", "label": "a chase", "description": "", "relations": []}
    links = [
        {"source": "VisualMaterial/cat", "relation": "Left of", "target": "VisualMaterial/dog"},
        {"source": "dog", "relation": "looks at", "target": "cat"},
        {"source": "dog", "relation": "looks at", "target": "cat"},
    ]
    said = json.dumps({"individuals": [entry | {"arrangement": links}]})
    read = read_individuals(said, "Scene", things, ("hasParticipant",))
    assert [(own.source, own.relation.relation, own.relation.target) for own in read.links] == [
        ("VisualMaterial/cat", "isLeftOf", "VisualMaterial/dog"),
        ("VisualMaterial/dog", "looks_at", "VisualMaterial/cat"),
    ]
    assert read_individuals(said, "Emotion", things).links == ()
    for bad in ({"target": "fish"}, {"source": "fish"}, {"relation": " - "}):
        worse = json.dumps({"individuals": [entry | {"arrangement": [links[1] | bad]}]})
        with pytest.raises(Unparsed, match="arrangement"):
            read_individuals(worse, "Scene", things)
    second = json.dumps({"relations": [links[0]]})
    [link] = read_links(second, things, things, ("hasParticipant",), free=True)
    assert (link.source, link.relation.relation) == ("VisualMaterial/cat", "isLeftOf")
    named = json.dumps({"relations": [links[0] | {"relation": "isLeftOf"}]})
    assert read_links(named, things, things, ("hasParticipant",), free=True) == (link,)
    with pytest.raises(Unparsed, match="not allowed here"):
        read_links(second, things, things, ("hasParticipant",))


@pytest.mark.slow
def test_the_arrangement_ends_up_with_the_things_of_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    built = build.knowledge("sample", model="fake/builder", out=tmp_path / "b", limit=4)
    known = list(read_knowledge(built.folder))
    links = [
        (own.dimension, link)
        for meme in known
        for own in meme.individuals
        for link in own.relations
        if link.relation not in RELATIONS or link.relation in SPATIAL
    ]
    free = [(dimension, link.target.partition("/")[0]) for dimension, link in links]
    assert {link.relation in RELATIONS for _, link in links} == {True, False}
    assert {name for pair in free for name in pair} <= {"VisualMaterial", "TextualMaterial"}
    assert not [own for meme in known for own in meme.dangling()]
