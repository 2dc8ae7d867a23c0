"""Letter segmentation: pixels of a caption's letters, nearby punctuation, and box borders.

Letters have colours that the surroundings lack. Punctuation that OCR misses belongs to the caption;
a border belongs to the image and is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from memantics.core.lines import TextLine
from memantics.metrics.rounding import settle
from memantics.understanding.vision.colours import Mask, Pixels, find_mode
from memantics.understanding.vision.regions import CaptionBlock, PixelBox, enclose, has_chinese
from memantics.understanding.vision.typefaces import (
    ANTON,
    BALOO,
    BLACK,
    REGULAR,
    Typeface,
    measure_stroke,
)

_PLAIN = 40  # maximum difference of a colour channel (0 to 255) within one background
# maximum difference of a colour channel (0 to 255) between a punctuation mark and the letters
_ALIKE = 80
# search distance and maximum gap of punctuation marks, relative to the line height
_REACH, _GAP = 1.3, 0.55
_WIDEST = 0.62
_LONG, _TALL = 2.6, 1.6  # maximum stroke length, relative to the line height
_THIN = 0.16
_HEIGHT = 36  # line height in pixels at which letters are compared: large enough, and fast
_PADS_DOWN = (0.02, 0.09, 0.16, 0.23)  # margin of loose OCR boxes, relative to the box height
_PADS_ACROSS = (0.0, 0.08, 0.16, 0.26)
Plane = NDArray[np.float32]
Shade = NDArray[np.int64]
FLAT = 24  # maximum difference of a colour channel (0 to 255) within one colour, also in a JPEG
_LABEL, _LETTERS = 0.5, 0.7  # minimum proportions of background and letters in a label's lines
_ENRICHED = 1.7
_MATCH = 0.22  # minimum match of the drawn text with the image; lower values occur by chance


def take_in_marks(
    pixels: Pixels, block: CaptionBlock, others: Iterable[PixelBox] = ()
) -> CaptionBlock:
    """Add nearby punctuation to a caption on a plain background."""
    if block.vertical:
        return block
    apart = list(others)
    lines = []
    for line in block.lines:
        marks = find_marks(pixels, line, [*apart, *(text_line.box for text_line in block.lines)])
        lines.append(replace(line, box=enclose([line.box, *marks])) if marks else line)
    return replace(block, lines=tuple(lines))


def find_marks(pixels: Pixels, line: TextLine, others: Sequence[PixelBox] = ()) -> list[PixelBox]:
    """Find small marks in the letters' colour just beside a line at the same height."""
    import cv2

    left, top, right, bottom = line.box
    high, reach = bottom - top, round(_REACH * (bottom - top))
    x, y = max(0, left - reach), max(0, top)
    crop = pixels[y : max(0, bottom), x : max(0, right + reach)]
    inner = crop[:, max(0, left - x) : right - x]
    if high < 8 or not inner.size:
        return []
    ground, colour = _tell_apart(inner)
    ring = np.concatenate([crop[:, : left - x].reshape(-1, 3), crop[:, right - x :].reshape(-1, 3)])
    if not len(ring) or colour is None or _share_near(ring, ground, _PLAIN) < 0.6:
        return []
    ink = _near(crop, colour, _ALIKE) & ~_near(crop, ground, _PLAIN)
    _, _, stats, _ = cv2.connectedComponentsWithStats(ink.astype(np.uint8), connectivity=8)
    found: list[PixelBox] = []
    edges = (left, right)
    for a, b, wide, tall, area in sorted(stats[1:].tolist(), key=lambda component: -component[0]):
        box = (x + a, y + b, x + a + wide, y + b + tall)
        aside = box[2] <= left + 2 or box[0] >= right - 2
        # Components that extend beyond the strip are objects; full-height ones are bubble sides.
        cut = a == 0 or a + wide == crop.shape[1] or tall == crop.shape[0]
        if aside and not cut and wide <= _WIDEST * high and area >= 0.004 * high * high:
            found.append(box)
    return [box for box in _chain(found, edges, _GAP * high) if not _touches(box, others, line)]


