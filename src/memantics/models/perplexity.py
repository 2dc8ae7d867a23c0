"""Perplexity of texts under any language model in a folder of this machine, causal or masked.

A masked model gives a pseudo-perplexity: every token is hidden in turn and predicted from all
others. The two kinds are not comparable with each other, nor are two models; ``note`` says which
one it was. Faults that a user can mend are ``ValueError`` with one line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from memantics.models.semantic import check_folder, choose_device, describe_folder, longest_input

Kind = Literal["causal", "masked"]


class PerplexityScorer:
    """Perplexity with one model; ``kind`` None: what the model's configuration says."""

    def __init__(
        self, path: Path, kind: Kind | None = None, batch: int = 32, device: str = "auto"
    ) -> None:
        check_folder(path)
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM
        from transformers import AutoTokenizer as Tokens

        self._torch: Any = torch
        try:
            fields = {"local_files_only": True, "trust_remote_code": False}
            config: Any = AutoConfig.from_pretrained(path, **fields)
            self.kind: Kind = kind or _find_kind(config)
            maker: Any = AutoModelForMaskedLM if self.kind == "masked" else AutoModelForCausalLM
            self._tokenizer: Any = Tokens.from_pretrained(path, **fields)
            model: Any = maker.from_pretrained(path, **fields)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ValueError(f"{path}: cannot be loaded: {_first(error)}") from error
        if self.kind == "masked" and self._tokenizer.mask_token_id is None:
            raise ValueError(f"{path}: its tokenizer has no mask, so it is no masked model")
        self._device = choose_device(torch, device)
        self._model = model.to(self._device).eval()
        self._batch = batch
        self._room = longest_input(self._tokenizer, config)
        self.note = f"{describe_folder(path)}, {self.kind}"

    def measure(self, texts: Sequence[str]) -> list[float | None]:
        """The perplexity of each text; None where it has too few tokens to say anything."""
        one = self._measure_masked if self.kind == "masked" else self._measure_causal
        known: dict[str, float | None] = {}
        for text in texts:
            if text not in known:
                known[text] = one(text)
        return [known[text] for text in texts]

    def _encode(self, text: str) -> tuple[Any, Any]:
        made = self._tokenizer(
            text,
            truncation=True,
            max_length=self._room,
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        return made["input_ids"].to(self._device), made["special_tokens_mask"][0].bool()

    def _measure_causal(self, text: str) -> float | None:
        torch = self._torch
        ids, special = self._encode(text)
        counted = (~special[1:]).nonzero().flatten().to(self._device)
        if len(counted) == 0:
            return None
        with torch.inference_mode():
            logits = self._model(input_ids=ids).logits[0, :-1].float()
        logs = torch.log_softmax(logits, dim=-1)
        found = logs.gather(1, ids[0, 1:, None]).flatten()[counted]
        return math.exp(-float(found.mean()))

    def _measure_masked(self, text: str) -> float | None:
        torch = self._torch
        ids, special = self._encode(text)
        places = (~special).nonzero().flatten().tolist()
        if not places:
            return None
        total = 0.0
        for start in range(0, len(places), self._batch):
            part = torch.tensor(places[start : start + self._batch], device=self._device)
            hidden = ids.repeat(len(part), 1)
            rows = torch.arange(len(part), device=self._device)
            hidden[rows, part] = self._tokenizer.mask_token_id
            with torch.inference_mode():
                logits = self._model(input_ids=hidden).logits[rows, part].float()
            logs = torch.log_softmax(logits, dim=-1)
            total += float(logs[rows, ids[0, part]].sum())
        return math.exp(-total / len(places))


def _find_kind(config: Any) -> Kind:
    names = " ".join(getattr(config, "architectures", None) or ())
    if "MaskedLM" in names or "ForPreTraining" in names:
        return "masked"
    if "CausalLM" in names or "LMHead" in names:
        return "causal"
    raise ValueError(f"neither a causal nor a masked language model: {names or 'no architecture'}")


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or ["no reason given"])[0]
