"""Write the sample memes as samples of the five benchmarks, each in its official format."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from memantics.core.samples import SampleIndividual, SampleMeme, SampleQuestion
from sample_data.edits import make_edits

BENCHMARKS = Path(__file__).resolve().parent.parent / "src" / "memantics" / "benchmarks"
NAMESPACE = "http://w3c.org/memes-ontology/general#"
WRITTEN = "2026-01-01T00:00:00"
# The release gives two dimensions other names in knowledge bases than in questions.
KB_NAMES = {"Emotion": "EmotionExpression", "Toxicity": "ToxicityAssessment"}
QA_NAMES = {"Toxicity": "ToxicityAssessment"}
INDEX = {
    "VisualMaterial": 1,
    "TextualMaterial": 2,
    "Emotion": 3,
    "Scene": 5,
    "BackgroundKnowledge": 6,
    "AnalogicalMapping": 8,
    "OverallIntent": 9,
    "SemioticProjection": 10,
    "TargetCommunity": 11,
    "Toxicity": 13,
}
TYPE_IDS = {"none": 0, "targeted": 1, "sexual": 2, "offence": 3, "dispirited": 4}
TARGETS = (
    "Gender",
    "Race",
    "MBTI",
    "Region",
    "Age",
    "Appearance & Body",
    "Disease & Health",
    "LGBTQ",
    "Occupation",
    "Community & Organize",
    "Specific Individual",
    "Poor",
    "Marriage & Relationship",
    "Parent",
    "Others",
)
TOPICS = ("sports", "entertainment", "technology", "games", "work", "daily")
Files = dict[str, bytes]


def pack(value: object) -> bytes:
    """Readable JSON."""
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def export_samples(records: Sequence[SampleMeme]) -> int:
    """Write all samples, remove files that no longer belong; how many files changed."""
    changed = 0
    for name, files in make_samples(records).items():
        folder = BENCHMARKS / name / "sample"
        for path, data in files.items():
            target = folder / path
            if not target.exists() or target.read_bytes() != data:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                changed += 1
        for stale in sorted(folder.rglob("*"), reverse=True):
            if stale.is_file() and stale.relative_to(folder).as_posix() not in files:
                stale.unlink()
                changed += 1
            elif stale.is_dir() and not any(stale.iterdir()):
                stale.rmdir()
    return changed


def make_samples(records: Sequence[SampleMeme]) -> dict[str, Files]:
    """The files of every benchmark's sample: path below ``sample/`` to content."""
    english = [r for r in records if r.language == "en"]
    chinese = [r for r in records if r.language == "zh"]
    return {
        "mquest": make_mquest(english),
        "memeintent": make_memeintent(english),
        "toxicn_mm": make_toxicn(chinese),
        "mer_bench": make_mer(english) | make_edits(english),
        "punmemecn": make_punmeme([r for r in chinese if r.pun and r.pun.group]),
    }


def make_mquest(memes: Iterable[SampleMeme]) -> Files:
    """Knowledge bases (raw and refined) and questions."""
    files: Files = {}
    for meme in memes:
        files[f"kb/{meme.id}_dimensions_reversed_raw.json"] = pack(make_base(meme))
        files[f"kb/{meme.id}_refined_ontology.ttl"] = make_turtle(meme).encode()
        for question in meme.questions:
            digest = hashlib.sha256(f"{meme.id}/{question.question}".encode()).hexdigest()
            dimension = QA_NAMES.get(question.dimension, question.dimension)
            name = f"{meme.id}_{dimension}_qa_{digest[:8]}.jsonld"
            pair = make_pair(meme, question, digest)
            files[f"qa/{meme.id}_qa/{dimension}/{name}"] = pack(pair)
    return files


def make_base(meme: SampleMeme) -> dict[str, object]:
    """A raw knowledge base."""
    return {
        "dimensions": [make_individual(individual) for individual in meme.knowledge],
        "metadata": {
            "image_path": f"images/{meme.file}",
            "image_name": meme.file,
            "extraction_timestamp": WRITTEN,
            "llm_provider": "written by hand",
            "dimensions_processed": [KB_NAMES.get(d, d) for d in INDEX],
            "total_dimensions_found": len(meme.knowledge),
            "pipeline_type": "reversed",
        },
        "success": True,
    }