def _tell_apart(inner: Pixels) -> tuple[tuple[int, int, int], tuple[int, int, int] | None]:
    """Return the background colour of a line (its most frequent one) and the letters' colour."""
    flat = inner.reshape(-1, 3)
    ground = find_mode(flat)
    rest = flat[np.abs(flat.astype(np.int16) - np.array(ground)).max(axis=1) > _ALIKE]
    return ground, find_mode(rest) if len(rest) >= 0.03 * len(flat) else None


def _near(crop: Pixels, colour: tuple[int, int, int], within: int) -> Mask:
    near: Mask = np.abs(crop.astype(np.int16) - np.array(colour)).max(axis=-1) <= within
    return near


def _share_near(colours: Pixels, colour: tuple[int, int, int], within: int) -> float:
    return float(_near(colours, colour, within).mean())


def _chain(boxes: Sequence[PixelBox], edges: tuple[int, int], gap: float) -> list[PixelBox]:
    """Return the punctuation marks that follow a text line without a wide gap."""
    kept, (start, end) = [], edges
    for box in sorted((box for box in boxes if box[0] >= end - 2), key=lambda box: box[0]):
        if box[0] - end <= gap:
            kept.append(box)
            end = max(end, box[2])
    for box in sorted((box for box in boxes if box[2] <= start + 2), key=lambda box: -box[2]):
        if start - box[2] <= gap:
            kept.append(box)
            start = min(start, box[0])
    return kept


def _touches(box: PixelBox, others: Sequence[PixelBox], line: TextLine) -> bool:
    return any(
        other != line.box
        and min(box[2], other[2]) > max(box[0], other[0])
        and min(box[3], other[3]) > max(box[1], other[1])
        for other in others
    )


def find_borders(ink: Mask, height: float) -> Mask:
    """Find straight lines longer than any letter stroke, and thin frames around letters."""
    import cv2

    plane = ink.astype(np.uint8)
    borders: Mask = np.zeros(ink.shape, bool)
    thin = max(2, round(_THIN * height)) + 1
    borders |= _find_rules(ink, max(12, round(_LONG * height)), thin)
    borders |= _find_rules(ink.T, max(12, round(_TALL * height)), thin).T
    count, parts, stats, middles = cv2.connectedComponentsWithStats(plane, connectivity=8)
    for component in range(1, count):
        left, top, wide, high, area = (int(value) for value in stats[component])
        if area > 0.35 * wide * high or high < height or wide < 2 * height:
            continue
        x, y = middles[1:, 0], middles[1:, 1]
        held = (x > left) & (x < left + wide) & (y > top) & (y < top + high)
        held[component - 1] = False
        inner = stats[1:, cv2.CC_STAT_AREA][held]
        if inner.sum() >= 0.5 * (plane.sum() - area) > 0 and held.sum() >= 2:
            borders |= parts == component
    return borders


def _find_rules(ink: Mask, long: int, thin: int) -> Mask:
    """Find rows of ink that are longer and thinner than letters and free on both sides.

    Rows where letter outlines join are also long and thin, but letters touch them.
    """
    import cv2

    kernel = np.ones((1, long), np.uint8)
    runs = cv2.morphologyEx(ink.astype(np.uint8), cv2.MORPH_OPEN, kernel)
    padded = np.pad(ink, ((thin, thin), (0, 0)))
    free = ~padded[: -2 * thin] & ~padded[2 * thin :]
    count, parts, stats, _ = cv2.connectedComponentsWithStats(runs, connectivity=8)
    clear = np.bincount(parts[free], minlength=count) / np.maximum(1, stats[:, cv2.CC_STAT_AREA])
    good = (clear >= 0.7) & (stats[:, cv2.CC_STAT_HEIGHT] <= thin)
    good[0] = False
    rules: Mask = good[parts]
    return rules


