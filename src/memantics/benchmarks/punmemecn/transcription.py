"""Tasks ``ocr`` and ``pinyin``: transcribe the caption, and write its pinyin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from memantics.benchmarks.factories import mean_score, proportion_score
from memantics.benchmarks.parsing import clean
from memantics.benchmarks.punmemecn import matching
from memantics.benchmarks.punmemecn.examples import draw_transcribed
from memantics.benchmarks.punmemecn.load import PunMeme
from memantics.benchmarks.punmemecn.official import write_official
from memantics.benchmarks.punmemecn.wording import Brief, one_line, read_wording
from memantics.core.records import Field, Form, Item, Message, Outcome, Request, Sampling, Score
from memantics.core.task import Task, Unparsed

QUESTION = {
    "ocr": {"zh": "这张表情包上写着什么文字？", "en": "What does the text on this meme say?"},
    "pinyin": {"zh": "这段文字的拼音是什么？", "en": "What is this text in pinyin?"},
}
TextMeasure = Callable[[str, str], float]


def make_ocr(brief: Brief) -> Task:
    """Build the task ``ocr``: transcribe the caption."""
    return _make(brief, "ocr", parse_caption, CAPTION_MEASURES)


def make_pinyin(brief: Brief) -> Task:
    """Build the task ``pinyin``: write the caption in pinyin, without the image."""
    return _make(brief, "pinyin", parse_pinyin, PINYIN_MEASURES)


def _make(
    brief: Brief,
    task: str,
    parse: Callable[[str, Form], JsonValue],
    measures: Mapping[str, tuple[TextMeasure, str]],
) -> Task:
    wording, official = read_wording(brief), brief.read_official(task)

    def ask(item: Item, _complaint: str | None) -> Request:
        context = item.form.context
        text = write_official(official, context) if official else wording.say(task, **context)
        return Request(
            (Message("user", (*item.images, text)),), item.form, Sampling(temperature=0.0)
        )

    return brief.make(
        items=lambda: _items(brief, task),
        ask=ask,
        parse=parse,
        score=lambda outcomes: score(outcomes, measures),
        used={official.name: official.hash} if official else wording.hashes(task),
    )


def choose_puns(brief: Brief) -> list[PunMeme]:
    """Return the authors' 200 test puns if this copy has any of them, else every pun.

    File names of a user's set may equal the authors', so their sample is not drawn there.
    """
    puns = {meme.id: meme for meme in brief.release.memes if meme.is_pun}
    drawn = [puns[name] for name in draw_transcribed() if name in puns]
    theirs = brief.options["set"] == "paper" and not brief.published
    return drawn if drawn and theirs else list(puns.values())


def _items(brief: Brief, task: str) -> Iterator[Item]:
    for meme in choose_puns(brief):
        caption = one_line(meme.caption)
        gold, context, image = caption, {}, None
        if task == "ocr":
            image = brief.show(meme)
            if image is None:
                continue
        else:
            written = matching.keep_chinese(caption)
            # the authors' script converts the text, too
            if brief.options.get("wording") == "official":
                written = matching.simplify_text(written)
            gold, context = matching.spell(written), {"caption": written}
        if matching.plain(gold):
            field = Field(task, "text")
            yield Item(
                id=meme.id,
                group=meme.group,
                gold=gold,
                form=Form(
                    QUESTION[task][brief.language],
                    (field,),
                    language=brief.language,
                    reply="text",
                    context=context,
                ),
                images=(image,) if image else (),
            )


def parse_caption(text: str, _form: Form) -> str:
    """Return the reply unchanged as the transcribed caption."""
    body = clean(text)
    if not body:
        raise Unparsed("empty reply")
    return body


def parse_pinyin(text: str, _form: Form) -> str:
    """Return the pinyin syllables of a reply with tone marks; an empty result scores 0."""
    body = parse_caption(text, _form)
    return matching.read_syllables(body) or body


def _letters(text: str, *, tones: bool = True) -> str:
    joined = text if tones else matching.drop_tones(text)
    return "".join(char for char in joined if char.isalpha())


CAPTION_MEASURES: Mapping[str, tuple[TextMeasure, str]] = {
    "substring": (
        lambda gold, said: float(matching.plain(gold) in matching.plain(said)),
        "the reply contains the caption; letters, digits and Chinese characters only",
    ),
    "exact": (
        lambda gold, said: float(matching.plain(gold) == matching.plain(said)),
        "the reply is exactly the caption, without punctuation",
    ),
    "longest_run": (
        lambda gold, said: matching.run_share(matching.plain(gold), matching.plain(said)),
        "longest substring of the caption in the reply, as a proportion of the caption",
    ),
    "characters": (
        lambda gold, said: matching.recall(matching.plain(gold), matching.plain(said)),
        "proportion of the caption's characters in the reply",
    ),
}
PINYIN_MEASURES: Mapping[str, tuple[TextMeasure, str]] = {
    "substring": (
        lambda gold, said: float(_letters(gold) in _letters(said)),
        "the reply contains the pinyin with tones, ignoring spaces",
    ),
    "toneless": (
        lambda gold, said: float(_letters(gold, tones=False) in _letters(said, tones=False)),
        "the same without tones",
    ),
    "longest_run": (
        lambda gold, said: matching.run_share(_letters(gold), _letters(said)),
        "longest substring of the pinyin's letters in the reply, as a proportion",
    ),
    "syllables": (
        lambda gold, said: matching.recall(gold.split(), said.split()),
        "proportion of the syllables that the reply contains as separate words",
    ),
}


def score(
    outcomes: Sequence[Outcome], measures: Mapping[str, tuple[TextMeasure, str]]
) -> tuple[Score, ...]:
    """Return mean scores over items; an invalid answer counts as 0."""
    memes = [outcome.item.group for outcome in outcomes]
    rows = []
    for key, (measure, note) in measures.items():
        values = [
            measure(str(o.item.gold), str(o.value)) if o.status == "answered" else 0.0
            for o in outcomes
        ]
        if all(value in (0.0, 1.0) for value in values):
            rows.append(proportion_score(key, [value == 1.0 for value in values], memes, note=note))
        else:
            rows.append(mean_score(key, values, memes, note=note))
    return tuple(rows)
