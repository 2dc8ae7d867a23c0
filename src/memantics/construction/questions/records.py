"""Records of questions: planned, drafted, built and rejected."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from memantics.core.meaning import DIMENSIONS, Dimension
from memantics.core.parameters import Attempts, Flag
from memantics.core.records import Sampling
from memantics.understanding.knowledge.ontology.vocabulary import DimensionSpec, find_dimensions
from memantics.understanding.knowledge.records import Individual, Knowledge, Provenance

OptionRole = Literal["correct", "plausible", "spare", "implausible", "borrowed", "none"]
QuestionNeed = Literal["words", "picture", "background"]
Longest = Literal["correct", "wrong"]
FEWEST_WRONG = 2  # distractors shown with a correct option; an item without one shows three
Critic = Literal["statistics", "model", "both", "off"]
PromptVersion = Literal["1", "2", "3", "4"]
# Without the answer, a question of these dimensions has no point left.
KEYED: tuple[Dimension, ...] = ("Scene", "SemioticProjection", "Toxicity", "VisualMaterial")
DENSE = frozenset({"zh", "ja", "ko"})
NONE_TEXTS: Mapping[str, str] = {"en": "None of the others", "zh": "其他都不对"}
ABSENT_TEXTS: Mapping[str, str] = {"en": "Right would be “{}”.", "zh": "正确的说法是“{}”。"}


@dataclass(frozen=True, slots=True)
class QuestionSettings:
    """Define how questions are written and tested.

    Attributes:
        per_dimension: Questions for each dimension of each meme.
        dimensions: Write questions about these dimensions only.
        version: Version of prompts and checks. 3 (default): two steps, and checks of the final form
            that cover the whole rubric of ratings; 4: the same steps with repaired prompts, not
            rated yet; 2: fewer checks; 1: one step. The others serve to compare.
        at_a_time: Questions about one meme that the writer writes in one call (not version 1).
        none_proportion: Proportion of questions whose correct option is "None of the others".
        none_dimensions: Only questions about these dimensions may have that correct option.
            Default: all but those where the answer is the point (``KEYED``). Not version 1.
        words: Maximum number of words per option.
        attempts: Maximum number of attempts at a reply that can be parsed.
        rewrites: Maximum number of rewrites of a question that the critic answers without the meme.
        seed: Random seed.
        language: Language of the questions.
        critic: Critic that answers without the image: statistics, a model, both or none.
        at_once: Questions that the critic answers in one call, each about a different meme.
        keep_per_dimension: Questions per dimension that are kept, and marked, even if a critic
            answers them without the meme.
        tolerance: Accepted distance from the chance level of the rates at which option length or
            a blind solver finds the correct option.
        sampling: Sampling parameters of the model.
        from_image: If the knowledge of a meme has no toxicity, write the toxicity question from the
        image.
        specs: Dimensions that the user defined.
    """

    per_dimension: Annotated[int, Flag("Questions per dimension and meme.", min=1, max=50)] = 1
    dimensions: Annotated[
        tuple[Dimension, ...],
        Flag(
            "Write questions about this dimension only; repeatable.",
            "--dimension",
            kind=list[str],
            read=find_dimensions,
        ),
    ] = ()
    version: Annotated[
        PromptVersion,
        Flag(
            "Version of the prompts and checks: 3 (measured in trials), 4 (repaired prompts, not "
            "measured), 2 or 1.",
            "--prompt-version",
        ),
    ] = "3"
    at_a_time: Annotated[
        int, Flag("Maximum number of questions about one meme per model call.", min=1, max=12)
    ] = 5
    none_proportion: Annotated[
        float,
        Flag(
            "Proportion of questions whose correct option is 'None of the others'.",
            min=0.0,
            max=1.0,
        ),
    ] = 0.0
    none_dimensions: Annotated[
        tuple[Dimension, ...],
        Flag(
            "Dimension whose questions may have 'None of the others' as correct option; "
            "repeatable. Default: all but scene, projection, toxicity and visual questions.",
            "--none-dimension",
            kind=list[str],
            read=find_dimensions,
        ),
    ] = ()
    words: Annotated[int, Flag("Maximum number of words per option.", min=2, max=40)] = 8
    attempts: Attempts = 3
    rewrites: Annotated[
        int,
        Flag("How often a question with a fault is written again.", min=0, max=5),
    ] = 1
    seed: Annotated[int, Flag("Random seed.", min=0)] = 0
    language: Annotated[str, Flag("Language of the questions.")] = "en"
    critic: Annotated[
        Critic,
        Flag("Critic that tries to answer without the meme: statistics, model, both or off."),
    ] = "statistics"
    at_once: Annotated[
        int, Flag("Number of questions per call of a model that tests questions.", min=1, max=20)
    ] = 8
    keep_per_dimension: Annotated[
        int,
        Flag(
            "Keep and mark this many questions per dimension even if a critic answers them "
            "without the meme.",
            min=0,
        ),
    ] = 0
    tolerance: float = 0.05
    sampling: Sampling = field(default_factory=Sampling)
    from_image: Annotated[
        bool,
        Flag(
            "If the knowledge of a meme has no toxicity, write the toxicity question from the "
            "image."
        ),
    ] = False
    specs: Mapping[str, DimensionSpec] = field(default_factory=dict)

    def may_deny(self, dimension: Dimension) -> bool:
        """Return whether "None of the others" may be correct in questions about a dimension."""
        if self.version == "1":
            return True
        return dimension in self.none_dimensions if self.none_dimensions else dimension not in KEYED

    @property
    def full_rubric(self) -> bool:
        """Whether prompts and checks cover the whole rubric of ratings (since version 3)."""
        return self.version in ("3", "4")

    @property
    def judged(self) -> bool:
        """Whether models test the questions."""
        return self.critic in ("model", "both")

    @property
    def letters(self) -> int:
        """Approximate maximum characters of an option; a Chinese word has about two."""
        return self.words * (2 if self.language in DENSE else 6)

    @property
    def none_text(self) -> str:
        """Text of the option "None of the others", in the language of the questions."""
        return NONE_TEXTS.get(self.language, NONE_TEXTS["en"])

    def name_absent(self, correct: str) -> str:
        """Return the sentence that names the removed correct answer in the explanation."""
        return ABSENT_TEXTS.get(self.language, ABSENT_TEXTS["en"]).format(correct)


@dataclass(frozen=True, slots=True)
class Slot:
    """Plan one question: its subject (``focus``) and its pair.

    Without a focus, the question is written from the image alone. ``pair`` is the id of the
    toxicity question whose toxic element this question is about. ``longest`` fixes which option is
    the longest, so that length is not a cue.
    """

    id: str
    meme: str
    dimension: Dimension
    focus: str
    longest: Longest
    pair: str = ""


@dataclass(frozen=True, slots=True)
class QuestionOption:
    """Store one option; ``origin`` is the question or fact that a borrowed option comes from."""

    text: str
    role: OptionRole
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Store words of a known fact on which a correct option rests."""

    fact: str
    words: str