def lay_text(crop: Pixels, text: str, box: PixelBox) -> tuple[float, Mask]:
    """Draw a text into its box as in the image; return the match (0 to 1) and the letters' mask."""
    body: Mask = np.zeros(crop.shape[:2], bool)
    left, top = max(0, box[0]), max(0, box[1])
    cut = crop[top : box[3], left : box[2]]
    if min(cut.shape[:2]) < 6 or not text.strip():
        return 0.0, body
    scale = min(1.0, _HEIGHT / cut.shape[0])
    size = (max(8, round(cut.shape[1] * scale)), max(6, round(cut.shape[0] * scale)))
    small = Image.fromarray(cut).convert("L").resize(size, Image.Resampling.BOX)
    plane = _normalise(np.asarray(small, np.float32))
    best: tuple[float, Typeface | None, tuple[float, float]] = (0.0, None, (0.0, 0.0))
    for face in (REGULAR, BLACK) if has_chinese(text) else (ANTON, BALOO, REGULAR):
        for down in _PADS_DOWN:
            for across in _PADS_ACROSS:
                drawn = _normalise(_draw(text, face, size, (across, down)))
                quality = abs(float((plane * drawn).mean()))
                if quality > best[0]:
                    best = (quality, face, (across, down))
    quality, chosen, pads = best
    if chosen is not None:
        whole = (cut.shape[1], cut.shape[0])
        body[top : box[3], left : box[2]] = _draw(text, chosen, whole, pads) > 150
    return quality, body


def _normalise(plane: Plane) -> Plane:
    spread = float(plane.std())
    return np.asarray((plane - plane.mean()) / spread if spread > 1e-3 else plane * 0, np.float32)


def _draw(text: str, face: Typeface, size: tuple[int, int], pads: tuple[float, float]) -> Plane:
    """Draw a text stretched to a box with margins relative to the box height."""
    width, height = size
    across, down = round(pads[0] * height), round(pads[1] * height)
    inner = (max(4, width - 2 * across), max(4, height - 2 * down))
    plane = np.zeros((height, width), np.float32)
    pulled = np.asarray(_plate(text.strip(), face).resize(inner, Image.Resampling.BOX), np.float32)
    x, y = (width - inner[0]) // 2, (height - inner[1]) // 2
    plane[max(0, y) : y + inner[1], max(0, x) : x + inner[0]] = pulled[:height, :width]
    return plane


@lru_cache(maxsize=64)
def _plate(text: str, face: Typeface) -> Image.Image:
    font = face.at(64)
    left, top, right, bottom = (int(value) for value in font.getbbox(text))
    plate = Image.new("L", (max(1, right - left), max(1, bottom - top)))
    ImageDraw.Draw(plate).text((-left, -top), text, font=font, fill=255)
    return plate


def find_letters(
    crop: Pixels, inside: Mask, around: Mask, lines: Sequence[tuple[str, PixelBox]]
) -> tuple[Mask, Shade | None, Mask]:
    """Find the letters of a caption: ``inside`` marks its lines, ``around`` the surroundings.

    ``lines`` are the OCR texts with their boxes in the crop. The second value is the letter colour
    if it was determined, the third the borders of boxes.
    """
    ring = crop[around] if around.any() else crop[~inside]
    found, shade = _find_on_plain(crop, ring), None
    if found is None and (label := _find_on_label(crop, inside)) is not None:
        letters = _keep_letters(label, inside)
        return letters, None, label & ~letters
    if found is None:
        found, shade = _find_on_picture(crop, inside, ring, lines)
    alike = found
    if shade is not None:
        # On an image only pixels near letters were found, hence only parts of a border.
        alike = found | (np.abs(crop.astype(np.int16) - shade).max(axis=2) <= 60)
    borders = find_borders(alike, _find_line_height(lines, float(inside.any(axis=1).sum())))
    return _keep_letters(_fill_hollows(crop, found & ~borders), inside), shade, borders


def _find_on_plain(crop: Pixels, ring: Pixels) -> Mask | None:
    """Find letters on a plain background; None if the background is not plain."""
    if not len(ring):
        return None
    middle = np.median(ring, axis=0)
    gaps = np.abs(ring.astype(np.int16) - middle).max(axis=1)
    if (gaps <= FLAT).mean() < 0.93:
        return None
    limit = float(np.clip(np.percentile(gaps, 90) + 10, 12, 2 * FLAT))
    found: Mask = np.abs(crop.astype(np.int16) - middle).max(axis=2) > limit
    return found


