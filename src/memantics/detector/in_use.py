"""Which detector and which experts are used wherever none is named: small files in the home."""

from __future__ import annotations

from pathlib import Path

import orjson

from memantics.core.errors import InputError
from memantics.core.journal import in_turn, replace_file
from memantics.core.registry import home

DETECTOR = "detector"
_FILES = {DETECTOR: "detector.json"}
_EXPERTS = "experts.json"


def set_in_use(topic: str, path: Path) -> None:
    """Use a file for a topic from now on; ``detector`` is the topic of harm."""
    if topic in _FILES:
        body = orjson.dumps({"path": str(path)})
        replace_file(home() / _FILES[topic], body, "setting")
    else:
        with in_turn(home()):
            _write({**_read(), topic: str(path)})


def forget_in_use(topic: str) -> bool:
    """Use nothing for a topic; whether something was in use."""
    if topic in _FILES:
        known = (home() / _FILES[topic]).is_file()
        (home() / _FILES[topic]).unlink(missing_ok=True)
        return known
    with in_turn(home()):
        kept = _read()
        found = kept.pop(topic, None) is not None
        if found:
            _write(kept)
    return found


def find_in_use(topic: str) -> Path | None:
    """The file in use for a topic; None where there is none, an error where it is gone."""
    if topic in _FILES:
        place = _read_detector()
        remedy = "memantics detector use FILE, or 'memantics detector use sample'"
    else:
        found = _read().get(topic)
        place = Path(found) if found else None
        remedy = f"memantics expert use FILE, or --forget {topic!r}"
    if place is not None and not place.exists():
        what = "detector" if topic in _FILES else f"expert for {topic}"
        raise InputError(f"the {what} in use is gone: {place}", hint=remedy)
    return place


def list_in_use() -> dict[str, Path]:
    """The experts in use by topic, also those whose file is gone."""
    return {topic: Path(place) for topic, place in sorted(_read().items())}


def _read_detector() -> Path | None:
    place = home() / _FILES[DETECTOR]
    try:
        return Path(orjson.loads(place.read_bytes())["path"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{place} is damaged", hint="memantics detector use FILE writes it again"
        ) from error


def _read() -> dict[str, str]:
    place = home() / _EXPERTS
    try:
        found = orjson.loads(place.read_bytes())
        return {str(topic): str(path) for topic, path in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(
            f"{place} is damaged", hint="remove it, then 'memantics expert use FILE'"
        ) from error


def _write(table: dict[str, str]) -> None:
    replace_file(home() / _EXPERTS, orjson.dumps(table, option=orjson.OPT_INDENT_2), "setting")