@dataclass(frozen=True, slots=True)
class QuestionDraft:
    """Store a model's draft of a planned question, with more distractors than are shown.

    ``evidence`` supports the correct option. ``trap`` is the answer of a reader who saw the meme
    and missed its point (since version 2 of the prompts).
    """

    question: str
    correct: str
    plausible: tuple[str, ...]
    implausible: tuple[str, ...]
    explanation: str
    cites: tuple[str, ...]
    evidence: tuple[Evidence, ...] = ()
    trap: str = ""

    @property
    def wrong(self) -> tuple[QuestionOption, ...]:
        """All distractors."""
        near = tuple(QuestionOption(text, "plausible") for text in self.plausible)
        return near + tuple(QuestionOption(text, "implausible") for text in self.implausible)


@dataclass(frozen=True, slots=True)
class DraftQuestion:
    """Store a finished question; ``answer`` is the position of the correct option.

    The order of the options depends on ``seed``. ``needs`` lists what must be understood to answer.
    """

    id: str
    meme: str
    dimension: Dimension
    question: str
    options: tuple[QuestionOption, ...]
    answer: int
    explanation: str
    cites: tuple[str, ...]
    focus: str
    seed: int
    language: str = "en"
    pair: str = ""
    provenance: Provenance | None = None
    notes: tuple[str, ...] = ()
    needs: tuple[QuestionNeed, ...] = ()

    @property
    def none_is_key(self) -> bool:
        """Whether "None of the others" is the correct option."""
        return self.options[self.answer].role == "none"


