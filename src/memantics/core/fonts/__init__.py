"""Fonts that ship with the package, for captions and for Chinese text in HTML pages.

Browsers on servers and in containers often have no Chinese font and would show empty boxes.
"""

from __future__ import annotations

import base64
import re
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
CHINESE = FOLDER / "NotoSansSC-Regular-subset.otf"
_SIGNS = re.compile("[\u2e80-\ua4cf\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]")


def embed_chinese(page: str) -> str:
    """Return a CSS rule with glyphs for the Chinese characters of a page; empty if there are none.

    Without the extra ``offline`` the rule is empty too, and the browser uses its own fonts.

    >>> embed_chinese("no Chinese here"), embed_chinese("中文")[:10]
    ('', '@font-face')
    """
    signs = "".join(sorted(set(_SIGNS.findall(page))))
    if not signs or find_spec("fontTools") is None:
        return ""
    from fontTools import subset

    options = subset.Options(flavor="woff", layout_features=[], hinting=False, notdef_outline=True)
    cutter = subset.Subsetter(options)
    cutter.populate(text=signs)
    made = BytesIO()
    with subset.load_font(str(CHINESE), options) as font:
        cutter.subset(font)
        subset.save_font(font, made, options)
    glyphs = base64.b64encode(made.getvalue()).decode("ascii")
    return (
        '@font-face { font-family: "Chinese of Memantics"; font-display: swap; '
        "unicode-range: U+2E80-A4CF, U+F900-FAFF, U+FE30-FE4F, U+FF00-FFEF; "
        f"src: url(data:font/woff;base64,{glyphs}); }}\n"
    )
