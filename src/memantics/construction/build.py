"""Generate benchmark data from memes: facts (knowledge), questions, captions, intents, chats.

Every function calls a model and logs its calls in the build folder. A logged call is not made
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Generic, TypeVar

from pydantic import JsonValue

from memantics.construction.chats.build import (
    ChatReport,
    PunAnnotations,
    build_chats,
    keep_publishable,
    write_chat_lines,
    write_chat_queue,
    write_punmemecn,
)
from memantics.construction.chats.generate import ChatSettings
from memantics.construction.chats.selection import ChatTools, open_tools
from memantics.construction.extract_settings import (
    make_extract_settings,
    read_extract_settings,
    with_dimensions,
    with_retrieval,
)
from memantics.construction.questions.asking import QuestionSubject
from memantics.construction.questions.build import build_questions
from memantics.construction.questions.chain import list_slots, pair_subjects
from memantics.construction.questions.records import QuestionSettings
from memantics.construction.questions.report import (
    QUESTIONS,
    QuestionReport,
    Roles,
    report_questions,
    write_questions,
    write_review,
)
from memantics.construction.questions.report import QUEUE as QUESTION_QUEUE
from memantics.construction.questions.solver import BlindTrial, try_items
from memantics.construction.sample import KnownBuild, QuestionSample, sample_questions
from memantics.core.data import Skip
from memantics.core.errors import InputError
from memantics.core.files import read_regular, replace_file, whole_file
from memantics.core.memes import CAPTIONS, Meme, read_captions, read_memes, with_captions
from memantics.core.model import Asker
from memantics.core.parameters import (
    BuildFolder,
    BuildModel,
    FewMemes,
    Flag,
    MadeBy,
    MemeFolder,
    TextTaken,
)
from memantics.core.result import Result, to_plain
from memantics.core.waiting import make_sync
from memantics.evaluation import options as shared
from memantics.models.client import (
    SAMPLE,
    CallSettings,
    ModelClient,
    ProgressWatch,
    drain,
    foresee,
    open_client,
    require_model,
    split_watch,
)
from memantics.models.drafts import Drafted, Miss, count_statuses
from memantics.understanding.captions import mine
from memantics.understanding.extraction.chain import ExtractSettings, extract_memes
from memantics.understanding.extraction.report import (
    Adopted,
    KnowledgeReport,
    adopt_memes,
    write_report,
)
from memantics.understanding.intents.draft import (
    INTENTS,
    DraftedIntents,
    IntentSettings,
    draft_intents,
    write_intent_queue,
    write_intents,
)
from memantics.understanding.knowledge.ontology.vocabulary import read_specs
from memantics.understanding.knowledge.records import KNOWLEDGE, dump_knowledge, read_knowledge
from memantics.understanding.reading import find_memes, read_once

__all__ = [
    "INTENTS",
    "KNOWLEDGE",
    "QUESTIONS",
    "QUESTION_QUEUE",
    "Built",
    "ChatReport",
    "ChatSettings",
    "ChatTools",
    "ExtractSettings",
    "IntentSettings",
    "KnowledgeReport",
    "Miss",
    "QuestionReport",
    "QuestionSample",
    "QuestionSettings",
    "captions",
    "chats",
    "intents",
    "knowledge",
    "make_extract_settings",
    "questions",
    "read_extract_settings",
    "sample_questions",
    "with_dimensions",
    "with_retrieval",
]


INTENT_QUEUE, CHAT_QUEUE, CHAT_RELEASE = "queue-intents", "queue-chats", "punmemecn"
DIMENSION_FILES = "dimensions"
CHAT_REPORT, QUESTION_REPORT = "chats.json", "report-questions.json"
_NEIGHBOURS = 20  # memes that serve as distractors in the cost estimate before chats are written
Report = TypeVar("Report")
ReaderModel = Annotated[
    str | None,
    Flag("Model that answers questions without the meme. Default: the critic.", metavar="MODEL"),
]


@dataclass(frozen=True, slots=True)
class Built(Result, Generic[Report]):
    """Store the result of a build step and the folder it was written to.

    ``counts`` is the number of calls by final status (answered, refused, unparsed, failed).
    ``skips`` lists memes whose image cannot be read. ``tokens`` is the number of tokens sent and
    received. ``adapted`` lists changes that the server required in requests.
    """

    folder: Path
    counts: Mapping[str, int]
    report: Report
    skips: tuple[Skip, ...] = ()
    tokens: tuple[int, int] = (0, 0)
    adapted: tuple[str, ...] = ()


def _end(
    place: Path,
    counts: Mapping[str, int],
    report: Report,
    skips: tuple[Skip, ...],
    *clients: ModelClient,
) -> Built[Report]:
    """Return the build result with the token counts of its clients; count each client once."""
    seen = [client.progress for client in {id(client): client for client in clients}.values()]
    tokens = sum(one.tokens_in for one in seen), sum(one.tokens_out for one in seen)
    adapted = tuple(dict.fromkeys(line for one in seen for line in one.adapted))
    return Built(place, counts, report, skips, tokens, adapted)


def _place(
    folder: Path | str | None, out: Path | str | None, model: str | None
) -> tuple[Path, Path]:
    """Return the meme folder and the build folder; raise if no folder or no model is given."""
    if folder is None:
        raise InputError(
            "no meme folder was given",
            hint="give a folder of images, or 'sample' for the sample data",
        )
    require_model(model)
    return Path(folder), Path(out) if out else Path("builds") / Path(folder).resolve().name


def _adopt(memes: tuple[Meme, ...], place: Path, captions: Path | str | None) -> Adopted:
    """Copy memes into the build folder, with descriptions from an earlier ``build captions``."""
    found = Path(captions) if captions else place / CAPTIONS
    if captions is not None and not found.is_file():
        raise InputError(
            f"{captions}: file not found", hint="create it with 'memantics build captions'"
        )
    known = read_captions(found) if found.is_file() else {}
    return adopt_memes(with_captions(memes, known), place)


async def knowledge_async(
    folder: MemeFolder,
    *,
    model: BuildModel,
    settings: Annotated[ExtractSettings | None, MadeBy(read_extract_settings)] = None,
    out: BuildFolder = None,
    limit: FewMemes = None,
    text: TextTaken = "caption",
    calls: CallSettings | None = None,
    progress: ProgressWatch | None = None,
) -> Built[KnowledgeReport]:
    """Extract what memes show, say and mean, with one model call per dimension of meaning.

    Calls are logged in the folder of the build; logged calls are reused.

    Args:
        folder: A folder of memes, a registered release, or ``sample`` for the sample data.
        model: Model that is called, ``KIND/NAME``.
        settings: Dimensions, order, background and language.
        out: Folder of the build. Default: ``builds/NAME-OF-FOLDER``.
        limit: Take only the first memes.
        text: Which text lines of an image form its caption: those with the role caption
            (``"caption"``), or all lines (``"all"``).
        calls: How the model is called; see :class:`CallSettings`.
        progress: Function that is called with the counts so far.

    Returns:
        The folder of the build, the number of calls by final status, the tokens, and the report.

    Raises:
        InputError: No folder or no model is named, or the folder holds no memes.
        ModelError: The model cannot be reached.

    Example:
        >>> built = mm.build.knowledge("memes", model="fake/builder")  # for real texts, a VLM
        >>> built.counts["answered"]
        40
    """
    memes, place = _place(folder, out, model)
    settings = replace(settings or ExtractSettings(), collection=memes.resolve().name)
    found = (await read_once(find_memes(memes, notes=False), limit, text))[:limit]
    calls = calls or CallSettings()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_client(model, calls, place, progress))
        adopted = adopt_memes(found, place)
        few, plain = adopted.memes[:SAMPLE], settings
        await foresee(
            client, len(adopted.memes), lambda trial: drain(extract_memes(trial, few, plain))
        )
        client.expect(len(adopted.memes) * settings.steps)
        settings = await _open_steps(stack, settings, calls, place)
        report = KnowledgeReport.begin(client.model, settings, adopted.skips)
        with whole_file(place / KNOWLEDGE) as file:
            window = 2 * calls.concurrency
            async for extraction in extract_memes(client, adopted.memes, settings, window):
                file.write(dump_knowledge(extraction.knowledge))
                report.add(extraction)
    write_report(place, report)
    return _end(place, report.statuses, report, adopted.skips, client)


async def _open_steps(
    stack: AsyncExitStack, settings: ExtractSettings, calls: CallSettings, place: Path
) -> ExtractSettings:
    """Open the models that individual steps use; copy the user's dimension files into the build."""
    names = dict.fromkeys(step.told.model for step in settings.plan.steps if step.told.model)
    askers: dict[str, Asker] = {}
    for number, name in enumerate(names, 1):
        # Only one process may write a log of model calls, so each step's model logs to its own
        # folder.
        opened = open_client(name, calls, place / f"model-{number}", None)
        askers[name] = await stack.enter_async_context(opened)
    for path in settings.files:
        replace_file(place / DIMENSION_FILES / path.name, read_regular(path), "dimension")
    return replace(settings, askers=askers)


