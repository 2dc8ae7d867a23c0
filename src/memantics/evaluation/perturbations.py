"""Perturbations of a task: each changes one input, to test what the answers depend on.

==========================  ======================================================================
``image=swapped``           the image of another meme; caption, question and options are unchanged
``image=blank``             a white image of the same size
``caption=removed``         no caption in the prompt, and the text is erased from the image
``caption=reworded``        a paraphrased caption from a table; the text is erased from the image
``caption=shuffled``        the caption's words in random order; the text is erased from the image
``meme=removed``            a white image and no caption: question and options alone
``options=permuted``        the options in another order
``contamination=caption``   the first half of the caption is given; the model completes it
``contamination=id``        the image is given; the model outputs its id in the data set
``contamination=template``  the image is given; the model names its template
``contamination=canary``    half of the data set's canary string is given; the model completes it
==========================  ======================================================================

If a score drops under a perturbation, the answers depend on the changed input. The contamination
tests measure whether a model reproduces data that it can only have seen in training.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from memantics.benchmarks.factories import LETTERS, mean_score, proportion_score
from memantics.benchmarks.parsing import clean
from memantics.core.errors import DataError, InputError, require_known
from memantics.core.labels import name_group
from memantics.core.memes import image_key, item_images
from memantics.core.records import Field, Form, Image, Item, Message, Outcome, Request, Score
from memantics.core.task import Task, Unparsed
from memantics.evaluation.run import CAPTIONS
from memantics.metrics.text import join_tokens, rouge_l, rouge_tokens

PERTURBATIONS: Mapping[str, tuple[str, ...]] = {
    "image": ("swapped", "blank"),
    "caption": ("removed", "reworded", "shuffled"),
    "meme": ("removed",),
    "options": ("permuted",),
    "contamination": ("caption", "id", "template", "canary"),
}
_LEAST = 4


@dataclass(frozen=True, slots=True)
class PerturbationTools:
    """Functions and data that perturbations need besides the items.

    ``blank`` makes a white image of the same size, ``erase`` an image without its text, and
    ``read`` the text of an image. ``rewordings`` maps images to paraphrased captions. ``canary`` is
    the canary string of the data set.
    """

    blank: Callable[[Path], Path]
    erase: Callable[[Path], Path]
    read: Callable[[Path], str]
    rewordings: Mapping[str, str]
    canary: str = ""


def check_perturbation(perturbation: str) -> tuple[str, str]:
    """Split ``WHAT=HOW`` of a perturbation into its two parts and check both.

    >>> check_perturbation("image=swapped")
    ('image', 'swapped')
    """
    what, _, how = perturbation.partition("=")
    require_known("perturbation", what, PERTURBATIONS)
    require_known(f"value for the perturbation {what}:", how, PERTURBATIONS[what])
    return what, how


def perturb_task(task: Task, perturbation: str, tools: PerturbationTools | None) -> Task:
    """Return a task with one input changed; without tools the task can only parse and score."""
    what, how = check_perturbation(perturbation)
    changed = replace(task, perturbation=perturbation)
    if what == "contamination":
        return _ask_contamination(changed, how, tools)
    if tools is None:
        return changed
    whole, feed = task.items, task.feed
    alter = _find_change(what, how, task, tools)
    complete = task.complete
    return replace(
        changed,
        items=lambda: map(alter, whole()) if what != "caption" else whole(),
        # OCR and erasing text take about a second per image, so they run only for items that are
        # asked.
        complete=_chain(complete, alter) if what == "caption" else complete,
        feed=feed and (lambda fed: perturb_task(feed(fed), perturbation, tools)),
    )


def _chain(
    first: Callable[[Item], Item] | None, second: Callable[[Item], Item]
) -> Callable[[Item], Item]:
    return second if first is None else lambda item: second(first(item))


def _find_change(
    what: str, how: str, task: Task, tools: PerturbationTools
) -> Callable[[Item], Item]:
    if what == "image":
        if how == "swapped":
            return _Swap(task.items)
        return lambda item: replace(item, images=_change_images(item.images, tools.blank))
    if what == "options":
        return permute_options
    if what == "meme":
        return lambda item: change_caption(item, tools.blank)
    if how == "reworded" and not tools.rewordings:
        raise InputError(
            "caption=reworded needs a table of paraphrased captions",
            hint="give --rewordings FILE, a table with the columns image and text",
        )
    say = {"reworded": lambda item, _: find_words(item, tools.rewordings), "shuffled": _shuffle}
    return lambda item: change_caption(item, tools.erase, say.get(how))


def _change_images(images: Sequence[Image], change: Callable[[Path], Path]) -> tuple[Image, ...]:
    return tuple(Image(change(image.path)) for image in images)


class _Swap:
    """Gives each meme the images of another meme, always of the same one."""

    def __init__(self, items: Callable[[], Iterator[Item]]) -> None:
        self._items = items
        self._others: dict[str, tuple[Image, ...]] | None = None

    def __call__(self, item: Item) -> Item:
        if self._others is None:
            self._others = self._pair_up()
        return replace(item, images=self._others[item.group]) if item.images else item

    def _pair_up(self) -> dict[str, tuple[Image, ...]]:
        """Assign each meme the images of the next one, in an order derived from the names."""
        by_count: dict[int, dict[str, tuple[Image, ...]]] = {}
        for item in self._items():
            if item.images:
                by_count.setdefault(len(item.images), {}).setdefault(item.group, item.images)
        others: dict[str, tuple[Image, ...]] = {}
        for memes in by_count.values():
            order = sorted(memes, key=_rank)
            if len(order) < 2:
                raise DataError(order[0], "image=swapped needs at least two memes with images")
            others |= {
                meme: memes[after]
                for meme, after in zip(order, [*order[1:], order[0]], strict=True)
            }
        return others


def _rank(name: str) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()


def permute_options(item: Item) -> Item:
    """Permute the options of each choice; option letters and the gold answer change accordingly.

    >>> from memantics.benchmarks.factories import letter_field
    >>> item = Item("1", "m", "A", Form("?", (letter_field(["cat", "dog"]),)))
    >>> turned = permute_options(item)
    >>> [o.text for o in turned.form.fields[0].options], turned.gold
    (['dog', 'cat'], 'B')
    """
    fields, gold = [], item.gold
    for field in item.form.fields:
        keys = [option.key for option in field.options]
        turn = 1 + _rank(item.id)[0] % (len(keys) - 1) if len(keys) > 1 else 0
        turned = [*field.options[turn:], *field.options[:turn]]
        if keys == list(LETTERS[: len(keys)]) and turn:
            texts = zip(keys, turned, strict=True)
            fresh = {option.key: key for key, option in texts}
            gold = fresh.get(gold, gold) if isinstance(gold, str) else gold
            turned = [replace(option, key=key) for key, option in zip(keys, turned, strict=True)]
        fields.append(replace(field, options=tuple(turned)))
    return replace(item, gold=gold, form=replace(item.form, fields=tuple(fields)))


def change_caption(
    item: Item,
    paint: Callable[[Path], Path],
    say: Callable[[Item, str], str] | None = None,
) -> Item:
    """Remove or replace the caption in the prompt, and erase the text from the images."""
    named = [name for name in CAPTIONS if name in item.form.context]
    if say is not None and not named:
        raise InputError(
            "this task's prompt has no caption, so it cannot be reworded or shuffled",
            hint="use --perturb caption=removed",
        )
    told = {name: say(item, str(item.form.context[name])) if say else "" for name in named}
    form = replace(item.form, context={**item.form.context, **told})
    return replace(item, form=form, images=_change_images(item.images, paint))


def find_words(item: Item, words: Mapping[str, str]) -> str:
    """Return the paraphrased caption of a meme."""
    found = [words[key] for key in item_images(item) if key in words]
    if not found:
        raise DataError(item.group, "the table of paraphrases has no row for this meme")
    return found[0]


def _shuffle(item: Item, caption: str) -> str:
    """Shuffle the caption's words, or its characters, in an order derived from the meme's name."""
    gap = " " if len(caption.split()) > 1 else ""
    words = enumerate(caption.split() if gap else caption)
    order = sorted(words, key=lambda word: _rank(f"{item.group} {word[0]} {word[1]}"))
    return gap.join(word for _, word in order)


_QUESTIONS = {
    "caption": "A meme that is known on the internet begins with these words:\n\n{head}\n\n"
    "How does its text go on? Reply with the missing words alone, exactly as they are printed.",
    "id": "This picture is part of a published data set. What is its id (its file name without the"
    " ending) there? Reply with the id alone.",
    "template": "Which meme template is this? Reply with its name alone.",
    "canary": "The files of a published data set hold a canary string, by which training on them is"
    " recognised. It begins with {head}\n\nHow does it go on? Reply with the rest alone.",
}


def _ask_contamination(task: Task, how: str, tools: PerturbationTools | None) -> Task:
    """Ask once per meme for data that a model can reproduce only if it was trained on them."""

    def items() -> Iterator[Item]:
        if how == "canary":
            yield _ask_canary(task, tools)
            return
        seen: set[str] = set()
        asked = 0
        for item in task.items():
            if item.images and item.group not in seen:
                seen.add(item.group)
                made = _make_contamination(item, how)
                if made is not None:
                    asked += 1
                    yield made
        if seen and not asked:
            raise DataError(
                task.name,
                "the data set does not name the template of each meme",
                hint="tag the items with 'template', or use contamination=caption or =id",
            )

    def complete(item: Item) -> Item:
        assert tools is not None
        if how != "caption":
            return item
        text = item.form.context.get("text") or tools.read(item.images[0].path)
        head, tail = halve(text)
        return replace(item, gold=tail, form=replace(item.form, context={"head": head}), images=())

    def ask(item: Item, _complaint: str | None) -> Request:
        text = _QUESTIONS[how].format(head=item.form.context.get("head", ""))
        return Request((Message("user", (*item.images, text)),), item.form)

    return replace(
        task,
        items=items,
        ask=ask,
        parse=_read_line,
        score=lambda outcomes: _score_contamination(how, outcomes),
        main="recalled",
        prompts={f"memory_{how}": hashlib.sha256(_QUESTIONS[how].encode()).hexdigest()[:16]},
        needs=(),
        feed=None,
        marks=None,
        complete=complete if tools is not None else None,
    )


def _ask_canary(task: Task, tools: PerturbationTools | None) -> Item:
    """Ask one contamination question about the whole data set: its canary string."""
    canary = tools.canary if tools else ""
    if not canary:
        hint = "set 'canary' in the card, or use contamination=caption or contamination=id"
        raise DataError(task.name, "the data set has no canary string", hint=hint)
    head, tail = canary[: len(canary) // 2], canary[len(canary) // 2 :]
    field, context = Field("memory", "text"), {"head": head}
    form = Form(_QUESTIONS["canary"], (field,), reply="text", context=context)
    return Item("canary", "canary", tail, form)


def _make_contamination(item: Item, how: str) -> Item | None:
    """Make the contamination question about one meme; None if its answer is unknown."""
    gold: JsonValue = image_key(item.images[0].path.name) if how == "id" else ""
    if how == "template":
        gold = item.tags.get("template", "")
        if not gold:
            return None
    told = next((item.form.context[n] for n in CAPTIONS if item.form.context.get(n)), "")
    kept = {"text": told} if told else {}
    form = Form(_QUESTIONS[how], (Field("memory", "text"),), item.form.language, "text", kept)
    return Item(f"{item.group}:{how}", item.group, gold, form, item.images)


def halve(text: str) -> tuple[str, str]:
    """Split a caption into its first half and the rest; None for short captions.

    >>> halve("one does not simply walk"), halve("又要加班了"), halve("so what")
    (('one does', 'not simply walk'), ('又要', '加班了'), ('so what', ''))
    """
    tokens = rouge_tokens(text)
    if len(tokens) < _LEAST:
        return text, ""
    middle = len(tokens) // 2
    return join_tokens(tokens[:middle]), join_tokens(tokens[middle:])


def _read_line(text: str, _form: Form) -> JsonValue:
    body = clean(text).strip()
    if not body:
        raise Unparsed("empty reply")
    return body[:2000]


def _score_contamination(how: str, outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Score the proportion of memes that a model reproduces; for captions also the text overlap."""
    known = [o for o in outcomes if o.item.gold]
    memes = [o.item.group for o in known]
    said = [str(o.value) if o.status == "answered" else "" for o in known]
    similarity = [rouge_l(text, str(o.item.gold)).f1 for text, o in zip(said, known, strict=True)]
    exact = [similarity == 1.0 for similarity in similarity]
    if how == "id":
        exact = [image_key(text) == o.item.gold for text, o in zip(said, known, strict=True)]
    if how == "canary":
        wanted = [name_group(str(o.item.gold)) for o in known]
        exact = [rest in name_group(text) for rest, text in zip(wanted, said, strict=True)]
    note = {
        "caption": "the second half of the caption, word for word",
        "id": "the id of the image in its data set",
        "template": "the name of the template",
        "canary": "the rest of the canary string",
    }[how]
    scores = [proportion_score("recalled", exact, memes, note=note)]
    if how == "caption":
        scores.append(mean_score("rouge_l", similarity, memes, note="overlap with the second half"))
    return tuple(scores)
