"""A tuned vision-language model as a detector: its folder opened, examples in, predictions out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import orjson
from pydantic import TypeAdapter, ValidationError

from memantics.core.errors import InputError, StoreError, first_fault
from memantics.detector.examples import Example
from memantics.detector.fast import Prediction
from memantics.detector.lora.judging import ADAPTER, open_adapter
from memantics.detector.lora.judging import FACTS as TUNED
from memantics.detector.lora.wording import TuningCase, Wording


@dataclass(frozen=True, slots=True)
class LoraJudge:
    """A vision-language model with the adapter that ``detector tune --question harm`` made."""

    model: Any
    card: Mapping[str, Any]
    sees_images: ClassVar[bool] = True
    reads_texts: ClassVar[bool] = True

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction per example, in order; a reply without a verdict is an error here."""
        cases = [TuningCase(e.id, e.id, False, e.text, "", e.image) for e in examples]
        verdicts = self.model.judge(cases)
        silent = [verdict.id for verdict in verdicts if verdict.said is None]
        if silent:
            raise InputError(
                f"{len(silent)} replies hold no verdict, the first is on meme {silent[0]}",
                hint="leave these memes out, or tune with --style caption",
            )
        return [
            Prediction(v.id, int(v.said), float(v.said) if v.score is None else v.score, None, {})
            for v in verdicts
        ]


def open_lora(folder: Path, base: Path | None) -> LoraJudge:
    """Open what ``detector tune --question harm`` made; ``base`` where its model has moved."""
    try:
        facts = orjson.loads((folder / TUNED).read_bytes())
        if "task" in facts["wording"]:
            raise InputError(
                f"{folder} was tuned for {facts['wording']['task']}, not to tell harm",
                hint=f"memantics run {facts['wording']['task']} --model detector/{folder}",
            )
        said = {name: facts["wording"][name] for name in ("question", "style", "language")}
        said |= {n: facts["wording"][n] for n in ("text", "said") if n in facts["wording"]}
        wording = TypeAdapter(Wording).validate_python(said)
        settings = orjson.loads((folder / ADAPTER / "adapter_config.json").read_bytes())
        model = base or Path(settings["base_model_name_or_path"])
        pixels = int(facts["tuning"]["max_pixels"])
    except ValidationError as error:
        raise StoreError(f"{folder / TUNED} is damaged: {first_fault(error)}") from error
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"{folder} is no whole tuned model: {error!r}"[:200], hint="tune it again"
        ) from error
    if wording.question != "harm":
        raise InputError(
            f"{folder} was tuned to tell puns, not harm", hint="tune with --question harm"
        )
    return LoraJudge(open_adapter(model, folder / ADAPTER, wording, pixels), facts)
