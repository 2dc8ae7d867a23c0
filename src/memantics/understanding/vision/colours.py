"""Colours of letters: their fill, and their outline if there is one.

The colour deepest inside the ink is the fill; a colour that surrounds it is the outline.
Anti-aliased edges have colours between letters and background, and are neither.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Colour = tuple[int, int, int]
_COLOURS = 4
_SAMPLE = 6000
_DISTINCT = 90.0
_SEED = 20240501


def tell_colours(
    crop: Pixels, ink: Mask, ground: Colour, shade: NDArray[np.int64] | None = None
) -> tuple[Colour, Colour, float]:
    """Measure fill colour, outline colour and outline width (0: no outline) of letters.

    ``shade`` is the approximate fill colour, if known.
    """
    import cv2

    if ink.sum() < 8:
        return (0, 0, 0), (0, 0, 0), 0.0
    depth = cv2.distanceTransform(np.pad(ink.astype(np.uint8), 1), cv2.DIST_L2, 3)[1:-1, 1:-1]
    rim = _measure_rim(ink)
    found, centres = _cluster(crop[ink])
    labels = np.full(ink.shape, -1, np.intp)
    labels[ink] = found
    counts = np.bincount(found, minlength=len(centres))
    depths = np.bincount(found, depth[ink], minlength=len(centres)) / np.maximum(1, counts)
    main = [i for i, count in enumerate(counts) if count >= 0.18 * ink.sum()]
    main = main or [int(counts.argmax())]
    colours = {i: find_mode(crop[labels == i]) for i in main}
    whole = [
        i
        for i in main
        if not any(_is_soft_edge(colours[i], colours[j], ground) for j in main)
        and int(np.abs(np.subtract(colours[i], ground)).max()) > 12
    ] or main
    deepest = max(whole, key=lambda i: float(depths[i]))
    if shade is not None:
        told = min(main, key=lambda i: float(np.abs(np.subtract(colours[i], shade)).max()))
        # Exception: if the given colour surrounds an equally frequent colour, it is the outline.
        held = _share_beside(_find_edge(labels == deepest, ink), ink & (labels != deepest))
        if counts[deepest] < counts[told] or held < 0.7:
            deepest = told
    fill = colours[deepest]
    for other in sorted(whole, key=lambda i: -counts[i]):
        colour = colours[other]
        unseen = int(np.abs(np.subtract(colour, ground)).max()) <= 30
        if unseen or float(np.linalg.norm(np.subtract(fill, colour))) < _DISTINCT:
            continue
        edge = _find_edge(labels == deepest, ink)
        around = _share_beside(edge, ink & (labels != deepest))
        width = float(np.percentile(rim[edge], 20)) if edge.any() else 0.0
        # Outlines of neighbouring letters merge; the width is visible only at the border of the
        # caption.
        if around >= 0.6 and width >= 1.2:
            return fill, colour, width
    return fill, (0, 0, 0), 0.0


def _measure_rim(ink: Mask) -> NDArray[np.float32]:
    """Measure each pixel's distance from the outside of the ink, ignoring holes in letters."""
    import cv2

    whole = np.pad(ink.astype(np.uint8), 1)
    contours, _ = cv2.findContours(whole, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    filled = cv2.drawContours(np.zeros_like(whole), contours, -1, 1, -1)
    return np.asarray(cv2.distanceTransform(filled, cv2.DIST_L2, 3)[1:-1, 1:-1], np.float32)


def _cluster(colours: Pixels) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Reduce ink pixels to a few colours; return a label per pixel and the colours."""
    import cv2

    flat = colours.astype(np.float32)
    sample = np.ascontiguousarray(flat[:: max(1, len(flat) // _SAMPLE)])
    count = min(_COLOURS, len(np.unique(sample.astype(np.uint8) // 8, axis=0)), len(sample))
    cv2.setRNGSeed(_SEED)  # fixed seed: the same image must give the same ink
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 12, 1.0)
    _, _, centres = cv2.kmeans(
        sample, count, np.empty((0, 1), np.int32), criteria, 2, cv2.KMEANS_PP_CENTERS
    )
    gaps = np.stack([((flat - centre) ** 2).sum(axis=1) for centre in centres])
    labels: NDArray[np.intp] = gaps.argmin(axis=0)
    return labels, np.asarray(centres, np.float32)


def _is_soft_edge(colour: Colour, letters: Colour, ground: Colour) -> bool:
    """Tell whether a colour is an anti-aliased edge between letters and background."""
    away, span = np.subtract(colour, letters).astype(float), np.subtract(ground, letters)
    length = float(span @ span)
    if float(np.linalg.norm(away)) < 20 or length < 1600:
        return False
    share = float(away @ span) / length
    return float(np.linalg.norm(away - share * span)) < 45 and 0 < share < 0.85


def find_mode(colours: Pixels) -> Colour:
    """Return the most frequent colour after rounding, averaged over its bin."""
    coarse = (colours // 16).astype(np.int32)
    keys = coarse[:, 0] * 256 + coarse[:, 1] * 16 + coarse[:, 2]
    best = np.bincount(keys).argmax()
    red, green, blue = colours[keys == best].mean(axis=0).round().astype(int)
    # Compression turns white into 253 and black into 3.
    snapped = [0 if v <= 14 else 255 if v >= 241 else int(v) for v in (red, green, blue)]
    pure = all(v in (0, 255) for v in snapped)
    return (snapped[0], snapped[1], snapped[2]) if pure else (int(red), int(green), int(blue))


def _find_edge(body: Mask, ink: Mask) -> Mask:
    import cv2

    body8 = (body & ink).astype(np.uint8)
    inner = cv2.erode(body8, np.ones((3, 3), np.uint8))
    edge: Mask = (body8 > 0) & (inner == 0)
    return edge


def _share_beside(edge: Mask, other: Mask) -> float:
    import cv2

    near = cv2.dilate(other.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    return float((edge & near).sum() / max(1, edge.sum()))
