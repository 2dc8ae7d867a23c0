"""From replies to classes. A reply that denies what it names is no answer."""

from __future__ import annotations

from collections.abc import Mapping

from memantics.benchmarks.toxicn_mm import wording
from memantics.core.records import Form
from memantics.core.task import Unparsed
from memantics.tasks.parse import clean, parse_label, parse_letter


def find_conclusion(text: str, reasons: str) -> str:
    r"""The part of a reply that holds the conclusion, where reasons were asked for.

    >>> find_conclusion("有害\n没有无害的意思", "last"), find_conclusion("有害", "none")
    ('有害', '有害')
    >>> find_conclusion("要是无害……\n结论：有害", "first")
    '结论:有害'
    """
    if reasons == "none":
        return text
    lines = [line for line in clean(text).splitlines() if line.strip()]
    if not lines:
        return text
    if reasons == "last":
        return lines[0]
    marked = [line for line in lines if "结论" in line or "conclusion" in line.casefold()]
    # A model may write the conclusion below its heading.
    return "\n".join(lines[lines.index(marked[-1]) :]) if marked else lines[-1]


def parse_verdict(text: str) -> str:
    """Harmful or harmless, as the conclusion of a reply names it.

    >>> parse_verdict("分析：话里没有脏字。结论：有害"), parse_verdict("It is not harmful.")
    ('harmful', 'harmless')
    >>> parse_verdict("It can hardly be called harmful")
    Traceback (most recent call last):
    memantics.core.task.Unparsed: the reply denies the label that it names
    """
    return parse_label(text, wording.VERDICT_ALIASES, {wording.HARMFUL: wording.HARMLESS})


def parse_type(text: str, form: Form) -> str:
    """The type of harm, by its letter or, where there is none, by its name.

    >>> from memantics.tasks.choices import letter_field
    >>> form = Form("?", (letter_field(["targeted", "offence", "sexual", "gloom", "harmless"]),))
    >>> parse_type("B。话里带刺", form), parse_type("性暗示", form)
    ('offence', 'sexual')
    """
    known = {option.key: option.text for option in form.fields[0].options}
    try:
        return wording.LETTERS[parse_letter(text, known)]
    except Unparsed:
        return parse_label(text, wording.TYPE_ALIASES)


def parse_target(text: str, form: Form) -> str:
    """The target, by its name; a target that was not offered is no answer.

    >>> from memantics.core.records import Field, Option
    >>> form = Form("?", (Field("target", "choice", (Option("地域", "地域"),)),))
    >>> parse_target("针对的是地域。", form)
    'region'
    """
    offered = {option.key for option in form.fields[0].options}
    known = {name: names for name, names in wording.TARGET_ALIASES.items() if offered & set(names)}
    return parse_label(text, known)


def parse_strictly(text: str, keys: Mapping[str, str]) -> str:
    """The class whose key is the whole reply, whatever its case and final mark.

    >>> parse_strictly(" Harmful. ", {"harmful": "harmful", "harmless": "harmless"})
    'harmful'
    """
    body = clean(text).strip(" \n.。!\"'“”").casefold()
    for key, name in keys.items():
        if body == key.casefold():
            return name
    raise Unparsed(f"reply is not one of {', '.join(keys)}")