def _find_on_label(crop: Pixels, inside: Mask) -> Mask | None:
    """Find letters on a label or in a bubble with two colours; None if there are more."""
    colours = crop[inside]
    shares = _spread(colours // 8)
    ground = np.array(np.unravel_index(int(shares.argmax()), shares.shape)) * 8 + 4
    gaps = np.abs(colours.astype(np.int16) - ground).max(axis=1)
    rest = colours[gaps > 3 * FLAT]
    if (gaps <= FLAT).mean() < _LABEL or len(rest) < 0.04 * len(colours):
        return None
    shares = _spread(rest // 8)
    colour = np.array(np.unravel_index(int(shares.argmax()), shares.shape)) * 8 + 4
    if (np.abs(rest.astype(np.int16) - colour).max(axis=1) <= 2 * FLAT).mean() < _LETTERS:
        return None
    found: Mask = np.abs(crop.astype(np.int16) - ground).max(axis=2) > FLAT
    return found


def _find_on_picture(
    crop: Pixels, inside: Mask, ring: Pixels, lines: Sequence[tuple[str, PixelBox]]
) -> tuple[Mask, Shade | None]:
    """Find letters on an image: thin strokes in one exact colour.

    The colour is found by aligning the drawn text, else by frequency and thinness of each colour.
    Adjacent colours that the surroundings lack are added: outlines and shadows.
    """
    import cv2

    coarse = (crop // 8).astype(np.int32)
    keys = coarse[..., 0] * 1024 + coarse[..., 1] * 32 + coarse[..., 2]
    within, without = _spread(keys[inside]), _spread(ring // 8)
    height = float(inside.any(axis=1).sum())
    best, letters, shade = 0.0, np.zeros(inside.shape, bool), None
    for peak in _find_peaks(within):
        colour = np.array(peak) * 8 + 4
        near = np.abs(crop.astype(np.int16) - colour).max(axis=2) <= 30
        gain = min(8.0, within[peak] / (without[peak] + 0.01))
        rest = crop[inside & ~near]
        clear = np.abs(np.median(rest, axis=0) - colour).max() / 255 if len(rest) else 0.0
        score = _judge_letters(near, inside, height) * gain * (0.2 + clear)
        if score > best:
            best, letters, shade = score, near, colour
    laid = _find_by_shape(crop, inside, lines)
    if laid is not None:
        letters, shade = laid
    enriched = (within >= 0.004) & (within >= _ENRICHED * (without + 0.004))
    reach = 2 * max(2, round(0.1 * _find_line_height(lines, height))) + 1
    beside = cv2.dilate((letters & inside).astype(np.uint8), np.ones((reach, reach), np.uint8)) > 0
    extra: Mask = enriched.reshape(-1)[keys] & beside
    behind = _find_behind(crop, inside & ~beside)
    if behind is not None and shade is not None:
        # The background of bubbles and labels also differs from the surroundings.
        gaps = np.abs(crop.astype(np.int16) - behind).max(axis=2)
        from_shade = np.abs(crop.astype(np.int16) - shade).max(axis=2)
        extra &= gaps > FLAT
        letters = letters & (from_shade < gaps)
    return letters | extra, shade


def _find_line_height(lines: Sequence[tuple[str, PixelBox]], height: float) -> float:
    return min((min(box[3] - box[1], box[2] - box[0]) for _, box in lines), default=height)


def _find_behind(crop: Pixels, where: Mask) -> Shade | None:
    """Return the single colour between letters; None if there are several."""
    if where.sum() < 30:
        return None
    between = crop[where]
    shares = _spread(between // 8)
    colour = np.array(np.unravel_index(int(shares.argmax()), shares.shape)) * 8 + 4
    near = np.abs(between.astype(np.int16) - colour).max(axis=1) <= 16
    return colour if near.mean() >= 0.5 else None


def _find_by_shape(
    crop: Pixels, inside: Mask, lines: Sequence[tuple[str, PixelBox]]
) -> tuple[Mask, Shade] | None:
    """Find pixels of the letters' colour near the drawn text; None if nothing matches."""
    import cv2

    found: Mask = np.zeros(inside.shape, bool)
    colour: Shade = np.zeros(3, np.int64)
    for text, box in lines:
        quality, body = lay_text(crop, text, box)
        if quality < _MATCH or not body.any():
            return None
        colour = _find_gain(crop, body, box)
        near = np.abs(crop.astype(np.int16) - colour).max(axis=2) <= 44
        reach = 2 * max(2, round(0.09 * (box[3] - box[1]))) + 1
        beside = cv2.dilate(body.astype(np.uint8), np.ones((reach, reach), np.uint8)) > 0
        found |= near & beside
    return (found, colour) if found.any() else None


def _find_gain(crop: Pixels, body: Mask, box: PixelBox) -> Shade:
    """Return the colour that is most specific to the letters' positions."""
    line = np.zeros(body.shape, bool)
    line[max(0, box[1]) : box[3], max(0, box[0]) : box[2]] = True
    gain = _spread(crop[body] // 8) - _spread(crop[line & ~body] // 8)
    return np.array(np.unravel_index(int(gain.argmax()), gain.shape)) * 8 + 4


def _find_peaks(shares: NDArray[np.float64]) -> list[tuple[int, int, int]]:
    """Return the most frequent colours (in bins of 8) that are not neighbours."""
    peaks: list[tuple[int, int, int]] = []
    for key in np.argsort(settle(shares), axis=None, kind="stable")[::-1][:2000]:
        red, green, blue = (int(part) for part in np.unravel_index(key, shares.shape))
        if shares[red, green, blue] < 0.02 or len(peaks) >= 8:
            break
        if all(max(abs(red - p[0]), abs(green - p[1]), abs(blue - p[2])) > 4 for p in peaks):
            peaks.append((red, green, blue))
    return peaks


def _judge_letters(near: Mask, inside: Mask, height: float) -> float:
    """Rate how letter-like the pixels of one colour are: thin, and along all lines."""
    letters: Mask = np.logical_and(near, inside)
    share = letters.sum() / max(1, inside.sum())
    if not 0.04 <= share <= 0.62:
        return 0.0
    rows, columns = inside.any(axis=1), inside.any(axis=0)
    # OCR boxes are loose, so strokes need not reach their edges.
    along = min(1.0, float(np.max(letters, axis=0)[columns].mean()) / 0.7)
    down = min(1.0, float(np.max(letters, axis=1)[rows].mean()) / 0.55)
    thin = measure_stroke(letters) / max(1.0, height)
    return float((along * down) ** 2 * np.exp(-max(0.0, thin - 0.12) * 14))


def _fill_hollows(crop: Pixels, ink: Mask) -> Mask:
    """Add areas enclosed by ink, unless they look like the background."""
    import cv2

    open_ground = ~ink
    count, parts, stats, _ = cv2.connectedComponentsWithStats(
        open_ground.astype(np.uint8), connectivity=4
    )
    if count <= 2:
        return ink
    largest = int(stats[1:, cv2.CC_STAT_AREA].argmax()) + 1
    outer = set(np.unique(np.concatenate([parts[0], parts[-1], parts[:, 0], parts[:, -1]])))
    area = np.maximum(1, stats[:, cv2.CC_STAT_AREA])
    means = np.stack(
        [
            np.bincount(parts.reshape(-1), crop[..., i].reshape(-1), minlength=count) / area
            for i in range(3)
        ],
        axis=1,
    )
    ground = np.median(crop[parts == largest], axis=0)
    hollow = np.abs(means - ground).max(axis=1) > 14
    hollow[list(outer)] = False
    hollow[[0, largest]] = False
    filled: Mask = ink | hollow[parts]
    return filled


def _spread(colours: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return a histogram of colours in bins of 8, smoothed over neighbouring bins."""
    keys = colours
    if colours.ndim == 2:
        wide = colours.astype(np.int32)
        keys = wide[:, 0] * 1024 + wide[:, 1] * 32 + wide[:, 2]
    cube = np.bincount(keys.reshape(-1), minlength=32768).reshape(32, 32, 32).astype(np.float64)
    for axis in range(3):
        padded = np.pad(cube, [(1, 1) if each == axis else (0, 0) for each in range(3)])
        low, middle, high = (np.take(padded, range(i, i + 32), axis=axis) for i in range(3))
        cube = low + middle + high
    shares: NDArray[np.float64] = cube / max(1, keys.size)
    return shares


def _keep_letters(whole: Mask, inside: Mask) -> Mask:
    """Drop components that are mostly outside the caption's lines."""
    import cv2

    count, parts, stats, _ = cv2.connectedComponentsWithStats(
        whole.astype(np.uint8), connectivity=8
    )
    held = np.bincount(parts[inside], minlength=count)
    area = stats[:, cv2.CC_STAT_AREA]
    good = held >= 0.6 * area
    good[0] = False
    kept: Mask = good[parts] & inside
    # A letter that touches an object shares its component: keep the part inside.
    if kept.sum() < 0.35 * (whole & inside).sum():
        return whole & inside
    return kept
