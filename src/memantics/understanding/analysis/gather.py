"""Combine the parts of an analysis: local tools first, then the model's answers."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Any

from PIL.Image import Image

from memantics.core.errors import MissingExtra
from memantics.core.images import decode, read_bytes
from memantics.core.labels import ClassifierPrediction, Judges
from memantics.core.lines import Alternatives, ImageReading, explain_unread
from memantics.core.meaning import Dimension
from memantics.core.memes import HOMOPHONES, Meme
from memantics.core.model import Asker, Taken
from memantics.core.retrieval import NearMeme, TemplateClusterUse
from memantics.core.stamping import tell_marks
from memantics.core.text import show_probability
from memantics.models.embedded.lexicon import MoodLexicon
from memantics.understanding.analysis.asking import agrees, ask_feeling, ask_harm, ask_pun
from memantics.understanding.analysis.records import (
    Contradiction,
    Feeling,
    Findings,
    Harm,
    HomophoneFinding,
    Missing,
    describe_homophones,
)
from memantics.understanding.extraction.chain import Extraction, ExtractSettings, extract_meme
from memantics.understanding.extraction.reading import ROLES
from memantics.understanding.intents.draft import IntentSettings, make_intent_step
from memantics.understanding.knowledge.records import Individual
from memantics.understanding.vision.appearance import (
    Sight,
    YuNet,
    describe_picture,
    has_nudity_check,
    list_notes,
    rate_nudity,
)
from memantics.understanding.vision.panels import find_panels

# Contradictions between parts of an analysis: harm and emotion.

_CLEAR = 0.3  # minimum absolute value of the valence of a clearly positive or negative word
_GOOD = frozenset({"happy", "calm", "relaxed", "excited"})
_BAD = frozenset({"sad", "angry", "tense", "bored"})
# Amusement contradicts no other emotion.
_LAUGHTER = re.compile(
    r"amus|laugh|\bfun|humou?r|好笑|发笑|有趣|搞笑|逗乐|幽默|会心一笑", re.IGNORECASE
)
_VIEWER = ROLES["Emotion"][1]["viewer"]


def find_contradictions(
    found: Findings, answered: Collection[Dimension]
) -> Iterator[Contradiction]:
    """Find contradictions between parts of an analysis, ignoring unreliable baseline results.

    ``answered`` are the dimensions that the model answered. An empty list means "nothing found"
    only for those dimensions.
    """
    harms = [harm for harm in found.harms if not harm.baseline]
    known = found.knowledge
    toxic = known.of("Toxicity") if known and "Toxicity" in answered else None
    yield from _compare_verdicts(harms, toxic, found.model)
    if toxic:
        yield from _compare_types(harms, toxic, found.model)
    emotions = known.of("Emotion") if known else ()
    for feeling in found.feelings:
        if not feeling.baseline:
            yield from _compare_feelings(feeling, emotions, found.model)


def _compare_verdicts(
    harms: Sequence[Harm], toxic: Sequence[Individual] | None, model: str
) -> Iterator[Contradiction]:
    sides: dict[bool, list[str]] = {True: [], False: []}
    for harm in harms:
        sides[harm.harmful].append(_tell_harm(harm))
    if toxic is not None:
        listed = _quote(toxic) if toxic else "nothing"
        sides[bool(toxic)].append(f"the dimensions of {model} (toxicity: {listed})")
    if sides[True] and sides[False]:
        yield Contradiction(
            "harm",
            f"harmful according to {' and '.join(sides[True])}; "
            f"not harmful according to {' and '.join(sides[False])}",
        )


def _compare_types(
    harms: Sequence[Harm], toxic: Sequence[Individual], model: str
) -> Iterator[Contradiction]:
    """Compare the type of harm with the kinds of toxicity when both parts report harm."""
    for harm in harms:
        if harm.harmful and not any(agrees(harm.type, one.kind) for one in toxic):
            yield Contradiction(
                "kind of harm",
                f"{harm.type} according to {harm.by}; "
                f"{_quote(toxic)} according to the dimensions of {model}",
            )


def _compare_feelings(
    feeling: Feeling, emotions: Sequence[Individual], model: str
) -> Iterator[Contradiction]:
    """Compare the emotion with the viewer's extracted emotions; a figure's emotions may differ."""
    sign = (feeling.emotion in _GOOD) - (feeling.emotion in _BAD)
    lexicon = MoodLexicon()
    felt = [
        individual
        for individual in emotions
        if individual.description.endswith(f"({_VIEWER})")
        and not _LAUGHTER.search(individual.label)
    ]
    clear = [
        individual for individual in felt if abs(lexicon.feel(individual.label).valence) >= _CLEAR
    ]
    opposed = all(lexicon.feel(individual.label).valence * sign < 0 for individual in clear)
    if sign and clear and opposed:
        yield Contradiction(
            "emotion",
            f"{feeling.emotion} according to the verdict of {feeling.by}; according to the "
            f"dimensions of {model} the viewer feels {_quote(clear)}",
        )


def _tell_harm(harm: Harm) -> str:
    if harm.score is not None:
        return f"{harm.by} (probability {show_probability(harm.score)})"
    return f"the verdict of {harm.by}" + (f" ({harm.type})" if harm.type else "")


def _quote(listed: Sequence[Individual]) -> str:
    return ", ".join(
        f"“{individual.label}”" + (f" ({individual.kind.lower()})" if individual.kind else "")
        for individual in listed[:3]
    )


@dataclass(frozen=True, slots=True)
class Tools:
    """Local tools that need no model server; each may be absent.

    ``read`` returns the text lines of an image (bytes and name) with their roles, ``tell_language``
    the language of a text and ``find_homophones`` the homophone readings of a caption, given the
    characters that OCR considered. ``screen`` returns a detector's verdict on a meme and its text,
    or the reason why there is none. ``judges`` are classifiers by topic, ``retrieve`` finds similar
    known memes and the template cluster, and ``faces`` detects faces.
    """

    read: Callable[[bytes, str], ImageReading]
    tell_language: Callable[[str], str]
    find_homophones: Callable[[str, str, Alternatives], Sequence[HomophoneFinding]]
    screen: Callable[[Meme, ImageReading], Harm | str] | None = None
    judges: Judges = field(default_factory=dict)
    retrieve: Callable[[Meme], tuple[tuple[NearMeme, ...], TemplateClusterUse | None]] | None = None
    faces: YuNet | None = None


EMOTION = "emotion"
MODEL_PARTS = ("dimensions and graph", "intents", "background knowledge", "emotion")
BASELINE = "embedded/reader"
VERDICTS = 4  # further model calls: intents, harm, emotion, pun


def look(meme: Meme, tools: Tools) -> Findings:
    """Analyse a meme with local tools, without a model server."""
    data = read_bytes(meme.image)
    image = decode(data, meme.image.name)
    printed = tools.read(data, meme.image.name)
    lines = tuple(line.text for line in printed.captions)
    text = meme.text or " ".join(lines)
    language = meme.language or tools.tell_language(text)
    told = {**list_notes(image, printed), **meme.notes}
    known = replace(meme, text=text, language=language, notes=told)
    predictions = tuple(judge.ask(text, language) for _, judge in sorted(tools.judges.items()))
    missing = _list_unsaid(predictions)
    unread = explain_unread(printed.unread)
    if unread:
        missing.append(Missing("some of its text", unread))
    screened: Harm | str | None = None
    if tools.screen:
        screened = tools.screen(known, ImageReading((), 0) if meme.text else printed)
    if isinstance(screened, str):
        missing.append(Missing("harm by a detector", screened))
    homophones: tuple[HomophoneFinding, ...] = ()
    try:
        # The lines of a caption are read together and alone, so line breaks are kept.
        said = (meme.text, {}) if meme.text else (printed.caption, printed.caption_alternatives)
        homophones = tuple(tools.find_homophones(said[0], language, said[1])) if text else ()
    except MissingExtra as error:
        missing.append(Missing("homophone readings", str(error)))
    panels = find_panels(image)
    near, template_cluster = tools.retrieve(known) if tools.retrieve else ((), None)
    seen, unseen = _look_closer(image, meme.image.name, tools)
    return Findings(
        known,
        lines,
        language,
        len(panels),
        (*describe_picture(image, panels, printed.lines), *seen, *starmap(Sight, tell_marks(data))),
        harms=(screened,) if isinstance(screened, Harm) else (),
        homophones=homophones,
        feelings=tuple(
            _feel(prediction)
            for prediction in predictions
            if prediction.topic == EMOTION and prediction.known
        ),
        predictions=tuple(prediction for prediction in predictions if prediction.topic != EMOTION),
        near=near,
        template_cluster=template_cluster,
        missing=(*missing, *unseen),
        printed=printed.lines,
        size=image.size,
    )


def _look_closer(image: Image, name: str, tools: Tools) -> tuple[list[Sight], list[Missing]]:
    """Run optional vision networks; return their results and the networks not installed."""
    seen, unseen = [], []
    if tools.faces is not None:
        found = len(tools.faces.find(image, name))
        seen.append(Sight("faces", str(found), f"{tools.faces.name}, not evaluated on memes"))
    else:
        unseen.append(
            Missing("faces", "add --faces FILE, the ONNX file of the YuNet face detector")
        )
    if has_nudity_check():
        seen.append(
            Sight(
                "nudity",
                f"probability {show_probability(rate_nudity(image))}",
                "open_nsfw, not evaluated on memes",
            )
        )
    else:
        unseen.append(Missing("nudity", "not installed (pip install 'memantics[nudity]')"))
    return seen, unseen


def _feel(prediction: ClassifierPrediction) -> Feeling:
    return Feeling(
        prediction.label,
        prediction.by,
        prediction.source.partition(", ")[2],
        baseline=prediction.sample,
    )


def _list_unsaid(predictions: Sequence[ClassifierPrediction]) -> list[Missing]:
    """List the parts that need a model; the emotion is missing unless a classifier predicts it."""
    parts = [part for part in MODEL_PARTS if part != EMOTION]
    missing = [Missing(part, "add --model") for part in parts]
    felt = [prediction for prediction in predictions if prediction.topic == EMOTION]
    if not any(prediction.known for prediction in felt):
        needs = "add --model, or train a classifier: memantics classifier train mer_bench/emotion"
        missing.append(Missing(EMOTION, f"unknown: {felt[0].why if felt else needs}"))
    return missing


async def ask_all(asker: Asker, seen: Findings, settings: ExtractSettings) -> Findings:
    """Add the model's answers to a local analysis; unanswered parts are listed in ``missing``.

    The facts of all dimensions are extracted first. The prompts for background knowledge, intents,
    harm, emotion and pun include these facts. All prompts include the homophone readings.
    """
    language, model = settings.language, asker.model
    meme = replace(seen.meme, notes={**seen.meme.notes, **describe_homophones(seen.homophones)})
    extraction = await extract_meme(asker, meme, settings)
    known = extraction.knowledge
    background = tuple(
        individual.description or individual.label for individual in known.of("BackgroundKnowledge")
    )
    told = "\n".join(
        individual.description or individual.label for individual in known.of("OverallIntent")
    )
    notes = {**meme.notes, **({"intent, by a first reading": told} if told else {})}
    noted = replace(meme, notes=notes)
    homophones = meme.notes.get(HOMOPHONES, "")
    intents, harm, feeling, pun = await asyncio.gather(
        asker.take(make_intent_step(noted, language, background, IntentSettings(language))),
        asker.take(ask_harm(meme, language, model, known)),
        asker.take(ask_feeling(meme, language, model, known)),
        asker.take(ask_pun(meme, language, model, homophones)),
    )
    if model == BASELINE:
        # The embedded reader, a small model shipped with the package, compares texts and would
        # choose an emotion at chance level.
        why = "unknown: the embedded reader does not predict emotions; train a classifier"
        feeling = replace(feeling, status="refused", value=None, reason=why)
        pun = replace(
            pun, status="refused", value=None, reason="unknown: the model reads text only"
        )
    taken: dict[str, Taken[Any]] = {
        "intents": intents,
        "harm": harm,
        EMOTION: feeling,
        "pun, as it is seen": pun,
    }
    found = replace(
        seen,
        model=model,
        knowledge=known,
        intents=intents.value or (),
        background=background,
        harms=(*((harm.value,) if harm.value else ()), *seen.harms),
        pun=pun.value,
        feelings=(*((feeling.value,) if feeling.value else ()), *seen.feelings),
        missing=tuple(_list_missing(extraction, taken))
        + tuple(missing for missing in seen.missing if missing.part not in MODEL_PARTS),
        statuses=_count(extraction, taken),
    )
    answered = {step.dimension for step in extraction.steps if step.status == "answered"}
    return replace(found, contradictions=tuple(find_contradictions(found, answered)))


def _list_missing(extraction: Extraction, taken: Mapping[str, Taken[Any]]) -> Iterator[Missing]:
    for step in extraction.steps:
        if step.status not in ("answered", "skipped"):
            yield Missing(f"{step.dimension} ({step.stage})", f"{step.status}: {step.reason}")
    for name, step_result in taken.items():
        if step_result.value is None:
            yield Missing(name, f"{step_result.status}: {step_result.reason}")


def _count(extraction: Extraction, taken: Mapping[str, Taken[Any]]) -> dict[str, int]:
    counts = Counter(str(step.status) for step in extraction.steps if step.status != "skipped")
    counts.update(str(step_result.status) for step_result in taken.values())
    return dict(counts)