def make_individual(individual: SampleIndividual) -> dict[str, object]:
    """One individual; as in the release, only scenes and background knowledge carry links here."""
    name = KB_NAMES.get(individual.dimension, individual.dimension)
    row: dict[str, object] = {
        "class_name": name,
        "class_uri": name,
        "instance_name": individual.name,
        "label": individual.label,
        "description": individual.description,
        "extraction_method": "hand_written",
        "dimension_index": INDEX[individual.dimension],
    }
    ends = [(r.relation, r.target.partition("/")[2]) for r in individual.relations]
    if individual.dimension == "Scene" and ends:
        row["directRelations"] = [
            {"from": individual.name, "relation": relation, "to": end} for relation, end in ends
        ]
    if individual.dimension == "BackgroundKnowledge" and ends:
        row["relatedTo"] = [{"entity": end, "relation": "relatedTo"} for _, end in ends]
    return row


def make_turtle(meme: SampleMeme) -> str:
    """The refined graph: individuals with all of their links."""
    lines = [
        f"@prefix : <{NAMESPACE}> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
    ]
    for own in meme.knowledge:
        facts = [f"a :{own.dimension}"]
        facts += [
            f"rdfs:label {_quote(own.label)}@en",
            f"rdfs:comment {_quote(own.description)}@en",
        ]
        facts += [f":{r.relation} :{r.target.partition('/')[2]}" for r in own.relations]
        lines.append(f"\n:{own.name} " + " ;\n  ".join(facts) + " .")
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def make_pair(meme: SampleMeme, question: SampleQuestion, digest: str) -> dict[str, object]:
    """One question file."""
    uuid = "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))
    return {
        "@context": {
            "@vocab": NAMESPACE,
            "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
            "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
            "owl": "http://www.w3.org/2002/07/owl#",
        },
        "@id": f"{NAMESPACE}qa_{uuid}",
        "@type": "QuestionAnswerPair",
        "question": question.question,
        "answers": [
            {"text": text, "is_correct": index == question.answer}
            for index, text in enumerate(question.options)
        ],
        "explanation": question.explanation,
        "dimension": QA_NAMES.get(question.dimension, question.dimension),
        "relatedInstances": [name.partition("/")[2] for name in question.related],
        "generationTimestamp": WRITTEN,
        "generationMethod": "hand_written",
        "sourceImage": {
            "@id": f"{NAMESPACE}image_{meme.id}",
            "@type": "Image",
            "filename": meme.file,
            "path": f"images/{meme.file}",
        },
    }


def make_memeintent(memes: Iterable[SampleMeme]) -> Files:
    """Intents and background knowledge, keyed from "1"."""
    rows = {
        str(number): {
            "img": meme.file,
            "text": meme.text.lower(),
            "image_caption": meme.description,
            "bks": "\n".join(f"* {line}" for line in meme.background or ("",)),
            "intents": list(meme.intents),
        }
        for number, meme in enumerate(memes, 1)
    }
    return {"sigdial.json": pack(rows)}


def make_toxicn(memes: Iterable[SampleMeme]) -> Files:
    """Harm labels in both versions, two fifths of each type for testing, and the code book."""
    parts: dict[str, list[SampleMeme]] = {"train": [], "test": []}
    seen: Counter[str] = Counter()
    # A reader of this release takes plain names; the other members of pun groups have none.
    for meme in (m for m in memes if re.fullmatch(r"[A-Za-z0-9_-]+\.png", m.file)):
        parts["test" if seen[meme.harm.type] % 5 in (1, 3) else "train"].append(meme)
        seen[meme.harm.type] += 1
    files: Files = {}
    for split, rows in parts.items():
        files[f"{split}_data_discription.json"] = pack([make_first(m) for m in rows])
        files[f"{split}_data_discription_2.0.json"] = pack([make_second(m) for m in rows])
    counts = Counter(m.harm.target for rows in parts.values() for m in rows)
    lines = [f"{code},{name},{counts[code]}" for code, name in enumerate(TARGETS, 1)]
    total = sum(counts[code] for code in range(1, 16))
    tail = [f",,{total}", f"Null,Other Harmful Types or Non-harmful,{counts[0]}"]
    files["target_info.csv"] = "\n".join(["ID,Category,Num", *lines, *tail, ""]).encode()
    return files


