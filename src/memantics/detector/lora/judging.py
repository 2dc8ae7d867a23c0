"""What a model says of memes: by the likelier of two words, or by what it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from memantics.detector.lora.cases import Case
from memantics.detector.lora.conversation import Conversation, Rendered
from memantics.detector.lora.wording import Wording
from memantics.detector.neural.packages import get_torch
from memantics.metrics.classification import count_binary, f1, macro_f1, tnr, tpr
from memantics.models.chat import move


@dataclass(frozen=True, slots=True)
class Verdict:
    """One meme's verdict; None where a reply held none. ``score`` is the chance of yes."""

    id: str
    gold: bool
    said: bool | None
    score: float | None = None
    reply: str = ""


@dataclass(frozen=True, slots=True)
class Rates:
    """Recall of both classes, F1 of the positive one and macro-F1; None where undefined.

    A reply without a verdict is a miss of its class: it is counted, never guessed.
    """

    tpr: float | None
    tnr: float | None
    f1: float | None
    macro_f1: float | None
    memes: int
    unparsed: int


class Judge:
    """A model that is asked about memes, in batches, without dropout and always alike."""

    def __init__(self, model: Any, conversation: Conversation, wording: Wording) -> None:
        self._model, self._conversation, self._wording = model, conversation, wording

    def judge(self, cases: Sequence[Case], batch: int = 8, longest: int = 160) -> list[Verdict]:
        """A verdict for each case, in order."""
        was_training = self._model.training
        self._model.eval()
        found: list[Verdict] = []
        with get_torch().inference_mode():
            for start in range(0, len(cases), batch):
                part = cases[start : start + batch]
                found += self._write(part, longest) if self._writes else self._weigh(part)
        self._model.train(was_training)
        return found

    @property
    def _writes(self) -> bool:
        return self._wording.style == "reasons"

    def _weigh(self, cases: Sequence[Case]) -> list[Verdict]:
        """The likelier of the two words: always a verdict, and a score with it."""
        torch = get_torch()
        rows = [self._conversation.render(case) for case in cases]
        columns = [
            self._log_chances([replace(row, answer=word) for row in rows])
            for word in self._wording.words
        ]
        chances = torch.softmax(torch.stack(columns, -1), -1)[:, 1].tolist()
        return [
            Verdict(case.id, case.label, chance > 0.5, chance)
            for case, chance in zip(cases, chances, strict=True)
        ]

    def _log_chances(self, rows: Sequence[Rendered]) -> Any:
        """How likely each answer is behind its question: the sum over its tokens."""
        batch = move(self._conversation.encode_lessons(rows), self._model)
        losses, places = token_losses(self._model, batch)
        return losses.new_zeros(len(rows)).index_add(0, places, -losses)

    def _write(self, cases: Sequence[Case], longest: int) -> list[Verdict]:
        inputs = self._prepare(cases)
        length = inputs["input_ids"].shape[1]
        tokenizer = self._conversation.tokenizer
        found = self._model.generate(
            **inputs,
            max_new_tokens=longest,
            do_sample=False,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
        replies = [self._conversation.decode(row) for row in found[:, length:].tolist()]
        return [
            Verdict(case.id, case.label, self._wording.read(reply), None, reply)
            for case, reply in zip(cases, replies, strict=True)
        ]

    def _prepare(self, cases: Sequence[Case]) -> dict[str, Any]:
        rows = [self._conversation.render(case) for case in cases]
        return move(self._conversation.encode_prompts(rows), self._model)


def token_losses(network: Any, batch: dict[str, Any]) -> tuple[Any, Any]:
    """The loss of every answer's token, and the row that each belongs to.

    Only the logits in front of answers are brought to full precision: a vocabulary has a hundred
    thousand words, and a question with an image hundreds of tokens.
    """
    torch = get_torch()
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    wanted = batch["labels"][:, 1:]
    kept = wanted != -100
    logits = network(**inputs).logits[:, :-1][kept].float()
    losses = torch.nn.functional.cross_entropy(logits, wanted[kept], reduction="none")
    return losses, kept.nonzero()[:, 0]


def rate(verdicts: Sequence[Verdict]) -> Rates:
    """Rates of verdicts; of a part without positives only the other recall is defined.

    >>> rate([Verdict("a", False, False), Verdict("b", False, None)]).tnr
    0.5
    """
    gold = [verdict.gold for verdict in verdicts]
    counts = count_binary(gold, [verdict.said for verdict in verdicts], positive=True)
    both = len(set(gold)) == 2
    return Rates(
        tpr(counts),
        tnr(counts),
        f1(counts) if both else None,
        macro_f1(counts) if both else None,
        len(verdicts),
        sum(verdict.said is None for verdict in verdicts),
    )
