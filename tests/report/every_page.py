"""Every kind of self-contained page, made from sample data in one language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from memantics.construction.collect.collect import render_page as render_collection
from memantics.construction.collect.gather import CollectSettings, gather
from memantics.construction.pairs.check import FailingPair, PairCheck
from memantics.core.records import Score
from memantics.core.samples import image_path
from memantics.evaluation.audit import AuditSettings, audit
from memantics.evaluation.data_page import DatasetProfile, Duplicates, LabelCounts
from memantics.evaluation.judging.open_items import OpenItem
from memantics.evaluation.judging.page import JudgeComparison, JudgeFinding
from memantics.evaluation.paper import paper
from memantics.moderation.card import SAMPLE_NOTE
from memantics.moderation.decisions.log import DecisionLog
from memantics.moderation.decisions.verbs import summarise_decisions
from memantics.moderation.drift import COLUMNS, drift
from memantics.moderation.evaluation import evaluate
from memantics.moderation.examples import Loaded
from memantics.moderation.explanation import explain
from memantics.moderation.fast import fit
from memantics.moderation.heads import find_preset
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.pages import summarize, write_evaluation, write_explanation, write_summary
from memantics.moderation.policies.pages import PolicyTest
from memantics.moderation.policies.scores import PolicyComparison, PolicyRun
from memantics.moderation.robustness import Evasion, Leakage, Robustness
from memantics.moderation.verdict import Verdict, make_verdict_schema
from memantics.understanding.kb import read_sample_knowledge
from memantics.understanding.knowledge.page import write_page
from memantics.understanding.reappraisal.messages import say
from memantics.understanding.reappraisal.records import (
    EditChecks,
    Flaw,
    KinderVersion,
    ReappraisalPlan,
)
from memantics.understanding.reappraisal.workshop import Reappraisal
from memantics.understanding.versions import show_versions
from memantics.web.phrases import PageLanguage
from memantics.workbench.analyze import Analyses, analyze
from tests.construction.collect.pictures import ScriptedReader, draw, save
from tests.moderation.decisions.test_log import fill
from tests.moderation.samples import make_examples

Maker = Callable[[Path, PageLanguage], object]


def make_detector_pages(out: Path, language: PageLanguage) -> None:
    """An evaluation with all sections, and an explanation."""
    plain = make_examples(60)
    trained = fit(plain, find_preset("ridge"))
    examples = [
        replace(one, label=1 - int(one.label or 0), type=None, image=image_path("en-001"))
        if place % 7 == 0
        else one
        for place, one in enumerate(plain)
    ]
    loaded = Loaded("toy", tuple(examples), licence="CC0", checksum="0" * 64, sample=True)
    report = Robustness(
        (Evasion("spaces", 9, 0.5, 0.3, 0.7, 0.4), Evasion("homophones", 9, 0.5, 0.3, 0.7, 0.4)),
        Leakage(1, 60, 0.7, 0.6),
    )
    found = evaluate(examples, trained.held_out)
    said = trained.held_out
    write_evaluation(out, "toy", loaded, said, found, report, language=language)
    why = explain(trained.detector, examples[0])
    place = out.with_name(f"explanation-{language}.html")
    write_explanation(place, examples[0], why, sample=True, language=language)


def make_screening(out: Path, language: PageLanguage) -> None:
    """Verdicts of every status, with review reasons, homophones and a template."""
    import pyarrow as pa

    made = [
        Verdict(id=f"m{chance}", status="scored", label="harmful" if chance > 0.9 else "harmless",
                type=kind, probability=chance, text="text of the meme", language="en",
                detector="d", phash="0" * 16, template_cluster="t1",
                readings=("另一种读法",) if chance > 0.9 else ())
        for chance, kind in ((0.05, "none"), (0.5, "general offense"), (0.99, "targeted harm"))
    ]  # fmt: skip
    reasons = ("the text is empty", "no text was found in the image")
    made += [
        Verdict(id=f"e{place}", status="not_scored", reason=reason, detector="d")
        for place, reason in enumerate(reasons)
    ]
    rows = [one.to_row() for one in made]
    table = pa.Table.from_pylist(rows, schema=make_verdict_schema())
    found = summarize([table], {"0" * 16: "0" * 16}, OperatingPoint(0.85, (0.3, 0.5)))
    facts = {"detector": "d", "threshold": 0.85, "note": SAMPLE_NOTE}
    write_summary(replace(found, outside=2), facts, out, language)


def _write_screened(folder: Path, detector: str, rows: int, **values: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(rows):
        row = dict.fromkeys(COLUMNS) | {"id": str(number), "status": "scored", "text": "a text"}
        lines.append(orjson.dumps(row | {"detector": detector, **values}))
    (folder / "sample-1.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return folder


def make_drift(out: Path, language: PageLanguage) -> None:
    """Two days with other detectors and other verdicts."""
    harm = {"label": "harmful", "type": "targeted harm", "language": "zh", "probability": 0.9}
    now = _write_screened(out.parent / "now", "b@2", 40, **harm)
    calm = {"label": "harmless", "type": "none", "language": "en", "probability": 0.1}
    then = _write_screened(out.parent / "then", "a@1", 40, **calm)
    drift(now, against=then).save(out, language)


def make_dataset(out: Path, language: PageLanguage) -> None:
    """A data set with duplicates, a broken image and annotators."""
    counts = {"train": {"hateful": 4, "fine": 6}, "test": {"fine": 2}}
    copies = Duplicates({"train": 1}, {"train and test": 1}, (("m2", "train", "train"),))
    DatasetProfile(
        name="set", title="SET", summary="", warning="", memes=12, splits={"train": 10, "test": 2},
        labels=(LabelCounts("label", "", counts), LabelCounts("type", "", {})),
        languages={"train": {"en": 10}}, texts=copies, images=Duplicates({}, {}),
        images_found=11, images_expected=12, failing=1, failures=(("m10", "not an image"),),
        annotators=6, votes={"label": (72, 6.0, 0.5)}, attributes={"age": {"18-22": 36}},
    ).save(out, language)  # fmt: skip


def make_pairs(out: Path, language: PageLanguage) -> None:
    """A failing pair of each requirement, with all kinds of scores."""
    images = (image_path("en-001"), out.parent / "missing.png")
    pairs = (
        FailingPair("p1", "emoji", ("a", "b"), ("harmful", "harmful"), ("harmful", "harmless"),
                    images),
        FailingPair("p2", "negation", ("a", "b"), ("harmful", "harmless"), ("harmful", "harmful"),
                    images),
    )  # fmt: skip
    kinds = (
        Score("proportion", 0.5, 10, 0.2, 0.8, by="emoji", label="same label"),
        Score("proportion", 0.5, 10, 0.2, 0.8, by="negation", label="changed label"),
    )
    PairCheck("a model", kinds, pairs, 3).save(out, language)


def make_collection(out: Path, language: PageLanguage) -> None:
    """Three memes, some of them dropped."""
    folder = out.parent / f"memes-{language}"
    for number in range(3):
        save(draw(number), folder / f"{number}.png")
    reader = ScriptedReader({"0.png": "", "1.png": "x"})
    done = gather(folder, lambda: reader, CollectSettings(out=out.parent / f"kept-{language}"))
    out.write_text(render_collection(done, language), encoding="utf-8")


def make_decisions(out: Path, language: PageLanguage) -> None:
    """Twelve decisions, four of them appealed."""
    log = out.parent / f"log-{language}.db"
    with DecisionLog(log) as opened:
        fill(opened, 12)
    summarise_decisions(str(log)).save(out, language)


def make_policy_test(out: Path, language: PageLanguage) -> None:
    """Two runs of a policy without replies."""
    score = Score("verdict_agreement", 0.5, 10, 0.2, 0.8)
    runs = tuple(
        PolicyRun(
            model=name, policy="forum@1", answers=(), agreement=(score,),
            confusion=(("1", "none", 2),),
            statuses={"answered": 9, "failed": 1}, entropy=score, tokens_in=10, tokens_out=5,
        )
        for name in ("a/b", "c/d")
    )  # fmt: skip
    pair = PolicyComparison("model", "a/b", "c/d", "verdict", 10, 0.1, -0.1, 0.3, 0.4)
    PolicyTest("gold.csv", 10, 10, runs, (pair,), None, unseen=1).save(out, language)


def make_judges(out: Path, language: PageLanguage) -> None:
    """Findings of every kind about two judges."""
    measures = (
        ("agreement", "Krippendorff's alpha"), ("bias", "mark minus human rating"),
        ("self-preference", "own family minus others"), ("length", "bias per doubling of length"),
        ("change", "filler"), ("wrong answer", "another meme"), ("right answer", "a reference"),
        ("consistency", "same mark again"), ("cost", "tokens per answer"),
    )  # fmt: skip
    findings = tuple(
        JudgeFinding(judge, kind, name, "correctness", 12, 0.4, -0.1, 0.6)
        for judge in ("judge/a", "judge/b")
        for kind, name in measures
    )
    found = (OpenItem("i1", "coverage", 1, 5, 2, "一种", "另一种"),)
    JudgeComparison(("r",), ("judge/a", "judge/b"), 12, 6, findings, found).save(out, language)


def make_knowledge(out: Path, language: PageLanguage) -> None:
    """The knowledge about a sample meme; its labels are data."""
    known = next(one for one in read_sample_knowledge() if one.meme == "CN90001")
    write_page(known, out, image_path("CN90001"), language)


def make_analysis(out: Path, language: PageLanguage) -> None:
    """An offline analysis of a sample meme."""
    made = analyze([image_path("CN90001")])
    assert isinstance(made, Analyses)
    made.save(out, language)


def make_versions(out: Path, language: PageLanguage) -> None:
    """Versions of a meme by a model: one passed every check, one failed three."""
    keys: dict[str, Any] = {"target": "calm", "visual": "light", "keep": "all"}
    advice = (("smaller", "shorter"), ("strokes", "paint_over"), ("panels", "other_editor"))
    values = {"region": 1, "size": "0.50", "count": 3, "before": 2, "after": 1}
    flaws = [
        Flaw(check="size", what=say(what, **values), advice=say(told)) for what, told in advice
    ]
    versions = tuple(
        KinderVersion(
            number=number,
            plan=ReappraisalPlan(captions={"1": "慢慢来"}, why="换个说法", **keys),
            checks=EditChecks(
                panels_before=1, panels_after=1, captions=[], changed_outside=0, changed_inside=0,
                distance=0, kindness=[0.1, 0.9], flaws=flaws[: 3 * (number - 1)],
            ),
        )
        for number in (1, 2)
    )  # fmt: skip
    plan = versions[0].plan
    made = Reappraisal("m", out.parent, "done", "picture", plan=plan, versions=versions)
    show_versions(made, image_path("en-001"), 3, language)


def make_audit(name: str) -> Maker:
    """An audit of sample data with all checks."""

    def make(out: Path, language: PageLanguage) -> None:
        settings = AuditSettings(data="sample", everything=True, runs=out.parent / "audit")
        audit(name, settings=settings).save(out, language)

    return make


def make_paper(name: str) -> Maker:
    """A reproduced paper without runs."""
    return lambda out, language: paper(name, data="sample").save(out, language=language)


BENCHMARKS = ("mquest", "memeintent", "toxicn_mm", "punmemecn", "mer_bench")
PAGES: Mapping[str, Maker] = {
    "detector": make_detector_pages,
    "screening": make_screening,
    "drift": make_drift,
    "dataset": make_dataset,
    "pairs": make_pairs,
    "collect": make_collection,
    "decisions": make_decisions,
    "policy_test": make_policy_test,
    "judges": make_judges,
    "knowledge": make_knowledge,
    "analysis": make_analysis,
    "versions": make_versions,
    **{f"audit-{name}": make_audit(name) for name in BENCHMARKS},
    **{f"paper-{name}": make_paper(name) for name in BENCHMARKS},
}


def make_pages(folder: Path, name: str, language: PageLanguage) -> list[Path]:
    """Write the pages of one kind into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    before = set(folder.glob("*.html"))
    PAGES[name](folder / f"{name}-{language}.html", language)
    return sorted(set(folder.glob("*.html")) - before)