async def captions_async(
    folder: MemeFolder,
    *,
    model: BuildModel,
    language: Annotated[
        str, Flag("Language of the output. Default: the language of each meme.")
    ] = "",
    again: Annotated[bool, Flag("Also generate captions that the memes already have.")] = False,
    wording: Annotated[
        mine.CaptionWording,
        Flag(
            "Prompt wording: ours (plain), or the templates of the ToxiCN MM paper, which "
            "name language and culture."
        ),
    ] = "plain",
    out: BuildFolder = None,
    limit: FewMemes = None,
    text: TextTaken = "caption",
    calls: CallSettings | None = None,
    progress: ProgressWatch | None = None,
) -> Built[Drafted[mine.Captioned]]:
    """Draft descriptions of what the words of memes mean and of what their images show.

    Calls are logged in the folder of the build; logged calls are reused.

    Args:
        folder: A folder of memes, a registered release, or ``sample`` for the sample data.
        model: Model that is called, ``KIND/NAME``.
        language: Write in this language. Default: the meme's.
        again: Also request descriptions for memes that already have one.
        wording: ``plain``, or the templates of ToxiCN MM's paper, which name language and culture.
        out: Folder of the build. Default: ``builds/NAME-OF-FOLDER``.
        limit: Take only the first memes.
        text: Which text lines of an image form its caption: those with the role caption
            (``"caption"``), or all lines (``"all"``).
        calls: How the model is called; see :class:`CallSettings`.
        progress: Function that is called with the counts so far.

    Returns:
        The folder of the build, the number of calls by final status, the tokens, and the report.

    Raises:
        InputError: No folder or no model is named, or the folder holds no memes.
        ModelError: The model cannot be reached.

    Example:
        >>> built = mm.build.captions("memes", model="fake/drafter")  # for real texts, a VLM
        >>> built.counts["answered"]
        8
    """
    source, place = _place(folder, out, model)
    memes = await read_once(find_memes(source), limit, text)
    if again:
        memes = tuple(replace(meme, notes={}) for meme in memes)
    async with open_client(model, calls or CallSettings(), place, progress) as client:
        # Captions from an earlier run come from the call log, which also records their source.
        adopted = adopt_memes(memes, place)
        kept = adopted.memes[:limit]
        few = kept[:SAMPLE]
        await foresee(
            client,
            len(kept),
            lambda trial: mine.mine_captions(trial, few, language, wording=wording),
        )
        report = await mine.mine_captions(client, kept, language, client.expect, wording)
    mine.write_captions(place, report)
    return _end(place, count_statuses([report.tally]), report, adopted.skips, client)


