"""Who can answer without what: from runs with one thing changed to the share that needs both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memantics.core.finding import Finding, FindingWords, rank
from memantics.core.records import Outcome, Score
from memantics.metrics.rounding import settle
from memantics.run.audit.rows import mean, place
from memantics.tasks.factories import hits, share

WORDS_ALONE, PICTURE_ALONE = "picture=blank", "caption=removed"
NAMES: Mapping[str, str] = {
    WORDS_ALONE: "words alone",
    PICTURE_ALONE: "picture alone",
    "picture=swapped": "another meme's picture",
    "meme=removed": "neither: question and options alone",
    "caption=reworded": "the caption in other words",
    "caption=shuffled": "the caption's words in another order",
    "options=permuted": "options in another order",
}
HEART: Mapping[str, str] = {
    "memory=caption": "second halves of captions",
    "memory=template": "names of templates",
    "memory=id": "ids in the data set",
    "memory=canary": "the canary string",
}
_LITTLE = 0.1
_SOME, _MUCH = 0.02, 0.1  # of the memes known by heart: worth knowing, broken
_WORDS = FindingWords(__file__)


def judge_needs(
    task: str,
    model: str,
    plain: Sequence[Outcome],
    probed: Mapping[str, Sequence[Outcome]],
) -> Finding | None:
    """The share of items that a model solves with words and picture, and with neither alone.

    None where one of the two was not probed. Conditions are compared on the items that all have.
    """
    if not {WORDS_ALONE, PICTURE_ALONE} <= probed.keys():
        return None
    runs = {"": plain, **probed}
    tables = {
        name: dict(zip((o.item.id for o in run), hits(run), strict=True))
        for name, run in runs.items()
    }
    groups = {outcome.item.id: outcome.item.group for outcome in plain}
    ids = [name for name in groups if all(name in table for table in tables.values())]
    if not ids:
        return None
    memes = [groups[name] for name in ids]
    both = [tables[""][n] and not (tables[WORDS_ALONE][n] or tables[PICTURE_ALONE][n]) for n in ids]
    figure = share("share", both, memes)
    rows = [share("accuracy", [tables[""][n] for n in ids], memes, "shown", "all of it")]
    for probe, label in NAMES.items():
        if probe in tables:
            held = [tables[probe][n] for n in ids]
            rows.append(share("accuracy", held, memes, "shown", label))
            lost = [float(tables[""][n]) - float(tables[probe][n]) for n in ids]
            rows.append(mean(lost, memes, "shown", f"{label}, lost", "difference"))
    value, top = figure.value or 0.0, rows[0].value or 0.0
    little = settle(value) < settle(_LITTLE * top)
    verdict, values = rank(bool(little) or top == 0), {"top": top, "value": value}
    return _WORDS.find(
        "needs.both", figure, verdict, values, task=task, model=model, rows=tuple(rows)
    )


def judge_memory(
    task: str, model: str, recalled: Mapping[str, Score], removed: Sequence[Outcome] = ()
) -> Finding | None:
    """What a model knows by heart; None where nothing was asked.

    Beside it what it answers with question and options alone (``removed``), which who has seen the
    data may know, too.
    """
    known = {probe: score for probe, score in recalled.items() if score.value is not None}
    if not known:
        return None
    most = max(known.values(), key=lambda score: score.value or 0.0)
    rows = [place(score, "memory", HEART.get(probe, probe)) for probe, score in known.items()]
    if removed:
        memes = [outcome.item.group for outcome in removed]
        rows.append(share("accuracy", hits(removed), memes, "memory", "question and options alone"))
    canary = known.get("memory=canary")
    told = canary is not None and canary.value == 1
    low = settle(most.value or 0.0 if most.low is None else most.low)
    figure = Score("share", most.value, most.n, most.low, most.high)
    verdict = rank(bool(low >= _SOME), broken=told or bool(low >= _MUCH))
    said = f" It knows {HEART['memory=canary']}." if told else ""
    values = {"said": said, "value": most.value}
    return _WORDS.find("memory", figure, verdict, values, task=task, model=model, rows=tuple(rows))
