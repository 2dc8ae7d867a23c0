"""Writing, choosing and completing chats with scripted models."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from memantics.benchmarks.chats import KINDS, Turn, WrittenChat
from memantics.benchmarks.punmemecn.load import ReadingFindings, read_chats
from memantics.construction.chats.build import (
    ChatReport,
    ReleasedChat,
    build_chats,
    make_square,
    name_files,
    write_chat_lines,
    write_chat_queue,
    write_punmemecn,
)
from memantics.construction.chats.distractors import Embedders, LayoutEncoder
from memantics.construction.chats.generate import (
    ChatSettings,
    find_prompts,
    make_subject,
    read_chat,
)
from memantics.construction.chats.rules import ChatDraft, Quality
from memantics.construction.chats.selection import (
    CosineFlow,
    Gauges,
    describe_corpus,
    measure_drafts,
    rank_drafts,
    select_chats,
)
from memantics.core.errors import InputError
from memantics.core.images import load
from memantics.core.memes import Meme
from memantics.core.queue import read_queue
from memantics.core.records import Image, Request
from memantics.core.samples import image_path
from memantics.core.task import Unparsed
from memantics.models.drafts import DraftSource
from memantics.models.fake import FakeModel, draft_reply
from memantics.models.fake import ScriptedReply as Reply
from tests.commands import Shell
from tests.construction.drafting import (
    LetterEncoder,
    all_different,
    fields_of,
    sample_memes,
    text_of,
    with_client,
)

EMBEDDERS = Embedders(LetterEncoder(), LayoutEncoder())
GAUGES = Gauges(LetterEncoder(), CosineFlow(LetterEncoder()))
IDS = ("en-001", "en-002", "en-003", "CN90001", "CN90002", "CN90003", "CN90004", "en-005")


def build(
    folder: Path,
    model: FakeModel,
    memes: tuple[Meme, ...],
    settings: ChatSettings | None = None,
    others: tuple[Meme, ...] = (),
) -> tuple[list[ReleasedChat], ChatReport]:
    own = settings or ChatSettings(per_meme=2)
    return with_client(
        folder, model, lambda client: build_chats(client, (memes, others), EMBEDDERS, GAUGES, own)
    )


def never_same(request: Request) -> Reply:
    return '{"same": false}' if fields_of(request) == {"same"} else draft_reply(request)


def test_every_chat_has_four_different_options_and_its_lists(tmp_path: Path) -> None:
    memes = sample_memes(*IDS)
    chats, report = build(tmp_path, FakeModel(draft_reply), memes)
    assert report.corpus.chats == len(chats) == 16
    ids = {meme.id for meme in memes}
    for chat in chats:
        own, options = chat.draft.subject.meme.id, chat.options
        assert all_different((own, *options.easy))
        assert all_different((own, *options.hard.values()))
        assert set(options.easy) | set(options.hard.values()) <= ids
        for kind in KINDS:
            assert own not in options.candidates[kind]
            assert len(options.candidates[kind]) <= 10
            assert options.hard[kind] not in options.rejected[kind]


def test_sentiment_candidates_share_the_type(tmp_path: Path) -> None:
    memes = sample_memes(*IDS)
    types = {meme.id: meme.notes["sentiment"].partition("-")[2] for meme in memes}
    chats, _ = build(tmp_path, FakeModel(never_same), memes)
    for chat in chats:
        own = types[chat.draft.subject.meme.id]
        assert {types[other] for other in chat.options.candidates["sentiment_sim"]} <= {own}


def test_the_nearest_image_leads_its_list(tmp_path: Path) -> None:
    memes = sample_memes("CN90001", "CN90001.similar_image", "CN90002", "CN90003", "en-001")
    chats, _ = build(tmp_path, FakeModel(never_same), memes)
    own = next(chat for chat in chats if chat.draft.subject.meme.id == "CN90001")
    assert own.options.candidates["image_sim"][0] == "CN90001.similar_image"


def test_wrong_answers_that_mean_the_same_are_turned_away(tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        if fields_of(request) == {"same"}:
            return json.dumps({"same": "forgetful" in text_of(request)})
        return draft_reply(request)

    memes = [*sample_memes(*IDS)]
    notes = {**memes[0].notes, "meaning": "somebody is forgetful"}
    memes[0] = Meme(memes[0].id, memes[0].image, memes[0].text, memes[0].language, notes)
    chats, report = build(tmp_path, FakeModel(script), tuple(memes))
    assert report.rejected > 0
    assert memes[0].id not in {own for chat in chats for own in chat.options.hard.values()}
    # Whoever means the same as all others has no wrong answers left, and is set aside.
    assert report.incomplete == 2
    assert not any(chat.draft.subject.meme.id == memes[0].id for chat in chats)


def test_no_pair_is_asked_twice(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def script(request: Request) -> Reply:
        if fields_of(request) == {"same"}:
            asked[text_of(request)] += 1
        return never_same(request)

    build(tmp_path, FakeModel(script), sample_memes(*IDS))
    assert asked
    assert max(asked.values()) == 1


def test_a_second_run_asks_nothing_and_writes_the_same(tmp_path: Path) -> None:
    memes = sample_memes(*IDS)
    first, second = FakeModel(draft_reply), FakeModel(draft_reply)
    write_chat_lines(tmp_path, build(tmp_path, first, memes)[0])
    before = (tmp_path / "chats.jsonl").read_bytes()
    write_chat_lines(tmp_path, build(tmp_path, second, memes)[0])
    assert first.asked > 0
    assert second.asked == 0
    assert (tmp_path / "chats.jsonl").read_bytes() == before


def test_a_chat_that_breaks_a_rule_is_written_again_with_the_reason(tmp_path: Path) -> None:
    seen: list[str] = []

    def script(request: Request) -> Reply:
        first = "could not be used" not in text_of(request)
        if first and fields_of(request) == {"turns", "sender"}:
            return '{"turns": [{"speaker": "A", "text": "my favourite meme"}], "sender": "A"}'
        seen.append(text_of(request))
        return never_same(request)

    _, report = build(tmp_path, FakeModel(script), sample_memes(*IDS))
    assert report.written == 32
    assert any("nobody speaks of pictures" in text for text in seen)


def test_rules_that_stay_broken_are_counted(tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        if fields_of(request) == {"turns", "sender"}:
            return '{"turns": [{"speaker": "A", "text": "hello you"}], "sender": "A"}'
        return never_same(request)

    chats, report = build(tmp_path, FakeModel(script), sample_memes(*IDS))
    assert chats == []
    assert report.broken == {"length": 32, "speakers": 32}
    assert report.statuses["unparsed"] == 32
    assert report.corpus.distinct_1 is None


def test_missing_notes_are_mined_first_and_the_chat_sees_no_image(tmp_path: Path) -> None:
    seen: list[Request] = []

    def script(request: Request) -> Reply:
        seen.append(request)
        return never_same(request)

    memes = sample_memes("en-001", "en-002", notes=False)
    others = sample_memes("en-003", "CN90001", "CN90002")
    chats, _ = build(tmp_path, FakeModel(script), memes, others=others)
    kinds = Counter(frozenset(fields_of(request)) for request in seen)
    assert kinds[frozenset({"caption"})] == 4
    assert kinds[frozenset({"target", "type"})] == 2
    assert {chat.draft.subject.meme.id for chat in chats} == {"en-001", "en-002"}
    written = [request for request in seen if fields_of(request) == {"turns", "sender"}]
    assert not any(
        isinstance(p, Image) for request in written for m in request.messages for p in m.parts
    )
    assert all(request.sampling.temperature == 1.0 for request in written)
    assert all_different((text_of(r), r.sampling.seed) for r in written)


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        ("Sure, here is a chat!", "no JSON"),
        ('{"turns": [], "sender": "A"} {"turns": [], "sender": "B"}', "2 JSON values"),
        ('{"turns": [{"speaker": "C", "text": "hi"}], "sender": "A"}', "'A' or 'B'"),
        ('{"turns": "A: hi", "sender": "A"}', "must be a list"),
        ('{"turns": [{"speaker": "A", "text": 5}], "sender": "A"}', "must be a text"),
        ('{"turns": [{"speaker": "A", "text": "hi"}', "cut off"),
        (
            json.dumps({"turns": [{"speaker": "A", "text": "again"}] * 10_000, "sender": "A"}),
            "10000 messages",
        ),
        ('{"turns": ' + "[" * 5000, "nested too deeply|cut off"),
    ],
)
def test_replies_that_are_no_chat_are_complained_about(reply: str, complaint: str) -> None:
    subject = make_subject(sample_memes("en-001")[0])
    with pytest.raises(Unparsed, match=complaint):
        read_chat(reply, subject)


def test_prose_fences_and_unseen_characters_around_a_chat_do_no_harm() -> None:
    body = json.dumps(
        {
            "turns": [
                {"speaker": "A", "text": "Did it\u200b go \u202ewell?\ud800"},
                {"speaker": "B", "text": "Not\nreally, no."},
            ],
            "sender": "A",
        }
    )
    said = read_chat(
        f"Of course!\n```json\n{body}\n```\nEnjoy.", make_subject(sample_memes("en-001")[0])
    )
    assert [turn.text for turn in said.turns] == ["Did it go well?\ufffd", "Not really, no."]


def test_three_memes_are_too_few(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="memes are too few for four options"):
        build(tmp_path, FakeModel(draft_reply), sample_memes("en-001", "en-002", "en-003"))


def draft(meme: str, topic: str, number: int, *texts: str, **metrics: float) -> ChatDraft:
    subject = make_subject(Meme(meme, Path(f"{meme}.png"), "caption", "en", {"meaning": "m"}))
    turns = tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts))  # type: ignore[arg-type]
    source = DraftSource("fake/x", "p", "t")
    quality = Quality(**metrics)
    return ChatDraft(subject, topic, number, WrittenChat(turns, "A"), source, quality)  # type: ignore[arg-type]


def test_the_better_chat_of_a_topic_stays() -> None:
    good = draft("a", "work", 0, "one two", "three four", perplexity=10.0, flow=0.9)
    bad = draft("a", "work", 1, "five six", "seven eight", perplexity=90.0, flow=0.2)
    other = draft("a", "games", 0, "nine ten", "eleven twelve", perplexity=50.0, flow=0.5)
    assert select_chats([bad, good, other], keep=2) == [good, other]
    assert rank_drafts([bad, good, other]) == [1.0, 0.0, 0.5]


def test_topics_are_kept_level() -> None:
    drafts = [
        draft(meme, topic, 0, f"{meme} says {topic} today", f"and {topic} it is, {meme}")
        for meme in "abcdef"
        for topic in ("work", "games", "daily")
    ]
    chosen = select_chats(drafts, keep=1)
    assert Counter(own.topic for own in chosen) == {"work": 2, "games": 2, "daily": 2}


def test_nearly_the_same_chat_does_not_stay_twice() -> None:
    one = draft("a", "work", 0, "so how was the long day", "it was quite all right thanks")
    twin = draft("a", "games", 0, "so how was the long day", "it was quite all right, thanks")
    assert select_chats([one, twin], keep=2) == [one]


def test_metrics_are_measured_and_named() -> None:
    class Even:
        note = "even"

        def measure(self, texts: list[str]) -> list[float | None]:
            return [float(len(text)) for text in texts]

    gauges = Gauges(LetterEncoder(), CosineFlow(LetterEncoder()), Even())  # type: ignore[arg-type]
    (own,) = measure_drafts([draft("a", "work", 0, "ab cd", "ab cd", "xy")], gauges)
    assert own.quality.perplexity == len("ab cd\nab cd\nxy")
    assert own.quality.flow is not None
    assert 0.4 < own.quality.flow < 1.0
    corpus = describe_corpus([own], gauges)
    assert corpus.measured_by["perplexity"] == "even"
    assert corpus.turns == {"4": 1}
    assert corpus.distinct_1 == 3 / 5


def test_the_files_are_read_by_the_reader_of_punmemecn(tmp_path: Path) -> None:
    memes = sample_memes(*IDS)
    chats, _ = build(tmp_path / "run", FakeModel(never_same), memes)
    out = write_punmemecn(tmp_path / "release", chats, memes)
    puns = frozenset(name.removesuffix(".png") for name in name_files(memes).values())
    for level in ("easy", "hard"):
        findings = ReadingFindings()
        read = read_chats(out / f"_Chat({level}).json", level, puns, findings)
        assert len(read) == len(chats)
        assert findings.skips == []
        assert not findings.repairs
        for own, chat in zip(read, chats, strict=True):
            assert len(own.turns) == len(chat.draft.said.turns)
            assert own.topic == chat.draft.topic
    # Again in another order: a number is another meme's now, and so must be its image.
    for order in (memes, memes[::-1]):
        write_punmemecn(out, chats, order)
        names = json.loads((out / "names.json").read_text())
        assert names == {f"CN{n:05}.png": meme.id for n, meme in enumerate(order, 1)}
        made = load(out / "images" / "CN00001.png")
        assert made.tobytes() == make_square(load(order[0].image)).tobytes()


def test_the_queue_shows_the_chat_and_hides_the_rest(tmp_path: Path) -> None:
    chats, _ = build(tmp_path / "run", FakeModel(never_same), sample_memes(*IDS))
    assert write_chat_queue(tmp_path / "queue", chats, "test") == len(chats)
    card, items = read_queue(tmp_path / "queue")
    assert card.workflow == "edit-chats"
    assert items[0].shown[0].kind == "list"
    assert str(items[0].values["turns"]).splitlines() == items[0].shown[0].value
    assert "hard" in items[0].hidden
    assert (tmp_path / "queue" / items[0].images[0]).is_file()


def test_prompts_have_the_holes_that_are_filled() -> None:
    prompts = find_prompts()
    assert sorted(prompts["chat"].placeholders) == [
        "language",
        "material",
        "seed",
        "sentiment",
        "topic",
        "turns",
    ]
    assert prompts["same"].placeholders == prompts["sentiment"].placeholders == {"material"}


def test_settings_of_draws_are_seeded(tmp_path: Path) -> None:
    memes = sample_memes(*IDS)
    settings = [ChatSettings(per_meme=1, seed=seed) for seed in (1, 1, 2)]
    easy = [
        [chat.options.easy for chat in build(tmp_path / str(i), FakeModel(never_same), memes, s)[0]]
        for i, s in enumerate(settings)
    ]
    assert easy[0] == easy[1] != easy[2]


@pytest.mark.slow
def test_the_command_builds_everything(shell: Shell) -> None:
    folder = shell.folder / "memes"
    folder.mkdir()
    for name in ("en-001", "en-002", "en-003", "en-005", "en-006"):
        shutil.copy(image_path(name), folder)
    ran = shell.run("build", "chats", "memes", "--model", "fake/drafter", "--language", "en")
    assert ran.code == 0, ran.err
    place = shell.folder / "builds" / "memes"
    chats = [json.loads(line) for line in (place / "chats.jsonl").read_text().splitlines()]
    # The memes are read first: chats that give the printed words away are not kept.
    assert len(chats) > 4
    assert (place / "punmemecn" / "_Chat(hard).json").is_file()
    assert len(read_queue(place / "queue-chats")[1]) == len(chats)
    assert "Distinct-2" in ran.out
    line = shell.refused("build", "chats", "memes", "--model", "fake/drafter", "--topic", "cats")
    assert "unknown topic" in line
