"""PunMemeCN's paper: its tables and figures in its order, redone from data, runs and people."""

from __future__ import annotations

from dataclasses import replace

from memantics.benchmarks.punmemecn.paper_models import (
    SYSTEMS,
    Material,
    figure_4,
    table_2,
    table_4,
    table_5,
    table_7,
    table_8,
)
from memantics.benchmarks.punmemecn.records import TARGETS, TOPICS, TYPES
from memantics.benchmarks.punmemecn.wording import FOLDER, STYLES
from memantics.core.paper import (
    Cell,
    Paper,
    PaperPart,
    PaperRow,
    PaperText,
    list_figures,
)
from memantics.core.prompt import read_prompts

_CHATS = {
    "DuConv": (15.815, 0.787, 0.022, 0.152),
    "NaturalConv": (18.397, 0.839, 0.015, 0.183),
}

_PUNCHLINES = (
    "The authors' punchline labels were not released; --verdicts QUEUE shows your people's."
)


def figure_1(material: Material) -> PaperPart:
    """Two puns: one by sound, one by two senses."""
    puns = [meme for meme in material.release.memes if meme.is_pun]
    sound = next((meme for meme in puns if meme.reading != meme.caption), None)
    senses = next((meme for meme in puns if meme.reading == meme.caption), None)
    texts = [
        PaperText(f"{meme.id}: {meme.caption} – {meme.reading}", meme.explanation)
        for meme in (sound, senses)
        if meme is not None
    ]
    return PaperPart(
        "Figure 1", "Two pun memes: what is printed, and what it means.", texts=tuple(texts)
    )


FIGURE_2 = PaperPart(
    "Figure 2",
    "Construction: collect, annotate by three people, group with look-alikes, chats, distractors.",
    texts=(
        PaperText(
            "Collect; duplicates and watermarked memes stay out",
            "memantics collect FOLDER --set watermark=1",
        ),
        PaperText(
            "Punchline, sentiment, explanation", "memantics annotate MEMES --workflow pun-form"
        ),
        PaperText(
            "Each pun with the nearest non-pun in picture and in text",
            "memantics build look-alikes QUEUE",
        ),
        PaperText(
            "Chats, edited by people; near and random distractors",
            "memantics build chats MEMES --model MODEL; memantics annotate QUEUE-CHATS",
        ),
        PaperText(
            "Publish", "memantics publish QUEUE --chats QUEUE-CHATS --name NAME --licence ID"
        ),
    ),
)


def table_1(material: Material) -> PaperPart:
    """Chats beside two other data sets."""
    figures = {
        "perplexity": "Perplexity",
        "bertscore": "BERTScore",
        "distinct_1": "Distinct-1",
        "distinct_2": "Distinct-2",
    }
    fill = (
        "memantics build chat-quality CHATS DuConv.json NaturalConv.json --perplexity BERT "
        f"--bert BERT --out chats.json; memantics paper {material.name} --figures chats.json"
    )
    named = (key.removesuffix(".distinct_1") for key in material.values if "distinct_1" in key)
    found = (key.removeprefix("chats").removeprefix(".") for key in named)
    others = [name for name in found if name and name not in _CHATS]
    rows = []
    for name in (*_CHATS, "", *others):
        start = f"chats.{name}" if name else "chats"
        printed = _CHATS.get(name, ())
        cells = []
        for place, key in enumerate(figures):
            known = material.expected[f"chats.{key}"].paper if not name else None
            paper = printed[place] if printed else known
            value = material.values.get(f"{start}.{key}")
            # Nobody knows whether a file of that name is the copy that the paper measured.
            same = not printed and material.compared
            cells.append(Cell(paper, value, digits=3, compared=same, fill=fill))
        rows.append(PaperRow(name or "Our", tuple(cells), "own" if name in others else "paper"))
    return PaperPart(
        "Table 1",
        "Comparison of chat data sets.",
        tuple(figures.values()),
        tuple(rows),
        "Chat Dataset",
        notes=(
            "CHATS is the release's own file, such as _Chat(easy).json.",
            "A file that is named like one of the other data sets fills its row.",
        ),
    )


