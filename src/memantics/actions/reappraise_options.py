"""Options of reappraising and of every action that edits images, with their flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from memantics.actions.desk import AskingOptions, Watch
from memantics.core.parameters import Flag, ImagePath, TextTaken
from memantics.models.embedded.ocr import RememberingOcr
from memantics.reappraise.planner import NAME as EMBEDDED
from memantics.reappraise.records import Target
from memantics.reappraise.workshop import StageReview

BEST_OF = 3


class EditingOptions(AskingOptions, total=False):
    """Who plans (``model``: KIND/NAME, or our lexicon, a baseline) and how an editor is reached.

    ``best_of`` is how many plans a model makes in one call, of which the best by our checks is
    taken; 1 asks for a single plan, as MER-Bench's authors do. ``mood`` False: a model
    that sees is not asked whether faces go with the new captions. ``face`` lets a generative editor
    repaint faces alone: places (``X,Y,W,H`` in pixels), ``model``, or the file of a YuNet detector.
    ``text`` is which lines of a picture are captions and may be rewritten: what their roles say, or
    all. ``progress`` is told how far it is.
    """

    model: Annotated[
        str,
        Flag("Who plans: KIND/NAME, or our lexicon, a baseline.", "--model -m", default=EMBEDDED),
    ]
    best_of: Annotated[
        int,
        Flag(
            "Plans that a model makes in one call; the best by our checks is taken. 1: as the"
            " authors of MER-Bench ask.",
            min=1,
            max=8,
            default=BEST_OF,
        ),
    ]
    mood: Annotated[
        bool,
        Flag("Ask the model whether faces go with the new captions: a call.", default=True),
    ]
    face: Annotated[
        Sequence[str],
        Flag(
            "Let --editor repaint faces alone: X,Y,W,H in pixels (may be repeated), 'model' to ask"
            " --model, or the file of a YuNet detector (.onnx).",
            metavar="WHERE",
        ),
    ]
    text: TextTaken
    editor_url: Annotated[
        str | None, Flag("Address of an image-edit server. Default: OPENAI_BASE_URL.")
    ]
    editor_params: Annotated[
        Mapping[str, str], Flag("A setting of the editor.", "--editor-param", metavar="NAME=VALUE")
    ]
    progress: Watch | None


class ReappraiseOptions(EditingOptions, total=False):
    """Options of :func:`reappraise`.

    ``target`` is the new emotion (default: the counterpart of the meme's own); ``editor`` who
    repaints: none, embedded, openai-images/NAME or diffusers/PATH; ``sticker`` lets the embedded
    one add a drawing; ``out`` is where the folders of the memes go; ``force`` turns memes around,
    too, in which our words find nothing negative; ``versions`` is how many are wanted that pass
    every check, with a contact sheet; ``choose`` takes one by its number (0: back to the best), and
    keeps that as a preference; ``review`` sees each stage and may correct it; ``ocr`` reads the
    captions, where one is loaded already.
    """

    target: Annotated[
        Target | None,
        Flag("The new emotion. Default: the counterpart of the meme's own."),
    ]
    editor: Annotated[
        str,
        Flag(
            "Who repaints: none (captions only), embedded (light and colours), "
            "openai-images/NAME or diffusers/PATH.",
            "--editor -e",
            default="none",
        ),
    ]
    out: Annotated[ImagePath, Flag("Where the folders of the memes go.", default="reappraised")]
    sticker: Annotated[
        bool | None,
        Flag("Embedded editor: add a sticker. Default: no.", "--sticker/--no-sticker"),
    ]
    force: Annotated[
        bool, Flag("Turn memes around in which our words find nothing negative.", default=False)
    ]
    versions: Annotated[
        int,
        Flag("Versions that pass all checks, on a contact sheet.", min=1, max=8, default=1),
    ]
    choose: Annotated[
        int | None,
        Flag("Take this version of the contact sheet; 0 takes the choice back.", min=0, max=16),
    ]
    review: StageReview | None
    ocr: RememberingOcr | None