async def intents_async(
    folder: MemeFolder,
    *,
    model: BuildModel,
    settings: IntentSettings | None = None,
    captions: shared.CaptionFile = None,
    out: BuildFolder = None,
    limit: FewMemes = None,
    text: TextTaken = "caption",
    calls: CallSettings | None = None,
    progress: ProgressWatch | None = None,
) -> Built[Drafted[DraftedIntents]]:
    """Draft background knowledge and ranked intents, and the queue in which people edit them.

    Calls are logged in the folder of the build; logged calls are reused.

    Args:
        folder: A folder of memes, a registered release, or ``sample`` for the sample data.
        model: Model that is called, ``KIND/NAME``.
        settings: Number, language and attempts of the drafts.
        captions: Mined descriptions. Default: ``captions.jsonl`` in ``out``.
        out: Folder of the build. Default: ``builds/NAME-OF-FOLDER``.
        limit: Take only the first memes.
        text: Which text lines of an image form its caption: those with the role caption
            (``"caption"``), or all lines (``"all"``).
        calls: How the model is called; see :class:`CallSettings`.
        progress: Function that is called with the counts so far.

    Returns:
        The folder of the build, the number of calls by final status, the tokens, and the report.

    Raises:
        InputError: No folder or no model is named, or the folder holds no memes.
        ModelError: The model cannot be reached.

    Example:
        >>> built = mm.build.intents("memes", model="fake/drafter")  # for real texts, a VLM
        >>> built.counts["answered"]
        8
    """
    source, place = _place(folder, out, model)
    memes = await read_once(find_memes(source), limit, text)
    async with open_client(model, calls or CallSettings(), place, progress) as client:
        adopted = _adopt(memes, place, captions)
        kept, settings = adopted.memes[:limit], settings or IntentSettings()
        few, chosen = kept[:SAMPLE], settings
        await foresee(client, len(kept), lambda trial: draft_intents(trial, few, chosen))
        report = await draft_intents(client, kept, settings, client.expect)
    write_intents(place, report)
    write_intent_queue(place / INTENT_QUEUE, report, f"memantics build intents, {model}")
    return _end(place, count_statuses([report.tally]), report, adopted.skips, client)


