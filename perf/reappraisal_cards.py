"""Unseen captions, each printed on a plain card with a tired drawn face.

PunMemeCN's groups above 100 and MER-Bench's captions come without pictures; whether a rewriting of
theirs makes sense, is kinder and keeps its look can still be seen on a card.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from PIL import Image, ImageDraw

from memantics.core.labels import name_group
from memantics.understanding.reappraisal.kindness import LexiconMeter
from memantics.understanding.reappraisal.planner import choose_emotion, rank_candidates
from memantics.understanding.reappraisal.records import PAIRS
from memantics.understanding.reappraisal.rules import find_motto, keeps_scenario, only_adds
from memantics.understanding.reappraisal.situation import understand
from memantics.understanding.reappraisal.topics import find_topic
from memantics.understanding.vision.typefaces import ANTON, BLACK, find_face
from memantics.understanding.vision.typesetting import break_lines, split_pieces
from perf import kindness
from perf.reappraisal_ratings import QUESTIONS, write_rows
from research.protocol import is_in_test_set

_SIDE, _ROOM, _LINE = 640, 580, 52
_SEED = 38
_LONGEST = 90  # characters: a card holds one short caption
_SITES = re.compile(r"\.(?:com|net|org|me)\b|@|imgflip|mematic", re.IGNORECASE)
_COLOURS = ("#f6e7c8", "#dbe9f4", "#e4f0dd", "#f3dfe3")


def list_texts(*, locked: bool) -> Iterator[tuple[str, str]]:
    """Names and texts of captions that annotators call negative."""
    for name, row in kindness.read_release(kindness.DATA / "punmemecn" / "_Meta.json").items():
        unseen = int(name[2:7]) > kindness.SEEN_GROUPS
        negative = row["meme_sentiment"].endswith("negative")
        if unseen and negative and is_in_test_set("punmemecn", name[:7]) == locked:
            yield f"zh-{Path(name).stem}", " ".join(row["caption_1"].split())
    for row in kindness.read_release(kindness.DATA / "mer_bench" / "index_final.json"):
        text = " ".join(row["text"].split())
        short = len(text) <= _LONGEST and not _SITES.search(text)
        if short and is_in_test_set("mer_bench", name_group(row["text"])) == locked:
            yield f"en-{Path(row['id']).stem}", text


def draw_card(name: str, text: str, folder: Path) -> Path:
    """Return the picture of a card."""
    number = int(hashlib.sha256(name.encode()).hexdigest(), 16)
    image = Image.new("RGB", (_SIDE, _SIDE), _COLOURS[number % len(_COLOURS)])
    pen = ImageDraw.Draw(image)
    pen.ellipse((210, 60, 430, 280), fill="#ffd75e", outline="#3a2f20", width=6)
    for x in (275, 365):
        pen.line((x - 22, 150, x + 22, 156 if x < 320 else 144), fill="#3a2f20", width=7)
        pen.ellipse((x - 9, 162, x + 9, 180), fill="#3a2f20")
    pen.line((275, 235, 365, 235), fill="#3a2f20", width=7)
    face = find_face(text, BLACK if name.startswith("zh") else ANTON)
    font, pieces = face.at(_LINE), split_pieces(text)
    for count in range(1, len(pieces) + 1):
        lines = break_lines(pieces, count, font.getlength) or (text,)
        if max(map(font.getlength, lines)) <= _ROOM:
            break
    top = 320 + max(0, (280 - len(lines) * (_LINE + 10)) // 2)
    for row, line in enumerate(lines):
        place = (_SIDE // 2, top + row * (_LINE + 10))
        pen.text(place, line, font=font, fill="black", anchor="ma")
    path = folder / f"{name}.png"
    image.save(path)
    return path


def plan_text(text: str) -> tuple[str, str]:
    """How planning for a lone caption ends, and the new caption."""
    found = understand([text])
    if find_topic([text]):
        return "declined: grave", ""
    if not found.negative:
        return "declined: not negative by its words", ""
    target = PAIRS[choose_emotion(found)]
    for _, ranked in rank_candidates(found, target, LexiconMeter()):
        (new,) = ranked.captions
        fine = keeps_scenario([text], [new]) and not find_motto(new, text)
        if fine and not only_adds(text, new):
            return "planned", new
    return "declined: cannot be turned", ""


def draw_cards(
    texts: Iterable[tuple[str, str]], folder: Path, most: int
) -> tuple[list[Path], Counter[str]]:
    """Cards of captions for which there is a plan, and how planning ended for all that were tried.

    What is declined by its text alone needs no picture.
    """
    ends: Counter[str] = Counter()
    cards: list[Path] = []
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts:
        end, _ = plan_text(text)
        ends[end] += 1
        if end == "planned":
            cards.append(draw_card(name, text, folder))
        if len(cards) == most:
            break
    return cards, ends


def write_captions(folder: Path, count: int) -> None:
    """Write a sheet of locked test set captions with their rewritings; a third is English."""
    corpora = {"zh": "Chinese captions, locked test set", "en": "English captions, locked test set"}
    texts = {text: name for name, text in list_texts(locked=True)}
    drawn = random.Random(_SEED).sample(sorted(texts), len(texts))
    ends: dict[str, Counter[str]] = {corpus: Counter() for corpus in corpora.values()}
    made: dict[str, list[tuple[str, str, str]]] = {corpus: [] for corpus in corpora.values()}
    for text in drawn:
        end, new = plan_text(text)
        corpus = corpora[texts[text][:2]]
        ends[corpus][end] += 1
        if new:
            made[corpus].append((texts[text], text, new))
    chinese, english = made.values()
    few = max(count - len(chinese), count // 3)
    pairs = [*chinese[: count - few], *english[:few]]
    random.Random(_SEED).shuffle(pairs)
    folder.mkdir(parents=True, exist_ok=True)
    asked = [name for name in QUESTIONS if name != "lettering_kept"]
    rows = [[n, old, new, *("" for _ in asked)] for n, (_, old, new) in enumerate(pairs, 1)]
    key = [[n, corpora[name[:2]], name, "done", ""] for n, (name, *_) in enumerate(pairs, 1)]
    ended = [[corpus, end, n] for corpus, found in ends.items() for end, n in found.items()]
    write_rows(folder / "ratings.csv", ["pair", "before", "after", *asked], rows)
    write_rows(folder / "key.csv", ["pair", "corpus", "meme", "status", "reason"], key)
    write_rows(folder / "key-endings.csv", ["corpus", "ending", "memes"], ended)
