"""Cost and quality of homophone readings: `python -m perf.phonetics [--harm] [--fit]`.

Costs are measured in a fresh process per language model. Quality needs the official data beside
the checkout; the harm stress test also scikit-learn and ToxiCN MM. The PunMemeCN paper reports
that models find fewer harmful memes if the harm is in a pun. Its harmful subsets are not released,
so the stress test makes its own pairs: harmful captions, and the same captions with words replaced
by homophones. ``--fit`` learns the weights
that ship from the groups outside the locked test set, and writes them into the package.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from memantics.core.errors import InputError, MemanticsError
from memantics.moderation.robustness import obfuscation
from memantics.understanding.phonetics.homophones import read_homophones
from memantics.understanding.phonetics.reading import ModelName, Settings

SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
PUNS = SHARED / "punmemecn"
TextJudge = Callable[[str], bool]
MODELS: tuple[ModelName, ...] = ("trigram", "frequencies", "dictionary")
_COST = """
import json, resource, sys, time
wall, cpu = time.perf_counter(), time.process_time()
from memantics.understanding.phonetics.reading import Settings
from memantics.understanding.phonetics.homophones import read_homophones
settings = Settings(model=sys.argv[1])
try:
    read_homophones("年年有鱼", settings=settings)
except Exception as error:
    print(json.dumps({"skipped": str(error)}))
    sys.exit()
first = time.perf_counter() - wall, time.process_time() - cpu
captions = ["鸭力山大", "好事成霜", "一路顺疯", "今天天气不错", "明天早上八点开会"] * 20
before = time.process_time()
for caption in captions:
    read_homophones(caption, settings=settings)
each = (time.process_time() - before) / len(captions)
before = time.process_time()
read_homophones("天上下着小雨我没有带伞" * 900, settings=settings)
long = time.process_time() - before
unsure = {place: {"天": 0.3, "无": 0.2, "像": 0.1} for place in range(120)}
lines = "\\n".join(["天上下着小雨我没有带伞", "今天天气不错啊", "明天早上八点开会", "一路顺疯了"])
before = time.process_time()
for _ in range(3):
    read_homophones(lines, settings=settings)
plain = (time.process_time() - before) / 3
few = {place: others for place, others in unsure.items() if place % 6 == 0}
some = {}
for name, own in (("few", few), ("all", unsure)):
    before = time.process_time()
    for _ in range(3):
        read_homophones(lines, settings=settings, alternatives=own)
    some[name] = (time.process_time() - before) / 3
before = time.process_time()
read_homophones("天上下着小雨我没有带伞" * 900, settings=settings, alternatives=unsure)
worst = time.process_time() - before
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
times = {"plain": plain, **some, "worst": worst}
print(json.dumps({"first": first, "each": each, "long": long, "peak": peak, "unsure": times}))
"""


def measure_costs(model: str) -> str:
    """Return one line of costs, from a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", _COST, model], capture_output=True, text=True, check=True
    )
    measurements = json.loads(done.stdout.splitlines()[-1])
    if "skipped" in measurements:
        return f"{model:<12} not measured: {measurements['skipped']}"
    wall, cpu = measurements["first"]
    return (
        f"{model:<12} first call {wall:.2f} s (CPU {cpu:.2f} s), "
        f"{1000 * measurements['each']:.1f} ms CPU each, "
        f"9,900 characters {1000 * measurements['long']:.0f} ms, peak"
        f" {measurements['peak']:.0f} MB\n"
        "four lines: "
        + ", ".join(
            f"{name} {1000 * seconds:.0f} ms" for name, seconds in measurements["unsure"].items()
        )
        + " (few: alternatives for every sixth character, all: for each; worst: 9,900 characters)"
    )