@dataclass(frozen=True, slots=True)
class RejectedQuestion:
    """Store a rejected question: stage, reason and last draft."""

    id: str
    meme: str
    dimension: Dimension
    stage: str
    reason: str
    draft: QuestionDraft | None = None


@dataclass(frozen=True, slots=True)
class Defect:
    """Store a defect of a draft; ``option`` is the faulty distractor, if there is one.

    A faulty distractor is dropped while enough others are left.
    """

    code: str
    message: str
    option: str = ""


def draw(below: int, *parts: object) -> int:
    """Return a number below a bound that depends only on ``parts``.

    >>> draw(3, 0, "en-001/Scene/1") == draw(3, 0, "en-001/Scene/1")
    True
    """
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") % below


def plan_slots(knowledge: Knowledge, settings: QuestionSettings) -> list[Slot]:
    """Plan the questions about one meme; dimensions without known facts get no question.

    A toxicity question about a fact that names a toxic element is paired with a question about that
    element: a planned one, or an additional one.
    """
    slots: dict[str, Slot] = {}
    links = Counter(key for individual in knowledge.individuals for key in _list_ends(individual))
    for dimension in dict.fromkeys((*DIMENSIONS, *(i.dimension for i in knowledge.individuals))):
        # Facts with the most links to other facts come first, because they matter most.
        individuals = sorted(knowledge.of(dimension), key=lambda one: -links[one.key])
        if individuals and (not settings.dimensions or dimension in settings.dimensions):
            for number in range(settings.per_dimension):
                focus = individuals[number % len(individuals)]
                name = f"{knowledge.meme}/{dimension}/{number + 1}"
                slots[name] = _make(name, focus, knowledge.meme, settings)
    wanted = not settings.dimensions or "Toxicity" in settings.dimensions
    if settings.from_image and wanted and not knowledge.of("Toxicity"):
        name = f"{knowledge.meme}/Toxicity/1"
        longest = _draw_longest(name, settings)
        slots[name] = Slot(name, knowledge.meme, "Toxicity", "", longest)
    for toxic in [slot for slot in slots.values() if slot.dimension == "Toxicity" and slot.focus]:
        element = find_toxic_element(knowledge, knowledge.by_key[toxic.focus])
        if element is None:
            continue
        free = (s for s in slots.values() if s.focus == element.key and not s.pair)
        slot = next(free, None)
        if slot is None:
            last = toxic.id.rpartition("/")[2]
            name = f"{knowledge.meme}/{element.dimension}/toxic-{last}"
            slot = _make(name, element, knowledge.meme, settings)
        slots[slot.id] = replace(slot, pair=toxic.id)
    return list(slots.values())


def _list_ends(individual: Individual) -> Iterator[str]:
    for link in individual.relations:
        yield from (individual.key, link.target)


def _make(name: str, focus: Individual, meme: str, settings: QuestionSettings) -> Slot:
    return Slot(name, meme, focus.dimension, focus.key, _draw_longest(name, settings))


def _draw_longest(name: str, settings: QuestionSettings) -> Longest:
    return "wrong" if draw(3, settings.seed, "longest", name) else "correct"


def find_toxic_element(knowledge: Knowledge, toxicity: Individual) -> Individual | None:
    """Return the first toxic element that a fact about toxicity names, or None."""
    if toxicity.dimension != "Toxicity":
        return None
    for link in toxicity.relations:
        if link.relation == "hasToxicElement" and link.target in knowledge.by_key:
            return knowledge.by_key[link.target]
    return None
