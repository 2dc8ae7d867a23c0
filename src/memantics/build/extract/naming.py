"""Names of individuals: short, safe, and different where people see a difference."""

from __future__ import annotations

import unicodedata

from memantics.core.text import clean_line

LONGEST = 60
# Letters of other scripts that look like Latin ones. Folding them makes no spelling wrong: it
# only tells when two names would look the same, or which listed name a reference means.
_LOOKALIKES = str.maketrans(
    "авекмнорстухіјѕԁһⅼοανρτυκіԛԝ",
    "abekmhopctyxijsdhloavptukiqw",
)


def make_name(text: str) -> str:
    """An identifier from what a model wrote: letters, digits and marks of any script.

    >>> make_name("  Grumpy Cat (left)! "), make_name("键盘 1"), make_name("../..//")
    ('grumpy_cat_left', '键盘_1', '')
    """
    folded = unicodedata.normalize("NFKC", clean_line(text, 400)).casefold()
    kept = "".join(c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in folded)
    return "_".join(kept.split())[:LONGEST].strip("_")


def fold_lookalikes(name: str) -> str:
    """What a name looks like: letters borrowed from other scripts become the Latin ones.

    >>> fold_lookalikes("саt") == fold_lookalikes("cat")
    True
    """
    return unicodedata.normalize("NFKC", name).casefold().translate(_LOOKALIKES)


class Names:
    """The names given so far in one dimension; a name that looks taken gets a number.

    >>> names = Names()
    >>> [names.give("cat"), names.give("cat"), names.give("саt"), names.give("")]
    ['cat', 'cat_2', 'саt_3', 'unnamed']
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self.renamed = 0

    def give(self, name: str) -> str:
        """The name itself if it is free, else with the first free number."""
        base = name or "unnamed"
        given, number = base, 1
        while fold_lookalikes(given) in self._taken:
            number += 1
            given = f"{base}_{number}"
        self.renamed += given != base
        self._taken.add(fold_lookalikes(given))
        return given