async def chats_async(
    folder: MemeFolder,
    *,
    model: BuildModel,
    settings: ChatSettings | None = None,
    tools: ChatTools | None = None,
    captions: shared.CaptionFile = None,
    out: BuildFolder = None,
    limit: shared.WriteLimit = None,
    text: TextTaken = "caption",
    annotations: PunAnnotations = None,
    calls: CallSettings | None = None,
    progress: ProgressWatch | None = None,
) -> Built[ChatReport]:
    """Write chats that end in a meme, with similar and random memes as wrong answers.

    Calls are logged in the folder of the build; logged calls are reused.

    Args:
        folder: A folder of memes, a registered release, or ``sample`` for the sample data.
        model: Model that is called, ``KIND/NAME``.
        settings: Length, language and attempts of the chats.
        tools: Encoders and measures that choose wrong answers and check chats.
        captions: Mined descriptions. Default: ``captions.jsonl`` in ``out``.
        out: Folder of the build. Default: ``builds/NAME-OF-FOLDER``.
        limit: Write chats about the first memes; all others may be wrong answers.
        text: Which text lines of an image form its caption: those with the role caption
            (``"caption"``), or all lines (``"all"``).
        annotations: Annotations of the memes by the workflow ``pun-form``: only puns that
            :func:`publish` accepts are used, also as wrong answers.
        calls: How the model is called; see :class:`CallSettings`.
        progress: Function that is called with the counts so far.

    Returns:
        The folder of the build, the number of calls by final status, the tokens, and the report.

    Raises:
        InputError: No folder or no model is named, or the folder holds no memes.
        ModelError: The model cannot be reached.

    Example:
        >>> built = mm.build.chats("memes", model="fake/drafter")  # for real texts, a VLM
        >>> built.counts["answered"]
        41
    """
    source, place = _place(folder, out, model)
    labels = Path(annotations) if annotations else None
    kept = keep_publishable(find_memes(source), source, labels)
    memes = await read_once(kept, limit, text)
    settings, calls = settings or ChatSettings(), calls or CallSettings()
    with open_tools(tools or ChatTools()) as (embedders, gauges):
        async with open_client(model, calls, place, progress) as client:
            adopted = _adopt(memes, place, captions)
            count = limit or len(adopted.memes)
            parts = (adopted.memes[:count], adopted.memes[count:])
            few = (parts[0][:SAMPLE], (*parts[0][SAMPLE:], *parts[1])[:_NEIGHBOURS])
            await foresee(
                client,
                len(parts[0]),
                lambda trial: build_chats(trial, few, embedders, gauges, settings),
            )
            chats, report = await build_chats(client, parts, embedders, gauges, settings)
    write_chat_lines(place, chats)
    write_report(place, report, CHAT_REPORT)
    if chats:
        write_punmemecn(place / CHAT_RELEASE, chats, adopted.memes)
        write_chat_queue(place / CHAT_QUEUE, chats, f"memantics build chats, {report.model}")
    return _end(place, report.statuses, report, adopted.skips, client)


