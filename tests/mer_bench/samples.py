"""Small releases with images, and replies a judge might give."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

from memantics.benchmarks.mer_bench.load import TARGETS, ReappraisalRelease, open_release
from memantics.core.data import Source

FEELINGS = tuple(TARGETS)
KINDS = ("Template_StylizedMeme", "Object_Animal_Dominant", "Photo_RealPerson", "Cartoon_Anime")


def draw(path: Path, colour: str = "orange") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Pillow.new("RGB", (24, 24), colour).save(path)
    return path


def entry(number: int) -> dict[str, Any]:
    feeling = FEELINGS[number % 4]
    return {
        "id": f"{number}.png",
        "det_emo": feeling,
        "img_desc": "Visual cues: a wet cat.\n\nText cues: it rains.",
        "pos_txt": f'"ducks love day {number}"',
        "spec": "give the cat an umbrella",
        "tgt_emo": TARGETS[feeling],
        "gen_id": f"{number}.png",
        "text": "it rains" if number % 5 else "",
        "visual_type": KINDS[number // 2 % 4],
        "sentiment_polarity": ("Negative", "Neutral")[number % 2],
        "layout_type": ("SinglePanel_Meme", "MultiPanel_Meme")[number % 3 == 0],
    }


def write_release(
    root: Path, given: int | Iterable[dict[str, Any]], editors: Iterable[str] = ("one", "two")
) -> Source:
    """A release of small plain pictures: so many memes, or these rows."""
    data = root / "data"
    data.mkdir(parents=True)
    rows = [entry(number) for number in range(given)] if isinstance(given, int) else list(given)
    (data / "index_final.json").write_text(json.dumps(rows), encoding="utf-8")
    for row in rows:
        draw(data / "Original" / row["id"])
        for editor in editors:
            draw(data / "EditedResults" / editor / row["id"], "green")
    return Source("release", root)


def opened(source: Source) -> ReappraisalRelease:
    return open_release(source)


def reason(part: str, feeling: str = "happy") -> str:
    return (
        f"For the {part}: the target ({feeling}) is met, the scenario is kept, "
        "and caption and picture align."
    )


def reply(feeling: str = "happy", *, last: bool = False, **changes: Any) -> dict[str, Any]:
    """A flawless judgement; ``changes`` by "part__key" set values, or remove them with ``...``."""
    body: dict[str, dict[str, Any]] = {
        "visual_assessment": {"generation_quality_1_5": 4, "emotion_accuracy_1_5": 5},
        "text_assessment": {"generation_quality_1_5": 3, "emotion_accuracy_1_5": 4},
        "layout_consistency": {"consistent": True},
        "overall_emotion_classification": {"label": feeling, "other_emotion": None},
        "perceived_emotion_shift": {"magnitude_1_5": 4},
        "overall_generation_quality": {"overall_generation_quality_1_5": 4},
    }
    for part, own in body.items():
        given = {"rationale": reason(part, feeling)}
        body[part] = own | given if last else given | own
    for name, value in changes.items():
        part, key = name.split("__")
        if value is ...:
            del body[part][key]
        else:
            body[part][key] = value
    return body


def bare(feeling: str = "happy", rating: int = 4, consistent: bool = True) -> dict[str, Any]:
    """Ratings without reasons, as a model that fills in forms gives them."""
    body = reply(feeling)
    for own in body.values():
        own.pop("rationale")
        own.pop("other_emotion", None)
        for key in own:
            if key.endswith("_1_5"):
                own[key] = rating
    body["layout_consistency"]["consistent"] = consistent
    return body