def measure_quality(model: str) -> str:
    """Return the figures of issue 7 on the official captions."""
    done = subprocess.run(
        [sys.executable, "-m", "memantics", "pun", "--evaluate", str(PUNS), "--lm", model],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout or done.stderr


def fit_shipped() -> None:
    """Learn the weights of all language models from the rest, and write them down."""
    from importlib.resources import files

    from memantics.models.embedded.encoder import SentenceEncoder
    from memantics.understanding.phonetics.homophones import load_lattice
    from research.data import read_puns
    from research.protocol import take_development_set
    from research.pun_weights import fit_readings, fit_weights

    samples = [row.content for row in take_development_set("punmemecn", read_puns())]
    encoder = SentenceEncoder()
    found = {m: fit_weights(samples, load_lattice(m, None), encoder.encode) for m in MODELS}
    text = json.dumps(found, indent=1)
    # The numbers of a sentence vector stand in one line.
    text = re.sub(r"\[[^]]*\]", lambda part: " ".join(part.group().split()), text)
    folder = Path(str(files("memantics.understanding.phonetics")))
    (folder / "weights.json").write_text(text + "\n", "utf-8")
    right = {model: fit_readings(samples, load_lattice(model, None)) for model in MODELS}
    (folder / "first_right.json").write_text(json.dumps(right, indent=1) + "\n", "utf-8")


def _is_short_chinese(text: str) -> bool:
    han = sum("\u4e00" <= character <= "\u9fff" for character in text)
    return 4 <= han <= 20 and han >= 0.8 * len(text)


@dataclass(frozen=True, slots=True)
class StressScores:
    """Recall on harmful captions: plain, obfuscated, and obfuscated with homophone readings.

    ``alarms_plain`` and ``alarms_read`` are false positive rates on harmless captions, without and
    with homophone readings.
    """

    recall_plain: float
    recall_obfuscated: float
    recall_read: float
    alarms_plain: float
    alarms_read: float
    count: int

    @property
    def drop(self) -> float:
        """Difference in recall between plain and obfuscated captions."""
        return self.recall_plain - self.recall_obfuscated

    @property
    def drop_with_readings(self) -> float:
        """Drop in recall that remains if homophone readings of the captions are also scored."""
        return self.recall_plain - self.recall_read


def classify_homophones(judge: TextJudge, settings: Settings | None = None) -> TextJudge:
    """Wrap a scorer so that it also scores the intended homophone reading."""
    chosen = settings or Settings()

    def verdict(caption: str) -> bool:
        if judge(caption):
            return True
        intended = read_homophones(caption, settings=chosen).intended
        return intended is not None and judge(intended.text)

    return verdict


def stress(
    judge: TextJudge,
    harmful: Sequence[tuple[str, str]],
    harmless: Sequence[str],
    settings: Settings | None = None,
) -> StressScores:
    """Measure recall on pairs of plain and obfuscated harmful captions.

    Obfuscated captions are scored with and without their homophone readings.

    Raises InputError if ``harmful`` is empty.
    """
    if not harmful:
        raise InputError(
            "the test with obfuscated texts needs harmful captions", hint="give at least one pair"
        )
    aloud = classify_homophones(judge, settings)

    def share(verdict: TextJudge, captions: Sequence[str]) -> float:
        return sum(map(verdict, captions)) / len(captions) if captions else 0.0

    hidden = [obfuscated for _, obfuscated in harmful]
    return StressScores(
        recall_plain=share(judge, [plain for plain, _ in harmful]),
        recall_obfuscated=share(judge, hidden),
        recall_read=share(aloud, hidden),
        alarms_plain=share(judge, harmless),
        alarms_read=share(aloud, harmless),
        count=len(harmful),
    )


def measure_harm(count: int = 300) -> StressScores:
    """Measure the recall of an n-gram classifier on captions obfuscated with homophones."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rows = json.loads((SHARED / "toxicn_mm" / "train_data_discription_2.0.json").read_bytes())
    random.Random(0).shuffle(rows)
    cut = len(rows) * 3 // 4
    pipeline = make_pipeline(
        TfidfVectorizer(analyzer="char", ngram_range=(1, 3), min_df=2, sublinear_tf=True),
        LogisticRegression(C=10, class_weight="balanced", max_iter=1000),
    )
    pipeline.fit([r["text"] for r in rows[:cut]], [r["label"] for r in rows[:cut]])

    def chance(text: str) -> float:
        return float(pipeline.predict_proba([text])[0, 1])

    held = [r for r in rows[cut:] if _is_short_chinese(r["text"].strip())]
    harmful = [r["text"].strip() for r in held if r["label"] == 1][:count]
    harmless = [r["text"].strip() for r in held if r["label"] == 0][:count]
    pairs = [(text, obfuscation(text, _find_triggers(text, chance))) for text in harmful]
    return stress(lambda text: chance(text) >= 0.5, pairs, harmless, Settings())


def _find_triggers(text: str, chance: Callable[[str], float]) -> list[str]:
    """Return the two words without which the judge is least alarmed: what a pun would hide."""
    import jieba

    jieba.setLogLevel("ERROR")
    words = [word for word in dict.fromkeys(jieba.cut(text)) if word.strip()]
    return sorted(words, key=lambda word: chance(text.replace(word, "")))[:2]


def main() -> None:
    """Print costs, and quality where the data are."""
    parser = argparse.ArgumentParser(prog="python -m perf.phonetics")
    parser.add_argument("--harm", action="store_true", help="also the stress test on ToxiCN MM")
    parser.add_argument("--fit", action="store_true", help="learn the weights that ship")
    given, _ = parser.parse_known_args()
    if given.fit:
        fit_shipped()
        return
    for model in MODELS:
        print(measure_costs(model))
    if PUNS.is_dir():
        for model in MODELS:
            print("\n" + measure_quality(model).rstrip())
    if given.harm:
        try:
            scores = measure_harm()
        except (MemanticsError, ImportError, OSError) as error:
            print(f"\nstress test not run: {error}")
            return
        print(
            f"\nharmful captions {scores.count}: recall plain {scores.recall_plain:.1%},"
            f" obfuscated {scores.recall_obfuscated:.1%} (drop {scores.drop:.1%}),"
            f" read aloud {scores.recall_read:.1%} (drop {scores.drop_with_readings:.1%});"
            f" false alarms {scores.alarms_plain:.1%}, read aloud {scores.alarms_read:.1%}"
        )


if __name__ == "__main__":
    main()
