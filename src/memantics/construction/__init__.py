"""Benchmark construction: collect memes, write questions, chats and pairs, regenerate, publish."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memantics.construction import build as build
    from memantics.construction.build import Built as Built
    from memantics.construction.build import captions as captions
    from memantics.construction.build import chats as chats
    from memantics.construction.build import intents as intents
    from memantics.construction.build import knowledge as knowledge
    from memantics.construction.build import questions as questions
    from memantics.construction.build import summarise_captions as summarise_captions
    from memantics.construction.build import summarise_intents as summarise_intents
    from memantics.construction.build_tables import describe_intents as describe_intents
    from memantics.construction.build_tables import describe_plan as describe_plan
    from memantics.construction.build_tables import note_chats as note_chats
    from memantics.construction.build_tables import note_knowledge as note_knowledge
    from memantics.construction.build_tables import note_misses as note_misses
    from memantics.construction.build_tables import note_questions as note_questions
    from memantics.construction.build_tables import tabulate_captions as tabulate_captions
    from memantics.construction.build_tables import tabulate_chats as tabulate_chats
    from memantics.construction.build_tables import tabulate_knowledge as tabulate_knowledge
    from memantics.construction.build_tables import tabulate_leaks as tabulate_leaks
    from memantics.construction.build_tables import tabulate_plan as tabulate_plan
    from memantics.construction.build_tables import tabulate_questions as tabulate_questions
    from memantics.construction.chats.build import ChatReport as ChatReport
    from memantics.construction.chats.quality import ChatMetrics as ChatMetrics
    from memantics.construction.chats.quality import measure_chats as measure_chats
    from memantics.construction.collect.collect import collect as collect
    from memantics.construction.collect.collect import find_page as find_page
    from memantics.construction.collect.collect import list_rules as list_rules
    from memantics.construction.collect.collect import summarise as summarise
    from memantics.construction.collect.collect import tabulate as tabulate
    from memantics.construction.collect.collect import tabulate_rules as tabulate_rules
    from memantics.construction.collect.gather import Collected as Collected
    from memantics.construction.collect.gather import CollectSettings as CollectSettings
    from memantics.construction.hard_negatives import Grouped as Grouped
    from memantics.construction.hard_negatives import HardNegativeCheck as HardNegativeCheck
    from memantics.construction.hard_negatives import check_hard_negatives as check_hard_negatives
    from memantics.construction.hard_negatives import group_hard_negatives as group_hard_negatives
    from memantics.construction.pairs.check import BuiltPairs as BuiltPairs
    from memantics.construction.pairs.check import PairCheck as PairCheck
    from memantics.construction.pairs.check import build_pairs as build_pairs
    from memantics.construction.pairs.check import check_pairs as check_pairs
    from memantics.construction.publish.publish import PublishedBenchmark as PublishedBenchmark
    from memantics.construction.publish.publish import publish as publish
    from memantics.construction.questions.report import QUESTIONS as QUESTIONS
    from memantics.construction.questions.report import QUEUE as QUEUE
    from memantics.construction.questions.report import QuestionReport as QuestionReport
    from memantics.construction.queues import AppliedTexts as AppliedTexts
    from memantics.construction.queues import MadeQueue as MadeQueue
    from memantics.construction.queues import apply_texts as apply_texts
    from memantics.construction.queues import make_error_queue as make_error_queue
    from memantics.construction.queues import make_questionnaire as make_questionnaire
    from memantics.construction.queues import make_text_queue as make_text_queue
    from memantics.construction.ratings import Compared as Compared
    from memantics.construction.ratings import RatingQueue as RatingQueue
    from memantics.construction.ratings import Ratings as Ratings
    from memantics.construction.ratings import compare_questions as compare_questions
    from memantics.construction.ratings import rate_questions as rate_questions
    from memantics.construction.ratings import summarise_ratings as summarise_ratings
    from memantics.construction.regenerate import Regenerated as Regenerated
    from memantics.construction.regenerate import regenerate as regenerate
    from memantics.construction.regenerate import regenerate_async as regenerate_async
    from memantics.construction.sample import QuestionSample as QuestionSample
    from memantics.construction.sample import sample_questions as sample_questions
else:
    from memantics.core.lazy import offer

    offer(__name__, __file__)
