"""How much of a wanted text a reply holds. Texts are any sequences: characters or syllables."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Hashable, Sequence


def plain(text: str) -> str:
    """Letters, digits and Chinese characters only; width and case folded.

    >>> plain("好巧， ＯＫ！")
    '好巧ok'
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isalnum())


def longest_run(wanted: Sequence[Hashable], found: Sequence[Hashable]) -> int:
    """The length of the longest run that both have.

    >>> longest_run("藕遇啊", "好巧，藕遇")
    2
    """
    best = 0
    before = [0] * (len(found) + 1)
    for one in wanted:
        now = [0] * (len(found) + 1)
        for place, other in enumerate(found, 1):
            if one == other:
                now[place] = before[place - 1] + 1
                best = max(best, now[place])
        before = now
    return best


def run_share(wanted: Sequence[Hashable], found: Sequence[Hashable]) -> float:
    """The longest common run as a share of what is wanted.

    >>> run_share("藕遇啊呀", "藕遇")
    0.5
    """
    return longest_run(wanted, found) / len(wanted) if wanted else 1.0


def recall(wanted: Sequence[Hashable], found: Sequence[Hashable]) -> float:
    """The share of the wanted elements that are found, each as often as it is wanted.

    >>> recall("哈哈哈啊", "哈哈呀")
    0.5
    """
    both = Counter(wanted) & Counter(found)
    return both.total() / len(wanted) if wanted else 1.0
