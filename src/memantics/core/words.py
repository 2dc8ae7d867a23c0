"""Words of texts whose script has no spaces."""

from __future__ import annotations

import logging
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jieba import Tokenizer


def cut_chinese(text: str) -> list[str]:
    """The words of a Chinese text, with everything that stands between them.

    >>> cut_chinese("我们去公园。")
    ['我们', '去', '公园', '。']
    """
    return list(_load_cutter().cut(text))


@lru_cache(maxsize=1)
def _load_cutter() -> Tokenizer:
    with warnings.catch_warnings():
        # Its own source warns when it is compiled; that is not the user's concern.
        warnings.simplefilter("ignore")
        import jieba

    jieba.setLogLevel(logging.WARNING)
    # A cutter of our own: users' words added to the global one must not change what we find.
    cutter = jieba.Tokenizer()
    # Its own way keeps a cache in the shared temporary folder, where anybody may put another one;
    # reading the list afresh takes no longer.
    cutter.FREQ, cutter.total = cutter.gen_pfdict(cutter.get_dict_file())
    cutter.initialized = True
    return cutter
