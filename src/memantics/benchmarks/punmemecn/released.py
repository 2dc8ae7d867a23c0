"""Results that the authors released with their code: ``results/*/*_metrics.json`` of a clone.

They hold what the paper only draws or leaves out: seven prompts, English prompts, one example for
OCR and pinyin, models that its tables do not name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from memantics.benchmarks.punmemecn.load import PunRelease
from memantics.benchmarks.punmemecn.official import list_roots
from memantics.core.data import read_json
from memantics.core.published import PublishedRow

SOURCE = "released results"
_LANGUAGES = {"cn": "zh", "en": "en"}
_PROMPTS = {
    "only_image(zero_shot)": {"prompt": "1"},
    "image_&_caption(zero_shot)": {"prompt": "2"},
    "only_image(few_shot)": {"prompt": "3"},
    "image_&_caption(few_shot)": {"prompt": "4"},
    "image_&_caption_&_pinyin(few_shot)": {"prompt": "5"},
    "image_&_caption(few_shot+CoT)": {"prompt": "6"},
    "image_&_caption_&_pinyin(few_shot+CoT)": {"prompt": "7"},
    "zero-shot": {"example": "none"},
    "one-shot": {"example": "one"},
}
# By task: the file below results/, and our names of its figures.
_FILES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "detection": (
        "pun_meme_eval/pun_meme_detection_metrics.json",
        {"TPR": "tpr", "TNR": "tnr", "F1": "f1"},
    ),
    "sentiment": (
        "pun_meme_eval/meme_sentiment_analysis_metrics.json",
        {"Acc_target": "target_accuracy", "Acc_type": "type_accuracy", "Acc_whole": "accuracy"},
    ),
    "chat": ("pun_meme_eval/text_driven_meme_response_metrics.json", {"Acc": "accuracy"}),
    "ocr": ("other_eval/image_OCR_metrics.json", {"Acc": "substring"}),
    "pinyin": ("other_eval/caption_pinyin_metrics.json", {"Acc": "substring"}),
}


def read_released(release: PunRelease) -> tuple[PublishedRow, ...]:
    """All released figures of a registered clone; none where its ``results`` are not there."""
    rows: list[PublishedRow] = []
    for task, (name, figures) in _FILES.items():
        places = (root / "results" / name for root in list_roots(release.folder))
        path = next((place for place in places if place.is_file()), None)
        if path is None:
            continue
        whole = _fields(read_json(path))
        if task == "chat":
            for level, models in whole.items():
                rows += _list_rows(task, _fields(models), figures, {"level": level})
        else:
            rows += _list_rows(task, whole, figures, {})
    return tuple(rows)


def _list_rows(
    task: str,
    models: Mapping[str, JsonValue],
    figures: Mapping[str, str],
    options: Mapping[str, str],
) -> Iterator[PublishedRow]:
    for model, languages in models.items():
        for language, ways in _fields(languages).items():
            for way, found in _fields(ways).items():
                known = {
                    figures[name]: float(value)
                    for name, value in _fields(found).items()
                    if name in figures and isinstance(value, int | float)
                }
                if language in _LANGUAGES and way in _PROMPTS and known:
                    yield PublishedRow(
                        task=task,
                        system=model,
                        options={"language": _LANGUAGES[language], **_PROMPTS[way], **options},
                        figures=known,
                        digits=3,
                        source=SOURCE,
                        feasible=None,
                    )


def _fields(value: JsonValue) -> Mapping[str, JsonValue]:
    """An object; what is none has no fields."""
    return value if isinstance(value, dict) else {}
