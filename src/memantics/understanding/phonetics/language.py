"""Language models for Chinese words: the probability of a word after its predecessors.

There are three, from best to simplest: a trigram model (kenlm, with the model file of Debian's
``libime-data-language-model``), word frequencies with character transitions (wordfreq and
Pinyin2Hanzi), and jieba's word list. All scores are log10 probabilities.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module, resources
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from memantics.core.errors import InputError, MissingExtra, need_offline
from memantics.core.registry import home
from memantics.understanding.phonetics.pinyin import MAX_WORD, Distances
from memantics.understanding.phonetics.reading import ModelName

MODEL_FILE = "zh_CN.lm"
MODEL_VARIABLE = "MEMANTICS_ZH_LM"
_DEBIAN = Path("/usr/lib")
UNKNOWN = -7.0
_RAREST = 4e-8
_BOUND_LOW, _BOUND_HIGH = -1.5, 3.0
_UNSEEN = -1.0
_SHARE = 0.35


State = object  # state of a language model, such as the previous words


class LanguageModel:
    """Probabilities of words, alone and after other words.

    ``name`` appears in outputs, ``words`` is the vocabulary, and ``common`` has the log10
    probability of each word. ``transitions`` rate how well two characters follow each other, if
    known.
    """

    def __init__(
        self, name: str, words: Sequence[str], common: Sequence[float] | Distances
    ) -> None:
        self.name = name
        self.words = words
        self.common: Distances = np.asarray(common, dtype=np.float32)
        self.weights: Mapping[str, float] = {}
        self.transitions: Transitions | None = None

    def begin(self) -> State:
        """Return the state at the start of a sentence."""
        return ""

    def step(self, state: State, word: str) -> tuple[float, State]:
        """Return the word's score plus the transition score, and the next state."""
        score = self.weights.get(word, UNKNOWN)
        if self.transitions and isinstance(state, str) and state:
            score += _SHARE * self.transitions.rate(state, word[0])
        return score, word[-1]

    def end(self, state: State) -> float:  # noqa: ARG002 -- other models look at it
        """Return the score of ending the sentence; 0 for a model without context."""
        return 0.0

    def weigh(self, word: str) -> float:
        """Return the log10 probability of a word."""
        return self.weights.get(word, UNKNOWN)

    def join(self, first: str, second: str) -> float:
        """Return the log10 of a character pair's frequency relative to chance; 0 if unknown."""
        return self.transitions.rate(first, second) if self.transitions else 0.0


# One regular expression reads a vocabulary of some hundred thousand words quickly.
_WORD = rf"[〇\u4e00-\u9fff]{{1,{MAX_WORD}}}"
_VOCABULARY = re.compile(rf"(?<=\0){_WORD}(?=\0)")
_ENTRY = re.compile(rf"^({_WORD}) (\d+) ", re.MULTILINE)
_is_word = re.compile(_WORD).fullmatch


class TrigramModel(LanguageModel):
    """A word trigram model in kenlm's binary format that includes its vocabulary."""

    def __init__(self, path: Path) -> None:
        try:
            kenlm = import_module("kenlm")
        except ImportError as error:
            raise MissingExtra("trigram language models", "trigram") from error
        try:
            self._model = kenlm.Model(str(path))
            data = path.read_bytes()
        except (OSError, RuntimeError) as error:
            raise InputError(
                f"cannot read the language model {path}",
                hint="use a kenlm binary file, such as zh_CN.lm of libime-data-language-model",
            ) from error
        start = data.rfind(b"<unk>\0")
        tail = data[start:].decode("utf-8", errors="replace") if start >= 0 else ""
        words: Sequence[str] = _VOCABULARY.findall(tail)
        if not words:
            raise InputError(
                f"the language model {path} contains no Chinese vocabulary",
                hint="build it with kenlm's build_binary and keep the vocabulary",
            )
        self._state = kenlm.State
        self._score = self._model.BaseScore
        self._null, self._begin = kenlm.State(), kenlm.State()
        self._model.NullContextWrite(self._null)
        self._model.BeginSentenceWrite(self._begin)
        out = kenlm.State()
        scores = [self._score(self._null, word, out) for word in words]
        super().__init__("trigram", words, scores)
        self.weights = dict(zip(words, scores, strict=True))
        # Most word pairs are unseen; the model then scores each word alone.
        self.transitions = _find_transitions(words, self.common)

    def begin(self) -> State:
        """Return the state at the start of a sentence."""
        return self._begin

    def step(self, state: State, word: str) -> tuple[float, State]:
        """Return the score of a word in a state, and the next state."""
        out = self._state()
        return self._score(state, word, out), out

    def end(self, state: State) -> float:
        """Return the score of ending the sentence."""
        score: float = self._score(state, "</s>", self._state())
        return score


