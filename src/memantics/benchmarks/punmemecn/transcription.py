"""Two abilities that puns presuppose: reading the caption, and knowing how it sounds."""

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
    """The task ``ocr``: copy out the caption."""
    return _make(brief, "ocr", parse_caption, CAPTION_MEASURES)


def make_pinyin(brief: Brief) -> Task:
    """The task ``pinyin``: write the caption in pinyin; no image is shown."""
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
    """The authors' 200 puns where this copy has any of them, else every pun."""
    puns = {meme.id: meme for meme in brief.release.memes if meme.is_pun}
    drawn = [puns[name] for name in draw_transcribed() if name in puns]
    return drawn if drawn and brief.options["set"] == "paper" else list(puns.values())


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
            if brief.options.get("wording") == "official":  # their script converts it, too
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
    """The reply as it is."""
    body = clean(text)
    if not body:
        raise Unparsed("empty reply")
    return body


def parse_pinyin(text: str, _form: Form) -> str:
    """The reply's syllables, with tone marks; none at all is a reply too, and scores nothing."""
    body = parse_caption(text, _form)
    return matching.read_syllables(body) or body


def _letters(text: str, *, tones: bool = True) -> str:
    joined = text if tones else matching.drop_tones(text)
    return "".join(char for char in joined if char.isalpha())


CAPTION_MEASURES: Mapping[str, tuple[TextMeasure, str]] = {
    "substring": (
        lambda gold, said: float(matching.plain(gold) in matching.plain(said)),
        "the caption stands in the reply; letters, digits and Chinese characters only",
    ),
    "exact": (
        lambda gold, said: float(matching.plain(gold) == matching.plain(said)),
        "the reply is the caption and nothing else; punctuation aside",
    ),
    "longest_run": (
        lambda gold, said: matching.run_share(matching.plain(gold), matching.plain(said)),
        "longest run of the caption that the reply holds, as a share of the caption",
    ),
    "characters": (
        lambda gold, said: matching.recall(matching.plain(gold), matching.plain(said)),
        "share of the caption's characters that the reply holds",
    ),
}
PINYIN_MEASURES: Mapping[str, tuple[TextMeasure, str]] = {
    "substring": (
        lambda gold, said: float(_letters(gold) in _letters(said)),
        "the pinyin stands in the reply, tones included; spaces aside",
    ),
    "toneless": (
        lambda gold, said: float(_letters(gold, tones=False) in _letters(said, tones=False)),
        "the same without tones",
    ),
    "longest_run": (
        lambda gold, said: matching.run_share(_letters(gold), _letters(said)),
        "longest run of the pinyin's letters that the reply holds, as a share of them",
    ),
    "syllables": (
        lambda gold, said: matching.recall(gold.split(), said.split()),
        "share of the syllables that the reply holds as words of their own",
    ),
}


def score(
    outcomes: Sequence[Outcome], measures: Mapping[str, tuple[TextMeasure, str]]
) -> tuple[Score, ...]:
    """Means over items; an invalid answer counts 0."""
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
