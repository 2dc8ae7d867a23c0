"""Writer of MER-Bench's format: the index of memes and goals, and edited images by editor."""

from __future__ import annotations

from collections.abc import Iterator

from memantics.benchmarks import writing
from memantics.core.data import inside
from memantics.core.errors import DataError
from memantics.core.queue import Review, Reviewed

PAIRS = {"sad": "happy", "angry": "calm", "tense": "relaxed", "bored": "excited"}
_COLUMNS = (
    "source_emotion",
    "target_emotion",
    "description",
    "rewritten",
    "plan",
    "visual_type",
    "polarity",
    "layout",
)

# Fields from which an edited image is generated.
_DRAWN = ("target_emotion", "rewritten", "plan")


def write_reappraisals(review: Review) -> writing.Made:
    """Return one row per meme with its reviewed values, and the image by every editor."""
    memes = writing.gather_memes(review)
    rows: list[writing.Record] = []
    table: list[writing.Record] = []
    files: writing.Files = {}
    for reviewed, meme in writing.walk_kept(review, memes):
        values = {name: writing.take_text(reviewed, name) for name in _COLUMNS}
        if PAIRS.get(values["source_emotion"]) != values["target_emotion"]:
            pair = f"{values['source_emotion']} to {values['target_emotion']}"
            raise DataError(
                reviewed.item.id,
                f"{pair} is not a valid pair of emotions",
                hint="correct it in the review",
            )
        _check_pictures(reviewed, values)
        rows.append(_row(meme, values))
        table.append({"meme": meme.id, **values})
        for editor, image in _list_edits(reviewed):
            edited = writing.read_png(inside(review.folder, image))
            files[f"EditedResults/{editor}/{meme.file}"] = edited
    return writing.Made(
        "mer_bench",
        ("judge",),
        tuple(memes.values()),
        {"index_final.json": writing.pack(rows)} | files,
        {"reappraisals": table},
    )


def _check_pictures(reviewed: Reviewed, values: dict[str, str]) -> None:
    """Raise an error if a person revised a meme's caption or plan after its images were made."""
    revised = [
        name for name in _DRAWN if reviewed.item.values.get(name, values[name]) != values[name]
    ]
    if revised and reviewed.item.hidden.get("edits"):
        raise DataError(
            reviewed.item.id,
            f"a person revised {' and '.join(revised)}, but the images show the draft",
            hint="run 'memantics build regenerate BUILD', then annotate the new queue",
        )


def _row(meme: writing.PublishedMeme, values: dict[str, str]) -> writing.Record:
    return {
        "id": meme.file,
        "det_emo": values["source_emotion"],
        "img_desc": values["description"],
        "pos_txt": values["rewritten"],
        "spec": values["plan"],
        "tgt_emo": values["target_emotion"],
        "gen_id": meme.file,
        "text": meme.text,
        "visual_type": values["visual_type"],
        "sentiment_polarity": values["polarity"],
        "layout_type": f"{values['layout']}_Meme",
    }


def _list_edits(reviewed: Reviewed) -> Iterator[tuple[str, str]]:
    edits = reviewed.item.hidden.get("edits", {})
    if not isinstance(edits, dict):
        raise DataError(reviewed.item.id, "'edits' is not a table of images by editor")
    for editor, image in edits.items():
        if not isinstance(image, str):
            raise DataError(reviewed.item.id, f"the image of {editor!r} is not a file name")
        yield editor, image


WRITER = writing.Writer(write_reappraisals)