class FrequencyModel(LanguageModel):
    """Word frequencies, combined with character transitions if these are known."""

    def __init__(
        self, name: str, frequencies: Mapping[str, float], transitions: Transitions | None = None
    ) -> None:
        weights = {word: math.log10(share) for word, share in frequencies.items()}
        super().__init__(name, list(weights), list(weights.values()))
        self.weights, self.transitions = weights, transitions


def _load_frequencies() -> FrequencyModel:
    try:
        wordfreq = import_module("wordfreq")
        import_module("Pinyin2Hanzi")
    except ImportError as error:
        raise MissingExtra("word frequencies and transitions", "phonetics") from error
    table: Mapping[str, float] = wordfreq.get_frequency_dict("zh", wordlist="large")
    frequencies = {
        word: share for word, share in table.items() if share >= _RAREST and _is_word(word)
    }
    weights = np.log10(np.fromiter(frequencies.values(), dtype=np.float32, count=len(frequencies)))
    transitions = _find_transitions(list(frequencies), weights)
    return FrequencyModel("frequencies", frequencies, transitions)


class Transitions:
    """The log10 of how much more often two characters follow each other than by chance."""

    def __init__(
        self, rows: Mapping[str, Mapping[str, float]], single: Mapping[str, float]
    ) -> None:
        self._rows, self._single = rows, single
        self._known: dict[str, float] = {}  # cache with at most one entry per known pair

    def rate(self, first: str, second: str) -> float:
        """Return the bounded log ratio of a pair; unknown pairs get a fixed penalty.

        >>> table = Transitions({"合": {"理": 0.5}}, {"理": 0.005})
        >>> table.rate("合", "理"), table.rate("合", "鱼")
        (2.0, -1.0)
        """
        pair = first + second
        known = self._known.get(pair)
        if known is None:
            share = self._rows.get(first, {}).get(second, 0.0)
            if share <= 0 or second not in self._single:
                return _UNSEEN
            ratio = math.log10(share / self._single[second])
            known = self._known[pair] = min(max(ratio, _BOUND_LOW), _BOUND_HIGH)
        return known


def _find_transitions(words: Sequence[str], common: Distances) -> Transitions | None:
    """Load Pinyin2Hanzi's transitions and relate them to character frequencies in these words."""
    import orjson

    if find_spec("Pinyin2Hanzi") is None:
        return None
    codes = np.frombuffer("".join(words).encode("utf-32-le"), dtype=np.uint32)
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    sums = np.bincount(codes, weights=np.repeat(10.0 ** common.astype(np.float64), lengths))
    shares = sums / sums.sum()
    single = {chr(code): float(shares[code]) for code in np.flatnonzero(shares).tolist()}
    file = resources.files("Pinyin2Hanzi") / "data" / "hmm_transition.json"
    rows: Mapping[str, Mapping[str, float]] = orjson.loads(file.read_bytes())["data"]
    return Transitions(rows, single)


def _load_dictionary() -> FrequencyModel:
    # jieba is located without an import, which would take longer than reading its list.
    need_offline("jieba")
    spec = find_spec("jieba")
    assert spec is not None
    assert spec.origin is not None
    text = (Path(spec.origin).parent / "dict.txt").read_text(encoding="utf-8")
    counts = {word: int(count) for word, count in _ENTRY.findall(text)}
    total = sum(counts.values())
    return FrequencyModel("dictionary", {w: n / total for w, n in counts.items()})


def find_model_file() -> Path | None:
    """Find the trigram model: ``$MEMANTICS_ZH_LM``, the home folder, then Debian's path."""
    given = os.environ.get(MODEL_VARIABLE)
    if given:
        return Path(given).expanduser()
    ours = home() / "models" / MODEL_FILE
    if ours.is_file():
        return ours
    return next(iter(sorted(_DEBIAN.glob(f"*/libime/{MODEL_FILE}"))), None)


@cache
def load_model(name: ModelName = "auto", file: Path | None = None) -> LanguageModel:
    """Load a language model once per process.

    >>> load_model("dictionary").name
    'dictionary'
    """
    if name in ("auto", "trigram"):
        path = file or find_model_file()
        try:
            if path is not None:
                return TrigramModel(path)
        except MissingExtra:
            if name == "trigram" or file is not None:
                raise
        if name == "trigram":
            raise InputError(
                "no trigram language model was found",
                hint=f"apt install libime-data-language-model, or set {MODEL_VARIABLE} to a"
                f" {MODEL_FILE}",
            )
    if name in ("auto", "frequencies"):
        try:
            return _load_frequencies()
        except MissingExtra:
            if name == "frequencies":
                raise
    return _load_dictionary()
