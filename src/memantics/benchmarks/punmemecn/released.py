"""Results that the authors released with their code: ``results/*/*_metrics.json`` of a clone.

They hold what the paper only draws or leaves out: seven prompts, English prompts, one example for
OCR and pinyin, models that its tables do not name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from memantics.benchmarks.punmemecn.load import PunRelease
from memantics.benchmarks.punmemecn.official import list_roots
from memantics.core.data import read_json, toml_beside
from memantics.core.published import PublishedRow

SOURCE = "released results"
_LANGUAGES = {"cn": "zh", "en": "en"}
_RELEASED = toml_beside(__file__, "released.toml")
_PROMPTS: Mapping[str, Mapping[str, str]] = _RELEASED["prompts"]


def read_released(release: PunRelease) -> tuple[PublishedRow, ...]:
    """All released figures of a registered clone; none where its ``results`` are not there."""
    rows: list[PublishedRow] = []
    for task, told in _RELEASED["files"].items():
        figures = told["figures"]
        places = (root / "results" / told["file"] for root in list_roots(release.folder))
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
