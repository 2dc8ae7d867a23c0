"""Make the fonts of this folder from freely licensed originals. Needs fonttools and brotli.

``python -m sample_data.fonts.subset FOLDER`` where FOLDER holds the originals named in ``SOURCES``:
the two Latin ones come with the npm packages ``@fontsource/anton`` and ``@fontsource/baloo-2``, the
Chinese one with the Debian package ``fonts-noto-cjk-extra``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fontTools import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
    subset,
    ttLib,
)

HERE = Path(__file__).resolve().parent
SOURCES = {
    "Anton-Regular.ttf": ("anton-latin-400-normal.woff2", -1),
    "Baloo2-Bold.ttf": ("baloo-2-latin-700-normal.woff2", -1),
    "NotoSansSC-Black-subset.otf": ("NotoSansCJK-Black.ttc", 2),
}
LATIN = "".join(map(chr, range(0x20, 0x7F))) + "’‘“”…–—°×•é"
CHINESE_MARKS = "，。！？、；：（）《》【】“”‘’…—～·「」＋－×÷＝％"


def list_characters() -> str:
    """All of GB2312 (both levels), its marks, and ASCII."""
    rows = (bytes((high, low)) for high in range(0xB0, 0xF8) for low in range(0xA1, 0xFF))
    found = (row.decode("gb2312", errors="ignore") for row in rows)
    return "".join(found) + CHINESE_MARKS + LATIN


def cut(source: Path, number: int, target: Path, text: str) -> None:
    """Write the part of a font that draws ``text``, without layout features we do not use."""
    options = subset.Options()
    options.layout_features = ["kern"]
    options.hinting = False
    options.desubroutinize = False
    options.name_IDs = [0, 1, 2, 4, 6, 13, 14]
    options.notdef_outline = True
    font = (
        subset.load_font(str(source), options)
        if number < 0
        else ttLib.TTFont(str(source), fontNumber=number)
    )
    font.flavor = None
    cutter = subset.Subsetter(options)
    cutter.populate(text=text)
    cutter.subset(font)
    font.save(str(target))


def main(folder: Path) -> None:
    """Cut all fonts."""
    for name, (source, number) in SOURCES.items():
        text = LATIN if number < 0 else list_characters()
        cut(folder / source, number, HERE / name, text)
        print(f"{name}: {(HERE / name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