def make_first(meme: SampleMeme) -> dict[str, object]:
    """A row of label version 1."""
    harm = meme.harm
    kind, modal = TYPE_IDS[harm.type], (int(harm.text), int(harm.image))
    code = {(0, 0): 1, (1, 0): 2, (0, 1): 3, (1, 1): 4}[modal] if harm.harmful else 0
    return {
        "new_path": meme.file,
        "text": meme.text,
        "label": int(harm.harmful),
        "type": kind,
        "modal": list(modal),
        "new_label": [int(not harm.harmful), int(harm.harmful)],
        "new_type": [int(place == kind) for place in range(5)],
        "new_modal": code,
        "meme_discription": meme.description,
        "text_discription": meme.meaning,
    }


def make_second(meme: SampleMeme) -> dict[str, object]:
    """A row of label version 2.0."""
    return {
        "path": meme.file,
        "text": meme.text,
        "meme_discription": meme.description,
        "text_discription": meme.meaning,
        "label": int(meme.harm.harmful),
        "type": TYPE_IDS[meme.harm.type],
        "text_modal": int(meme.harm.text),
        "image_modal": int(meme.harm.image),
        "target": meme.harm.target,
    }


def make_mer(memes: Iterable[SampleMeme]) -> Files:
    """The index of source emotions, rewritten captions and edit plans."""
    rows = [
        {
            "id": meme.file,
            "det_emo": meme.emotion.source,
            "img_desc": f"Visual cues: {meme.description}\n\nText cues: {meme.meaning}",
            "pos_txt": meme.emotion.rewritten,
            "spec": meme.emotion.plan,
            "tgt_emo": meme.emotion.target,
            "gen_id": meme.file,
            "text": meme.text,
            "visual_type": meme.emotion.visual_type,
            "sentiment_polarity": meme.emotion.polarity,
            "layout_type": f"{meme.emotion.layout}_Meme",
        }
        for meme in memes
        if meme.emotion
    ]
    return {"index_final.json": pack(rows)}


def make_punmeme(memes: Sequence[SampleMeme]) -> Files:
    """Metadata of the pun groups, and chats with easy and hard distractors."""
    ordered = sorted(memes, key=lambda m: (m.pun is not None and m.pun.role != "pun", m.id))
    easy: dict[str, object] = {}
    hard: dict[str, object] = {}
    for meme in ordered:
        for chat in meme.chats:
            key = f"chat_{len(easy) + 1:05}"
            head = {"topic": chat.topic, "chat_history": [*chat.turns, f"{chat.speaker}："]}
            right = {"correct": meme.file}
            wrong = {f"wrong(random{n})": f"{i}.png" for n, i in enumerate(chat.easy, 1)}
            easy[key] = head | {"meme_response": right | wrong}
            pools = {
                f"wrong_candidates({kind}_sim)": repr([f"{i}.png" for i in ids])
                for kind, ids in (
                    ("text", chat.hard.candidates.text),
                    ("image", chat.hard.candidates.image),
                    ("sentiment", chat.hard.candidates.sentiment),
                )
            }
            picks = {
                "wrong(text_sim)": f"{chat.hard.text}.png",
                "wrong(image_sim)": f"{chat.hard.image}.png",
                "wrong(sentiment_sim)": f"{chat.hard.sentiment}.png",
            }
            hard[key] = head | {"meme_response": pools | right | picks}
    return {
        "_Meta.json": pack({meme.file: make_meta(meme) for meme in ordered}),
        "_Chat(easy).json": pack(easy),
        "_Chat(hard).json": pack(hard),
    }


def make_meta(meme: SampleMeme) -> dict[str, object]:
    """One meme's metadata; votes are a Python literal in a string, as in the release."""
    if meme.pun is None:
        raise ValueError(f"{meme.id} belongs to no pun group")
    is_pun = meme.pun.role == "pun"
    votes = {f"annotator_{n}": vote for n, vote in enumerate(meme.sentiment.votes, 1)}
    row: dict[str, object] = {
        "meme_type": "pun" if is_pun else "non-pun",
        "caption_1": meme.pun.caption,
    }
    if is_pun:
        row["caption_2"] = meme.pun.reading or meme.pun.caption
    row |= {
        "meme_sentiment": f"{meme.sentiment.target}-{meme.sentiment.type}",
        "meme_sentiment_annotations": repr(votes),
        "meme_explanation": meme.explanation,
    }
    if is_pun:
        said: dict[str, str] = {
            chat.topic: "\n".join([*chat.turns, f"{chat.speaker}：![表情包]({meme.file})"])
            for chat in meme.chats
        }
        row["meme_chat"] = {topic: said.get(topic) for topic in TOPICS}
    return row
