"""Parts of an analysis that contradict each other are named in words; baselines never count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from memantics.core.meaning import DIMENSIONS, Dimension
from memantics.core.memes import Meme
from memantics.core.records import Request
from memantics.core.samples import image_path
from memantics.models.client import ModelClient
from memantics.models.fake import FakeModel, build_reply
from memantics.understanding.analysis.asking import (
    HARM_TERMS,
    THRESHOLD,
    agrees,
    ask_feeling,
    ask_harm,
)
from memantics.understanding.analysis.gather import ask_all, find_contradictions
from memantics.understanding.analysis.records import (
    Feeling,
    Findings,
    Harm,
    HomophoneFinding,
    PunSeen,
)
from memantics.understanding.extraction.chain import ExtractSettings
from memantics.understanding.extraction.plan import DEFAULT, Situation, ask_individuals
from memantics.understanding.knowledge.ontology.vocabulary import TOXICITY_KINDS
from memantics.understanding.knowledge.records import Individual, Knowledge
from memantics.workbench.analyze import render_page
from tests.construction.extract.scripts import text_of

MEME = Meme("en-001", image_path("en-001"), "a caption", "en")
CLEAN = Harm(False, "m")
HATE = Individual("Toxicity", "slur", "a slur", kind="Hateful")
TOY = Harm(True, "detector (sample)", 0.9, baseline=True)


def make(*individuals: Individual, **parts: tuple[object, ...]) -> Findings:
    return Findings(MEME, model="m", knowledge=Knowledge("en-001", individuals), **parts)  # type: ignore[arg-type]


def tell(found: Findings, answered: tuple[Dimension, ...] = DIMENSIONS) -> dict[str, str]:
    return {own.about: own.text for own in find_contradictions(found, answered)}


@pytest.mark.parametrize(
    ("individuals", "harms", "said"),
    [
        ((), (CLEAN,), ""),
        ((HATE,), (Harm(True, "m", type="targeted"),), ""),
        (
            (HATE,),
            (CLEAN,),
            "harmful according to the dimensions of m (toxicity: “a slur” (hateful",
        ),
        (
            (),
            (Harm(True, "m", type="sexual"),),
            "harmful according to the verdict of m (sexual)",
        ),
        (
            (),
            (CLEAN, Harm(True, "detector (x)", 0.8)),
            "harmful according to detector (x) (probability",
        ),
        ((), (CLEAN, TOY), ""),
        ((), (TOY,), ""),
    ],
)
def test_a_verdict_against_the_graph_or_a_detector(
    individuals: tuple[Individual, ...], harms: tuple[Harm, ...], said: str
) -> None:
    found = tell(make(*individuals, harms=harms))
    assert found.get("harm", "").startswith(said)
    assert bool(found) == bool(said)


def test_a_dimension_that_was_not_answered_denies_nothing() -> None:
    found = make(harms=(Harm(True, "m", type="sexual"),))
    assert tell(found, ("Emotion",)) == {}
    assert set(tell(found, ("Toxicity",))) == {"harm"}


def test_a_type_that_no_kind_goes_with() -> None:
    found = make(HATE, harms=(Harm(True, "m", type="dispirited"),))
    assert "dispirited according to m" in tell(found)["kind of harm"]
    broad = Individual("Toxicity", "gloom", "gloom", kind="Harmful")
    assert tell(make(HATE, broad, harms=(Harm(True, "m", type="dispirited"),))) == {}


def felt(label: str, by: str = "viewer") -> Individual:
    whom = "the viewer" if by == "viewer" else "a figure in the meme"
    return Individual("Emotion", label, label, f"It shows. (felt by {whom})")


@pytest.mark.parametrize(
    ("emotion", "entries", "clash"),
    [
        ("happy", (felt("disgust"),), True),
        ("angry", (felt("joy"),), True),
        ("happy", (felt("disgust"), felt("joy")), False),
        ("happy", (felt("disgust", "figure"),), False),
        ("happy", (felt("thoughtful pause"),), False),
        ("neutral", (felt("disgust"),), False),
        ("tense", (felt("Amusement of the viewer"),), False),
        ("tense", (felt("Amusement"), felt("joy")), True),
        ("happy", (), False),
    ],
)
def test_an_emotion_against_what_the_viewer_is_said_to_feel(
    emotion: str, entries: tuple[Individual, ...], clash: bool
) -> None:
    assert bool(tell(make(*entries, feelings=(Feeling(emotion, "m"),)))) is clash
    guess = Feeling(emotion, "embedded/reader", baseline=True)
    assert tell(make(*entries, feelings=(guess,))) == {}


def test_a_baseline_is_a_footnote_beside_a_verdict_and_a_guess_alone() -> None:
    both = make(harms=(CLEAN, TOY))
    assert both.verdicts == (CLEAN,)
    assert both.baselines[0].startswith("detector (sample): harmful, unlike m")
    assert "sample" not in orjson.dumps(both.to_dict()["harm"]).decode()
    alone = make(harms=(TOY,))
    assert (alone.verdicts, alone.baselines) == ((TOY,), ())
    assert 'class="picture blurred"' not in render_page([both])
    assert 'class="picture blurred"' in render_page([make(HATE, harms=(CLEAN,))])


def test_every_prompt_about_harm_has_the_same_words() -> None:
    asked = text_of(ask_harm(MEME, "en", "m").request)
    (step,) = [own for own in DEFAULT.steps if own.dimension == "Toxicity"]
    graph = text_of(ask_individuals(Situation(MEME, toxicity="reviewer"), step, {}, ()))
    for part in (THRESHOLD, *(term.definition for term in HARM_TERMS.values())):
        assert part in asked
        assert part in graph


def test_every_kind_of_toxicity_goes_with_a_type() -> None:
    for kind in TOXICITY_KINDS:
        assert any(agrees(name, kind) for name in HARM_TERMS), kind
    assert {kind for term in HARM_TERMS.values() for kind in term.kinds} <= set(TOXICITY_KINDS)


def test_verdicts_are_told_what_the_dimensions_say() -> None:
    known = Knowledge("en-001", (HATE, felt("joy")))
    assert "a slur" in text_of(ask_harm(MEME, "en", "m", known).request)
    assert "a slur" not in text_of(ask_feeling(MEME, "en", "m", known).request)
    assert "joy" in text_of(ask_feeling(MEME, "en", "m", known).request)
    lore = Individual("BackgroundKnowledge", "b", "a proverb", "it mocks the old", ())
    told = text_of(ask_harm(MEME, "en", "m", Knowledge("en-001", (lore,))).request)
    assert "a proverb: it mocks the old" in told


@pytest.mark.parametrize("ask", [ask_harm, ask_feeling])
def test_a_first_reading_is_spoken_of_only_where_there_was_one(ask: Callable[..., Any]) -> None:
    known = Knowledge("en-001", (HATE, felt("joy")))
    assert "first reading" in text_of(ask(MEME, "en", "m", known).request)
    assert "first reading" not in text_of(ask(MEME, "en", "m").request)
    assert "first reading" not in text_of(ask(MEME, "en", "m", Knowledge("en-001", ())).request)


def test_what_a_model_says_of_a_pun_is_shown() -> None:
    pun = PunSeen(
        True, "a lion in bed", "狮眠", "a lion sleeps", "失眠", "both", "it lies awake", "m/x"
    )
    found = replace(Findings(MEME), pun=pun)
    page = render_page([found])
    assert "失眠" in page
    assert "it lies awake" in page
    assert found.to_dict()["pun"]["other"] == "失眠"  # type: ignore[index,call-overload]
    plain = replace(found, pun=replace(pun, is_pun=False))
    assert "it lies awake" not in render_page([plain])


def test_fourteen_calls_and_background_is_asked_once(tmp_path: Path) -> None:
    asked: list[Request] = []

    def script(request: Request) -> str:
        asked.append(request)
        names = set((request.schema or {})["properties"])  # type: ignore[arg-type]
        return (
            '{"intents": ["mocks late risers"]}' if names == {"intents"} else build_reply(request)
        )

    async def work() -> Findings:
        with ModelClient(FakeModel(script), tmp_path) as client:
            heard = (HomophoneFinding("鸭梨山大", "压力山大", 0.82),)
            return await ask_all(client, Findings(MEME, homophones=heard), ExtractSettings())

    found = asyncio.run(work())
    assert len(asked) == 14
    assert all("压力山大 (82% sure)" in text_of(request) for request in asked)
    assert found.knowledge is not None
    known = found.knowledge.of("BackgroundKnowledge")
    assert found.background == tuple(own.description for own in known)
    page = render_page([found])
    assert "All statements" in page
    for own in found.knowledge.individuals:
        assert f"<h3><bdi>{own.label}</bdi></h3>" in page