async def questions_async(
    folder: KnownBuild,
    *,
    model: BuildModel,
    settings: QuestionSettings | None = None,
    critic_model: shared.CriticModel = None,
    reader_model: ReaderModel = None,
    limit: FewMemes = None,
    calls: CallSettings | None = None,
    progress: ProgressWatch | None = None,
) -> Built[QuestionReport]:
    """Write questions about the extracted facts of a build, test them, and remove answer cues.

    Args:
        folder: A folder that ``build.knowledge`` made.
        model: Model that writes, ``KIND/NAME``.
        settings: Dimensions, number of options, critic and language.
        critic_model: Model that judges the questions with the meme. Default: the writer.
        reader_model: Model that answers them without the meme. Default: the critic.
        limit: Take only the first memes.
        calls: How the models are called; see :class:`CallSettings`.
        progress: Function that is called with the counts so far.

    Returns:
        The folder of the build, the number of calls by final status, the tokens, and the report.

    Raises:
        InputError: No model is named, or the build contains no extracted facts (knowledge).
        ModelError: The model cannot be reached.

    Example:
        >>> built = mm.build.knowledge("memes", model="fake/builder")  # for real texts, a VLM
        >>> asked = mm.build.questions("builds/memes", model="fake/builder")
        >>> asked.counts["failed"]
        0
    """
    place, settings = Path(folder), settings or QuestionSettings()
    if (critic_model or reader_model) and not settings.judged:
        named = "--critic-model" if critic_model else "--reader-model"
        raise InputError(f"{named} needs a model as critic", hint="add --critic model")
    if (place / DIMENSION_FILES).is_dir():
        settings = replace(settings, specs=read_specs(place / DIMENSION_FILES))
    subjects, calls = _find_subjects(place, limit), calls or CallSettings()
    async with AsyncExitStack() as stack:
        roles = (model, critic_model, reader_model)
        clients = await _open_roles(stack, roles, calls, place, progress)
        writer, critic, reader = clients
        slots = len(list_slots(subjects, settings))
        writer.expect(slots)
        if settings.judged:
            reader.expect(-(-2 * slots // settings.at_once))
            critic.expect(-(-3 * slots // settings.at_once))
        few = dict(islice(subjects.items(), SAMPLE))
        await foresee(
            writer,
            len(subjects),
            lambda trial: build_questions(trial, few, settings, trial, SAMPLE),
        )
        window = 2 * calls.concurrency
        built = await build_questions(writer, subjects, settings, critic, window, reader)
        second: dict[str, BlindTrial] = {}
        if built.trials:
            # A model guesses its own questions more easily. A second model, the small embedded
            # reader, therefore also tries to answer them without the meme.
            opened = open_client("embedded/reader", calls, place / "second-reader")
            embedded = await stack.enter_async_context(opened)
            alone = replace(settings, at_once=1)
            second = await try_items(embedded, built.items, subjects, alone, blind_only=True)
        names = Roles(writer.model, *((critic.model, reader.model) if settings.judged else ()))
        report = report_questions(built, settings, names, second)
    write_questions(place, built.questions, built.rejected)
    write_review(place, built.questions, subjects, settings.language, roles=names)
    write_report(place, report, QUESTION_REPORT)
    return _end(place, report.statuses, report, (), *clients)


async def _open_roles(
    stack: AsyncExitStack,
    models: tuple[str | None, str | None, str | None],
    calls: CallSettings,
    place: Path,
    progress: ProgressWatch | None,
) -> tuple[ModelClient, ModelClient, ModelClient]:
    """Open the writer, the critic (default: the writer) and the reader (default: the critic).

    Only one client may write a log of model calls, so each other model has its own folder.
    """
    watches = split_watch(progress, len(models))
    opened: dict[str, ModelClient] = {}
    clients: list[ModelClient] = []
    name = ""
    for model, folder, watch in zip(models, ("", "critic", "reader"), watches, strict=True):
        name = require_model(model or name or None)
        if name not in opened:
            client = open_client(name, calls, place / folder, watch)
            opened[name] = await stack.enter_async_context(client)
        clients.append(opened[name])
    writer, critic, reader = clients
    return writer, critic, reader


def _find_subjects(folder: Path, limit: int | None) -> dict[str, QuestionSubject]:
    """Return the memes of a build with their extracted facts; raise if no meme has any."""
    known = list(read_knowledge(folder))
    subjects = pair_subjects(read_memes(folder)[:limit], known)
    if not any(subject.knowledge.individuals for subject in subjects.values()):
        raise InputError(
            f"{folder}: the build has no knowledge about these memes, so no question "
            "can be written",
            hint="see report.json: the extraction may have failed",
        )
    return subjects


def summarise_captions(built: Built[Drafted[mine.Captioned]]) -> dict[str, JsonValue]:
    """Return the number of generated captions by source and status."""
    tally = {"repaired": built.report.tally.repaired, "misses": built.report.tally.misses}
    found = {"memes": len(built.report.drafts), "origins": mine.count_origins(built.report)}
    files = {"captions": built.folder / CAPTIONS}
    return {
        k: to_plain(v) for k, v in {**found, "statuses": built.counts, **tally, **files}.items()
    }


def summarise_intents(built: Built[Drafted[DraftedIntents]]) -> dict[str, JsonValue]:
    """Return the number of drafted intents and the files that were written."""
    drafts, tally = built.report.drafts, built.report.tally
    found = {"memes": len(drafts), "without_intent": sum(not draft.intents for draft in drafts)}
    ended = {"statuses": built.counts, "repaired": tally.repaired, "misses": tally.misses}
    files = {"intents": built.folder / INTENTS, "queue": built.folder / INTENT_QUEUE}
    return {k: to_plain(v) for k, v in {**found, **ended, **files}.items()}


knowledge = make_sync(knowledge_async)
captions = make_sync(captions_async)
intents = make_sync(intents_async)
chats = make_sync(chats_async)
questions = make_sync(questions_async)
