"""Since version 2: two steps, checks of the final form, roles, mixed batches, and honest counts.

Every bad pattern that readers found in published questions has a fixture: the gates of version 1
pass it, those of later versions refuse it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memantics.construction.questions.asking import QuestionSubject, ask_draft, ask_known
from memantics.construction.questions.assembly import (
    AssembledQuestion,
    SlotDraft,
    deal_none,
    finish,
    make_item,
)
from memantics.construction.questions.build import build_questions, choose_pair, rank_key
from memantics.construction.questions.chain import BuiltQuestions
from memantics.construction.questions.critic import find_defects
from memantics.construction.questions.drafting import drop_faulty, list_key_defects
from memantics.construction.questions.final import (
    Examiner,
    SaidCheck,
    list_faults,
    list_points,
    list_repeated,
)
from memantics.construction.questions.form import find_form_faults, find_key_faults, find_suspects
from memantics.construction.questions.records import (
    KEYED,
    Defect,
    DraftQuestion,
    Evidence,
    PromptVersion,
    QuestionDraft,
    QuestionOption,
    QuestionSettings,
    Slot,
)
from memantics.construction.questions.report import Roles, report_questions
from memantics.construction.questions.solver import fair_chance, mix
from memantics.construction.questions.writing import (
    ask_keys,
    ask_options,
    find_step_prompts,
    is_copied,
    list_known,
    read_entries,
    read_examples,
)
from memantics.core.meaning import DIMENSIONS
from memantics.core.memes import Meme
from memantics.core.records import Request
from memantics.core.samples import image_path, read_samples
from memantics.models.client import CALLS, ModelClient
from memantics.models.embedded.encoder import StaticEncoder
from memantics.models.fake import FakeModel
from memantics.understanding.knowledge.records import Individual, Knowledge
from tests.construction.questions.scripts import one_step, sample_subjects

SETTINGS = QuestionSettings(critic="model", attempts=2)
KNOWN = Knowledge(
    "m",
    (
        Individual("OverallIntent", "blame", "an accusation", "The author blames the speaker."),
        Individual("TextualMaterial", "line", "a line of prayer", "It is said at bedtime."),
        Individual("Emotion", "pity", "pity", "The viewer pities the frog in the pot."),
        Individual("VisualMaterial", "man", "a man in checks", "He stands at a door."),
        Individual("Scene", "door", "a visit", "A man waits at a door with a parcel."),
    ),
)


def make(
    question: str, key: str, wrong: tuple[str, ...], dimension: str = "OverallIntent"
) -> AssembledQuestion:
    focus = next(one.key for one in KNOWN.individuals if one.dimension == dimension)
    slot = Slot(f"m/{dimension}/1", "m", dimension, focus, "wrong")
    draft = QuestionDraft(question, key, wrong, (), "It follows.", (focus,))
    return make_item(SlotDraft(slot, "answered", draft), draft)


def passes_version_1(item: AssembledQuestion) -> bool:
    return not list(find_defects(item.draft, item.slot, KNOWN, one_step()))


def check_finished(question: DraftQuestion, settings: QuestionSettings) -> list[Defect]:
    """Return the faults of a finished question, read from its options alone."""
    key = question.options[question.answer]
    wrong = [o.text for o in question.options if o is not key and o.role != "none"]
    none = key.role == "none"
    faults = list(find_form_faults(question.question, None if none else key.text, wrong))
    if none and not settings.may_deny(question.dimension):
        faults.append(
            Defect("none", f"{key.text!r} takes the point away from {question.dimension}")
        )
    return faults


def find_codes(item: AssembledQuestion, settings: QuestionSettings = SETTINGS) -> set[str]:
    """Defects of version 2 in the finished form, and of the key before there are options."""
    (finished,) = finish([item], settings)
    found = [*check_finished(finished, settings), *find_key_faults(item.draft, KNOWN)]
    return {defect.code for defect in found}


SOUND = make(
    "What does the author say of the one who prays?",
    "He hides his own fault behind prayer",
    ("He finds new courage in his prayer", "He teaches his children how to pray"),
)


def test_a_sound_question_has_no_fault() -> None:
    assert passes_version_1(SOUND)
    assert find_codes(SOUND) == set()


BAD = [
    pytest.param(
        "Who speaks in these lines?",
        "An unseen speaker who prays alone",
        ("The child's worried mother", "The child's older brother"),
        "form tells",
        id="the form gives the key away",
    ),
    pytest.param(
        "What does the author hold against the speaker?",
        "That he asks for help and then blames God",
        ("He sleeps all day", "He prays too much"),
        "length tells",
        id="40 characters beside about 17",
    ),
    pytest.param(
        "Who is blamed by the author?",
        "Parents who leave it to prayer",
        ("By calling the priest at once", "Doctors who come far too late"),
        "no answer",
        id="an option answers another question",
    ),
    pytest.param(
        "Who is seen in the picture?",
        "A neighbour in checks",
        ("A postman in green", "A fireman in red"),
        "only seen",
        id="a perception quiz",
    ),
    pytest.param(
        "How does the frog feel about its bath?",
        "Perfectly content now",
        ("Deeply worried again", "Completely bored here"),
        "padding",
        id="padding",
    ),
    pytest.param(
        "What should the viewer feel at the end?",
        "Pity for a figure",
        ("Envy of a winner", "Anger at a thief"),
        "vague",
        id="a vague key",
    ),
    pytest.param(
        "What does the author say of the believers?",
        "Believers hurt children that trust them",
        ("Believers hurt children", "Priests tell parents what to do"),
        "options equivalent",
        id="one option is a wider form of the other",
    ),
]


@pytest.mark.parametrize(("question", "key", "wrong", "code"), BAD)
def test_what_passed_is_refused(question: str, key: str, wrong: tuple[str, ...], code: str) -> None:
    item = make(question, key, wrong)
    assert passes_version_1(item)
    assert code in find_codes(item)


def test_none_takes_no_point_away_where_the_answer_is_the_point() -> None:
    wrong = ("He has lost his key again", "He brings a parcel too late", "He wants to be let in")
    for dimension in ("Scene", "OverallIntent"):
        item = make("Why does he wait?", "He hopes to be forgiven", wrong, dimension)
        old, new = (
            deal_none([item], replace(settings, none_proportion=1.0))[0].correct
            for settings in (one_step(), SETTINGS)
        )
        assert old is None
        assert (new is None) == (dimension not in KEYED)
    assert QuestionSettings().none_proportion == 0
    denied = replace(make("Why does he wait?", "x", wrong[:2], "Scene"), correct=None)
    assert "none" in find_codes(denied)


PARAPHRASES = make(
    "What does the author do?",
    "Praises parents who call a doctor",
    (
        "Calls believers child abusers",
        "Brands believing parents as abusers",
        "Warns parents about a sick priest",
    ),
)


def test_paraphrases_are_put_to_a_reader_who_is_asked_whether_both_can_be_right() -> None:
    item = replace(PARAPHRASES, correct=None, wrong=PARAPHRASES.draft.wrong)
    assert passes_version_1(PARAPHRASES)
    texts = [option.text for option in item.wrong]
    assert (texts[0], texts[1]) in find_suspects(texts, StaticEncoder())
    assert find_suspects(["A walk in the park", "质疑事情不合理"], StaticEncoder()) == []
    order = (0, 1, 3, 2)
    two = SaidCheck(right=["A", "B"], same=["A", "B"])
    codes = [fault.code for fault in list_faults(item, two, order)]
    assert codes == ["key wrong", "two right", "two right", "options equivalent"]
    fine = SaidCheck(right=["C"])  # C is "None of the others"
    assert list(list_faults(item, fine, order)) == []


@pytest.mark.parametrize(
    ("said", "codes"),
    [
        (SaidCheck(right=["A"], follows=["A"]), []),
        (SaidCheck(right=["A", "D"], follows=["A"]), []),  # D is "None of the others"
        (SaidCheck(right=["B"], follows=["B"]), ["key wrong", "two right"]),
        (SaidCheck(right=["A", "C"], follows=["A"]), ["two right"]),
        (SaidCheck(right=["A"], follows=[]), ["key unsupported"]),
        (SaidCheck(right=["A"], follows=["A"], same=["A", "B"]), ["options equivalent"]),
        (SaidCheck(right=["A"], follows=["A"], same=["B", "C"]), ["options equivalent"]),
        (SaidCheck(right=["A"], follows=["A"], off=["C"]), ["no answer"]),
        (SaidCheck(right=["A"], follows=["A"], told="A"), ["form tells"]),
        (SaidCheck(right=["A"], follows=["A"], unseen="A"), ["meme not needed"]),
        (SaidCheck(right=["A"], follows=["A"], glance="A"), ["no point"]),
        (SaidCheck(right=["A"], follows=["A"], unseen="B", glance="C"), []),
        (SaidCheck(right=["A"], follows=["A"], awkward=True), ["wording"]),
        (SaidCheck(right=["A"], follows=["A"], told="B"), []),
        (SaidCheck(right=["A"], follows=["A"], none=True), ["none defensible"]),
    ],
)
def test_a_judgement_becomes_faults(said: SaidCheck, codes: list[str]) -> None:
    assert [fault.code for fault in list_faults(SOUND, said, (0, 1, 2, 3))] == codes


def test_the_same_question_about_another_meme_is_refused_once() -> None:
    first = make("Whom does the meme address?", "Those who pray", ("Those who sleep", "x"))
    second = replace(
        first, drafted=replace(first.drafted, slot=replace(first.slot, id="n/1", meme="n"))
    )
    third = replace(
        second, draft=replace(second.draft, question="Whom does the second line address?")
    )
    assert list_repeated([first, first, third]) == []
    assert list_repeated([first, second, third]) == [second]


def test_evidence_must_be_words_of_the_graph() -> None:
    real = Evidence("OverallIntent/blame", "The author blames the speaker")
    made = Evidence("OverallIntent/blame", "Everybody loves the kind old neighbour")
    for evidence, codes in ((real, []), (made, ["evidence"])):
        draft = replace(SOUND.draft, evidence=(evidence,))
        assert [d.code for d in find_key_faults(draft, KNOWN)] == codes


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_dimension_has_a_worked_example_that_cannot_leak(language: str) -> None:
    examples = read_examples(language, SETTINGS.version)
    assert set(examples) == {*DIMENSIONS, "own"}
    texts = " ".join(
        f"{meme.text} {meme.description} {meme.meaning}" for meme in read_samples()
    ).casefold()
    settings = QuestionSettings(language=language)
    for dimension, example in examples.items():
        assert example.key.casefold() not in texts
        draft = QuestionDraft(example.question, "x", (), (), "", ())
        assert is_copied(draft, settings)
        assert example.trap in example.wrong
        # The examples keep the rules that they teach.
        focus = next((one.key for one in KNOWN.individuals if one.dimension == dimension), "")
        slot = Slot("m/x/1", "m", dimension, focus, "wrong")
        full = QuestionDraft(example.question, example.key, example.wrong, (), "", (focus,))
        kept, fault = drop_faulty(full, slot, KNOWN, settings)
        assert (fault, kept.plausible) == ("", example.wrong)


def test_examples_are_not_copied() -> None:
    example = read_examples("en", SETTINGS.version)["Scene"]
    draft = replace(SOUND.draft, question=example.question)
    assert "copied" in [d.code for d in list_key_defects(draft, SOUND.slot, KNOWN, SETTINGS)]


def text_of(request: Request) -> str:
    parts = (part for message in request.messages for part in message.parts)
    return "\n".join(part for part in parts if isinstance(part, str))


LONG = "The mice behind the dog are angry since its answer went to all of them. " * 4


def test_the_context_is_whole() -> None:
    individuals = (
        Individual("VisualMaterial", "mice", "angry mice", LONG.strip()),
        Individual("BackgroundKnowledge", "mail", "reply to all", LONG.strip()),
        Individual("TargetCommunity", "senders", "careless senders", "They are teased. (attacked)"),
    )
    notes = {"heard as": "左右为难 (86% sure)"}
    meme = Meme("m", image_path("en-012"), "Reply all", "en", notes)
    subject = QuestionSubject(meme, Knowledge("m", individuals))
    slot = Slot("m/TargetCommunity/1", "m", "TargetCommunity", "TargetCommunity/senders", "wrong")
    before = text_of(ask_draft(subject, slot, one_step()))
    assert LONG.strip() not in before
    for request in (
        ask_keys(subject, [slot], SETTINGS),
        ask_options(subject, [(slot, SOUND.draft)], SETTINGS),
    ):
        sent = text_of(request)
        assert sent.count(LONG.strip()) == 2
        assert "(attacked)" in sent
        assert "左右为难" in sent
        assert "…)" not in sent
        assert request.messages[0].role == "system"
    known = text_of(ask_known([("Who?", list("abcd"))], SETTINGS, subject))
    assert known.count(LONG.strip()) == 2


def test_lengths_are_a_range_and_the_prompt_gives_examples_of_its_dimensions() -> None:
    subject = sample_subjects()["en-012"]
    keys = [one.key for one in subject.knowledge.individuals][:2]
    slots = [Slot(f"en-012/{k}", "en-012", k.split("/")[0], k, "wrong") for k in keys]
    sent = text_of(ask_keys(subject, slots, SETTINGS))
    assert len(re.findall(r"Key: \d+ to \d+ characters", sent)) == 2
    for slot in slots:
        assert read_examples("en", SETTINGS.version)[slot.dimension].question in sent
    assert read_examples("en", SETTINGS.version)["Toxicity"].question not in sent


def test_version_3_keeps_its_prompts_examples_and_points() -> None:
    old, new = find_step_prompts("3"), find_step_prompts("4")
    assert {name for name in old if old[name] != new[name]} == {"ask", "options", "check"}
    assert "heard as" in new["ask"].text
    for language in ("en", "zh"):
        first, second = read_examples(language, "3"), read_examples(language, "4")
        assert {name for name in first if first[name] != second[name]} == {
            "AnalogicalMapping",
            "OverallIntent",
        }
    counts: dict[PromptVersion, int] = {"2": 5, "3": 8, "4": 9}
    for version, told in counts.items():
        assert len(list_points(replace(SETTINGS, version=version))) == told
        for name in list_points(replace(SETTINGS, version=version)):
            assert f'"{name}"' in find_step_prompts(version)["check"].text


def test_version_2_keeps_its_prompts_and_examples() -> None:
    old, new = find_step_prompts("2"), find_step_prompts("3")
    assert {name for name in old if old[name] != new[name]} == {"ask", "options", "check"}
    for language in ("en", "zh"):
        first, second = read_examples(language, "2"), read_examples(language, "3")
        assert first.keys() == second.keys()
        assert first["BackgroundKnowledge"].question != second["BackgroundKnowledge"].question
    former = replace(SETTINGS, version="2")
    subject = sample_subjects()["en-012"]
    slot = Slot("en-012/Emotion/1", "en-012", "Emotion", "", "wrong")
    for settings, told in ((former, False), (SETTINGS, True)):
        sent = text_of(
            ask_options(subject, [(slot, SOUND.draft)], settings, None, {slot.id: ["x"]})
        )
        assert ("Points of other memes: x" in sent) is told
        assert ("two of them longer, two shorter" in sent) is told


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_wrong_options_are_longer_and_shorter_than_the_key(version: PromptVersion) -> None:
    settings = replace(SETTINGS, version=version)
    short, shorter = "He finds new courage in prayer", "He teaches his sons how to pray"
    longer = "He teaches all his children to pray well"
    for wrong, told in (((short, shorter), version != "2"), ((short, longer), False)):
        draft = replace(SOUND.draft, plausible=wrong)
        fault = drop_faulty(draft, SOUND.slot, KNOWN, settings)[1]
        assert fault.startswith("lengths: ") is told


def test_keys_of_a_small_set_are_no_more_often_the_longest() -> None:
    subjects = {"m": QuestionSubject(Meme("m", image_path("en-001")), KNOWN)}
    examiner = Examiner(None, subjects, SETTINGS, StaticEncoder())
    wrong = ("He likes tea", "He sells hats", "He paints new boats", "He follows old roads")
    ranks: Counter[int] = Counter()
    for _ in range(12):
        item = choose_pair(make("Why so?", "He waits at home", wrong), examiner, ranks)
        ranks[rank_key(item)] += 1
    assert ranks == {0: 4, 1: 4, 2: 4}


@pytest.mark.parametrize(
    "reply",
    [
        '{"1": {"wrong": ["a"]}, "2": {"wrong": ["b"]}}',
        '{"questions": [{"wrong": ["a"]}, {"wrong": ["b"]}]}',
        '[{"wrong": ["a"]}, {"wrong": ["b"]}]',
        'Sure:\n```json\n{"questions": {"1": {"wrong": ["a"]}, "2": {"wrong": ["b"]}}}\n```',
    ],
)
def test_entries_are_read_in_any_usual_shape(reply: str) -> None:
    assert read_entries(reply, 2) == {1: {"wrong": ["a"]}, 2: {"wrong": ["b"]}}
    assert read_entries('{"1": {"wrong": ["a"]}}', 1) == {1: {"wrong": ["a"]}}


def list_pairs(items: list[AssembledQuestion]) -> list[tuple[str, str]]:
    """Pairs of questions where a key of one stands among the options of the other."""
    return [
        (one.id, other.id)
        for one in items
        for other in items
        if one is not other and one.draft.correct in [option.text for option in other.shown]
    ]


def test_blind_batches_mix_memes_and_dimensions_and_hold_no_key_of_each_other() -> None:
    items = []
    for number in range(12):
        for dimension in ("Scene", "Emotion", "OverallIntent"):
            slot = Slot(f"m{number}/{dimension}/1", f"m{number}", dimension, "", "wrong")
            # A wrong option of each question is the key of the next meme's.
            words = [
                f"{dimension} answer {'abcdefghijkl'[(number + n) % 12] * 9}" for n in range(3)
            ]
            draft = QuestionDraft("Why so?", words[0], (words[1], words[2]), (), "", ())
            items.append(make_item(SlotDraft(slot, "answered", draft), draft))
    in_order_of_dimension = sorted(items, key=lambda item: item.slot.dimension)[:8]
    assert list_pairs(in_order_of_dimension)
    groups = mix(items, 8, 0)
    assert sorted(item.id for group in groups for item in group) == sorted(i.id for i in items)
    for group in groups:
        assert len({item.slot.meme for item in group}) == len(group) <= 8
        assert list_pairs(group) == []
    assert max(len({item.slot.dimension for item in group}) for group in groups) == 3
    assert mix(items, 8, 0) == groups


def test_chance_depends_on_how_often_none_is_right() -> None:
    never = [SOUND] * 4
    assert fair_chance(never) == pytest.approx(1 / 3)
    assert fair_chance([*never[:3], replace(SOUND, correct=None)]) == pytest.approx(1 / 4)


# A scripted writer, critic and reader.

WRONG = (
    "They wait for the last bus home",
    "They look for a cheaper flat",
    "They train for a long race",
    "They hide from an old friend",
)


NEW = (
    "They wait for the next bus home",
    "They look for a larger flat",
    "They train for a short race",
    "They hide from an old boss",
)


class Staff:
    """Writes sound questions; the critic may find fault with the first version of each."""

    def __init__(self, fault: Callable[[str, int], dict[str, object]] | None = None) -> None:
        self.fault = fault
        self.seen: Counter[str] = Counter()
        self.roles: Counter[tuple[str, str]] = Counter()

    def write(self, request: Request) -> str:
        sent = text_of(request)
        if "Step 1 of 2" in sent:
            facts = re.findall(r"<element \w+>\n(\S+): ([^(\n]+) \(", sent)
            return json.dumps(
                {
                    str(n): {
                        "about": key,
                        "question": f"What do those of {self.name(key)} still hope for?",
                        "key": f"They {self.verb(key)} for some quiet",
                        "evidence": [{"fact": key, "words": label}],
                        "trap": "They wait for the bus",
                        "why": "It follows.",
                    }
                    for n, (key, label) in enumerate(facts, 1)
                }
            )
        count = len(re.findall(r"^trap: ", sent, re.M)) - len(re.findall(r"^wrong: ", sent, re.M))
        wrong = NEW if "must not have them" in sent else WRONG
        return json.dumps({str(n): {"wrong": wrong} for n in range(1, count + 1)})

    def name(self, key: str) -> str:
        return "".join(chr(97 + (ord(c) * 7) % 26) for c in key)

    def verb(self, key: str) -> str:
        return self.name(key)[:9]

    def judge(self, request: Request) -> str:
        sent = text_of(request)
        asked = re.search(r"<questions \w+>\n(.*?)\n</questions", sent, re.S)
        if asked is None:
            return self.answer(request)
        said = {}
        for n, block in enumerate(re.split(r"\n\n", asked[1]), 1):
            letter = next(
                m[1] for m in re.finditer(r"^([A-D])\. (.*)$", block, re.M) if "quiet" in m[2]
            )
            verdict: dict[str, object] = {
                "right": [letter],
                "follows": [letter],
                "same": [],
                "off": [],
                "told": "",
                "unseen": "",
                "glance": "",
                "awkward": False,
                "none": False,
            }
            question = block.splitlines()[0]
            self.seen[question] += 1
            if self.fault is not None:
                verdict |= self.fault(letter, self.seen[question])
            said[str(n)] = verdict
        return json.dumps(said)

    def answer(self, request: Request) -> str:
        """Right with facts or image, always "A" without."""
        blind = "cannot see" in text_of(request)
        said = []
        for field in request.form.fields:
            key = next((o.key for o in field.options if "quiet" in o.text), "A")
            said.append("A" if blind else key)
        return said[0] if len(said) == 1 else json.dumps({"answers": said})


def run(
    folder: Path, staff: Staff, settings: QuestionSettings = SETTINGS, memes: int = 4
) -> BuiltQuestions:
    subjects = dict(list(sample_subjects().items())[40 : 40 + memes])

    async def work() -> BuiltQuestions:
        with (
            ModelClient(FakeModel(staff.write, "writer"), folder / "writer") as writer,
            ModelClient(FakeModel(staff.judge, "critic"), folder / "critic") as critic,
            ModelClient(FakeModel(staff.answer, "reader"), folder / "reader") as reader,
        ):
            return await build_questions(writer, subjects, settings, critic, 8, reader)

    return asyncio.run(work())


def count_log(folder: Path) -> dict[str, int]:
    lines = (folder / CALLS).read_text(encoding="utf-8").splitlines()
    return dict(Counter(json.loads(line)["step"].rpartition("/")[2] for line in lines))


def test_the_counts_of_the_report_are_those_of_the_call_logs(tmp_path: Path) -> None:
    staff = Staff(lambda _, time: {} if time > 1 else {"right": ["A", "B", "C", "D"]})
    built = run(tmp_path, staff)
    report = report_questions(built, SETTINGS, Roles("w", "c", "r"))
    assert report.calls == {
        role: count_log(tmp_path / role) for role in ("writer", "critic", "reader")
    }
    assert report.calls["writer"]["repair"] > 0
    assert report.rewritten == built.repaired["new options"] > 0
    assert report.faults["two right"] >= report.rewritten
    again = report_questions(run(tmp_path, staff), SETTINGS, Roles("w", "c", "r"))
    assert again.calls == report.calls
    total = sum(sum(counts.values()) for counts in report.calls.values())
    assert report.calls_per_meme == round(total / 4, 2)


def test_sound_questions_are_kept_and_every_one_was_checked_in_its_final_form(
    tmp_path: Path,
) -> None:
    staff = Staff()
    built = run(tmp_path, staff)
    assert len(built.questions) > 10
    assert built.faults == {}
    assert all(check_finished(question, SETTINGS) == [] for question in built.questions)
    assert len(staff.seen) >= len(built.questions)
    assert not any(question.none_is_key for question in built.questions)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"right": ["A", "B", "C"]}, "two right"),
        ({"follows": []}, "key unsupported"),
        ({"off": ["A", "B", "C"]}, "no answer"),
    ],
)
def test_what_stays_at_fault_is_rejected(
    tmp_path: Path, said: dict[str, object], reason: str
) -> None:
    built = run(tmp_path, Staff(lambda letter, _: {**said, "right": said.get("right", [letter])}))
    assert built.questions == ()
    reasons = {one.reason for one in built.rejected if one.stage == "final check"}
    assert any(reason in text for text in reasons) or reasons == {"final check: key wrong"}


def test_the_report_says_which_model_had_which_role(tmp_path: Path) -> None:
    built = run(tmp_path, Staff(), memes=1)
    shared = {
        ("a", "a", "a"): "one model wrote, judged and read the questions",
        ("a", "a", "b"): "the writer also judged the questions",
        ("a", "b", "a"): "the writer also read the questions",
        ("a", "b", "b"): "one model judged and read the questions",
        ("a", "b", "c"): "",
    }
    for names, told in shared.items():
        report = report_questions(built, SETTINGS, Roles(*names))
        assert (report.model, report.critic_model, report.reader_model) == names
        assert report.shared == told


def test_without_a_model_rules_alone_check_the_final_form(tmp_path: Path) -> None:
    built = run(tmp_path, Staff(), QuestionSettings(critic="statistics"))
    assert built.questions
    assert set(built.calls) == {"writer"}


class Knower(Staff):
    """A reader that finds every key without the meme."""

    def answer(self, request: Request) -> str:
        said = [next(o.key for o in f.options if "quiet" in o.text) for f in request.form.fields]
        return said[0] if len(said) == 1 else json.dumps({"answers": said})


@pytest.mark.parametrize(("right", "kept"), [("", True), ("ABCD", False)])
def test_a_solved_question_is_kept_by_a_floor_only_if_it_passes_the_final_check(
    tmp_path: Path, right: str, *, kept: bool
) -> None:
    settings = replace(SETTINGS, keep_per_dimension=1, rewrites=0)
    staff = Knower(lambda letter, _: {"right": list(right or letter)})
    built = run(tmp_path, staff, settings)
    assert bool(built.questions) is kept
    assert all(trial.solved_blindly for trial in built.trials.values())
    assert len(staff.seen) >= len(built.questions)
    bare = run(tmp_path / "bare", staff, replace(settings, keep_per_dimension=0))
    assert bare.questions == ()


def test_an_examiner_asks_nothing_about_a_question_that_has_not_changed(tmp_path: Path) -> None:
    subjects = {"m": QuestionSubject(Meme("m", image_path("en-001")), KNOWN)}
    asked: list[str] = []

    def say(request: Request) -> str:
        asked.append(text_of(request))
        said = {"right": list("ABC"), "follows": list("ABCD"), "same": [], "off": []}
        left = {"told": "", "unseen": "", "glance": "", "awkward": False, "none": False}
        return json.dumps({"1": {**said, **left}})

    async def work() -> None:
        with ModelClient(FakeModel(say, "critic"), tmp_path) as critic:
            examiner = Examiner(critic, subjects, SETTINGS, StaticEncoder())
            first = await examiner.check([SOUND])
            assert await examiner.check([SOUND]) == first
            assert len(asked) == 1
            changed = SOUND.swap(SOUND.wrong[0], QuestionOption("He trusts in nothing", "spare"))
            await examiner.check([changed])
            assert len(asked) == 2

    asyncio.run(work())
    assert "Cited facts: OverallIntent/blame" in asked[0]
    assert list_known(KNOWN.individuals[:1]) in asked[0]
    assert "marked as right" in find_step_prompts(SETTINGS.version)["check"].text
