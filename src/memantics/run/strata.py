"""Which items a limited run asks: in turn one of each language and kind, always the same ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memantics.core.language import read_script
from memantics.core.records import Item

# The names under which forms hold what is printed on a meme.
CAPTIONS = ("text", "caption")
# The tag of items that ask the same question about the same meme again, under another seed.
TURN = "turn"
_TOLD = (*CAPTIONS, "source_caption")
Stratum = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The ids of the chosen items, and by what they were chosen: names of tags, else ``meme``."""

    ids: frozenset[str]
    spread: str


def choose(
    items: Iterable[Item], limit: int, kinds: Sequence[str], languages: Sequence[str] = ()
) -> Chosen | None:
    """The items of a limited run; None where they are the first ones.

    An item's stratum is its language, where the benchmark's card names several, and its ``kinds``
    (tags). The tag ``language`` tells it, else the script of the caption or question. Every
    stratum gives one item, then every stratum a second one, and so on until there are ``limit``;
    one that has no more is passed over. Within a stratum items come meme by meme, in the order of
    the data. A question that is asked again under another seed (tag ``turn``) comes after all that
    are asked for the first time: else few memes would be asked often. Gold answers play no part.
    Nothing is drawn at random, and a larger limit only adds items.

    >>> from memantics.core.records import Form
    >>> items = [Item(f"{n}", f"{n}", "", Form("", ()), tags={"kind": k}) for n, k in
    ...          enumerate("aaaab")]
    >>> chosen = choose(items, 3, ["kind"])
    >>> sorted(chosen.ids), chosen.spread
    (['0', '1', '4'], 'kind')
    >>> choose(items, 5, ["kind"]), choose(items, 3, [])
    (None, None)
    """
    ids: list[str] = []
    meme_of: list[int] = []
    stratum_of: list[int] = []
    memes: dict[str, int] = {}
    strata: dict[Stratum, int] = {}
    repeats: list[int] = []
    seen: Counter[tuple[int, int]] = Counter()
    for item in items:
        ids.append(item.id)
        meme_of.append(memes.setdefault(item.group, len(memes)))
        stratum = _find_stratum(item, kinds, languages)
        stratum_of.append(strata.setdefault(stratum, len(strata)))
        about = meme_of[-1], stratum_of[-1]
        repeats.append(seen[about] if TURN in item.tags else 0)
        seen[about] += 1
    turns, taken = _order_turns(strata), Counter[tuple[int, int]]()
    keys: list[tuple[int, int, int, int]] = []
    for place in sorted(range(len(ids)), key=meme_of.__getitem__):
        number = stratum_of[place]
        line = repeats[place], number
        if taken[line] < limit:
            keys.append((repeats[place], taken[line], turns[number], place))
            taken[line] += 1
    order = [place for *_, place in sorted(keys)[:limit]]
    if not order or max(order) < limit:
        return None
    names = ("language", *kinds)
    varied = [name for name, *values in zip(names, *strata, strict=True) if len({*values}) > 1]
    return Chosen(frozenset(ids[place] for place in order), ", ".join(varied) or "meme")


def _order_turns(strata: Mapping[Stratum, int]) -> list[int]:
    """The turn of each stratum: languages alternate, else few items might be of one alone."""
    seen: Counter[str] = Counter()
    languages: dict[str, int] = {}
    keys: list[tuple[int, int]] = []
    for language, *_ in strata:
        keys.append((seen[language], languages.setdefault(language, len(languages))))
        seen[language] += 1
    ranks = {key: turn for turn, key in enumerate(sorted(keys))}
    return [ranks[key] for key in keys]


def _find_stratum(item: Item, kinds: Sequence[str], languages: Sequence[str]) -> Stratum:
    language = ""
    if len(languages) > 1:
        context = item.form.context
        told = next((context[name] for name in _TOLD if context.get(name)), item.form.question)
        language = item.tags.get("language") or read_script(told)
    # A few stray captions in another language make no stratum.
    text = language if language in languages else ""
    return (text, *(item.tags.get(kind, "") for kind in kinds))