def annotation(material: Material) -> PaperPart:
    """Sections 3.1 and 5.1: agreement, and annotators against the final label."""
    keys = (
        *("memes.total", "memes.pun", "memes.non_pun", "memes.groups", "chats.total"),
        *("agreement.punchline", "agreement.sentiment.all", "agreement.sentiment.pun"),
        *("human.target", "human.type", "human.overall"),
        *("puns.homophone", "puns.polysemy", "captions.bound.f1"),
    )
    part = list_figures(material, "Section 3.1", "Sizes, agreement and annotators.", keys)
    agreed, n = _agree_on_punchlines(material) or (None, 0)
    title = material.expected["agreement.punchline"].title
    fill = f"memantics paper {material.name} --verdicts QUEUE" if material.source.published else ""
    cell = Cell(95.6, agreed, n=n, digits=1, compared=False, fill=fill, reason=_PUNCHLINES)
    rows = tuple(replace(r, cells=(cell,)) if r.label == title else r for r in part.rows)
    return replace(part, rows=rows)


def _agree_on_punchlines(material: Material) -> tuple[float, int] | None:
    """How often all people named the same pun word and homophone, in reviews by the pun form."""
    said = [
        {
            (vote.values.get("pun"), vote.values.get("pun_word"), vote.values.get("homophone"))
            for vote in reviewed.verdict.votes
            if vote.stage == reviewed.verdict.votes[0].stage
        }
        for review in material.reviews
        if review.card.workflow == "pun-form"
        for reviewed in review.judged
        if reviewed.verdict is not None and len(reviewed.verdict.votes) > 1
    ]
    return (100 * sum(len(pairs) == 1 for pairs in said) / len(said), len(said)) if said else None


def figure_3(material: Material) -> PaperPart:
    """Distributions within the data."""
    keys = (
        *(f"sentiment.target.{name}" for name in TARGETS),
        *(f"sentiment.type.{name}" for name in TYPES),
        "sentiment.other_negative.share",
        *(f"chats.turns.{n}" for n in (4, 5, 6)),
        *(f"chats.topic.{topic}" for topic in TOPICS),
    )
    caption = "Sentiment targets and types, chat turns, chat topics."
    return list_figures(material, "Figure 3", caption, keys)


def table_3() -> PaperPart:
    """The seven prompts."""
    columns = ("Meme Image", "Meme Caption", "Caption's Pinyin", "Few-Shot", "CoT Output")
    rows = []
    for number, style in STYLES.items():
        marks = (True, style.caption, style.pinyin, style.shots, style.reasons)
        cells = tuple(Cell(value="✓" if mark else "×", compared=False) for mark in marks)
        rows.append(PaperRow(f"Prompt {number}", cells))
    return PaperPart("Table 3", "The seven prompts.", columns, tuple(rows), "Prompt")


TABLE_6 = PaperPart(
    "Table 6",
    "Sources of the models.",
    ("Endpoint",),
    tuple(PaperRow(name, (Cell(value=model, compared=False),)) for name, model in SYSTEMS.items()),
    "Model",
)


def _prompt_part(label: str, caption: str, *names: str) -> PaperPart:
    found = read_prompts(FOLDER / "prompts")
    texts = tuple(PaperText(name, found[name].text) for name in names)
    return PaperPart(label, caption, texts=texts)


CHAT_PROMPTS = PaperPart(
    "Table 9",
    "Prompt for chat generation.",
    texts=(
        PaperText(
            "Our own words: src/memantics/build/chats/prompts",
            "memantics build chats MEMES --model MODEL",
        ),
    ),
)
INTERFACE = PaperPart(
    "Figures 5 and 6",
    "The annotation interface, in both languages.",
    texts=(PaperText("Caption, pun, words, sentiment, explanation", "memantics annotate --demo"),),
)

PAPER = Paper(
    "PunMemeCN: A Benchmark to Explore Vision-Language Models' Understanding of Chinese Pun Memes",
    (
        figure_1,
        FIGURE_2,
        annotation,
        table_1,
        figure_3,
        table_2,
        table_3(),
        figure_4,
        table_4,
        table_5,
        TABLE_6,
        table_7,
        table_8,
        CHAT_PROMPTS,
        _prompt_part("Table 10", "Prompt for detection.", "detection.zh", "detection.en"),
        _prompt_part("Table 11", "Prompt for sentiment.", "sentiment.zh", "sentiment.en"),
        _prompt_part("Table 12", "Prompt for chats.", "chat.zh", "chat.en"),
        _prompt_part("Table 13", "Prompt for harmful memes.", "harmful.zh", "harmful.en"),
        _prompt_part("Tables 14, 15", "Prompts for OCR and pinyin.", "ocr.zh", "pinyin.zh"),
        INTERFACE,
    ),
)
