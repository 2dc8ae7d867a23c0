"""What the classes of ToxiCN MM are called, in both languages, and what replies may call them."""

from __future__ import annotations

from collections.abc import Mapping

from memantics.benchmarks.toxicn_mm.rows import TARGETS

HARMFUL, HARMLESS = "harmful", "harmless"
NOBODY = "none"
Words = Mapping[str, Mapping[str, str]]

VERDICTS: Words = {
    "zh": {HARMFUL: "有害", HARMLESS: "无害"},
    "en": {HARMFUL: "harmful", HARMLESS: "harmless"},
}
VERDICT_ALIASES: Mapping[str, tuple[str, ...]] = {
    HARMFUL: ("有害", "harmful"),
    HARMLESS: (
        *("无害", "没有害", "没害", "不有害", "不是有害", "不算有害", "并非有害", "非有害"),
        *("harmless", "not harmful", "non-harmful", "non harmful", "not a harmful meme"),
    ),
}
# The letters and their order are the paper's; the class ids of the files have another.
LETTERS: Mapping[str, str] = {
    "A": "targeted",
    "B": "offence",
    "C": "sexual",
    "D": "dispirited",
    "E": "none",
}
TYPES: Words = {
    "zh": {
        "targeted": "针对性有害：嫌弃、贬低看得出是谁的某个人或某一类人，或对他们抱有成见",
        "offence": "一般冒犯：话里带刺、出口伤人或粗俗，但没有针对具体的人或人群；"
        "只对着看图的“你”说，也属于这一类",
        "sexual": "性暗示：往性上引，但不歧视哪个性别，也不涉及性侵害",
        "dispirited": "消沉：透着绝望，或把自己说得一无是处",
        "none": "无害：没有上面这些意思",
    },
    "en": {
        "targeted": "targeted: looks down on a certain person or a kind of people, or repeats a"
        " cliché about them",
        "offence": "general offence: biting, insulting or vulgar, but aimed at no certain person or"
        " group; so is a rude word to a bare “you”, whoever reads it",
        "sexual": "sexual innuendo: hints at sex to arouse, without sexism or assault",
        "dispirited": "dispirited: gloom and hopelessness, or self-contempt",
        "none": "harmless: none of these",
    },
}
TYPE_ALIASES: Mapping[str, tuple[str, ...]] = {
    "targeted": ("针对性有害", "针对性", "targeted harmful", "targeted"),
    "offence": (
        "一般冒犯",
        "一般性冒犯",
        "general offence",
        "general offense",
        "general offensive",
    ),
    "sexual": ("性暗示", "sexual innuendo"),
    "dispirited": ("消沉", "颓废", "dispirited", "dispirited culture"),
    "none": VERDICT_ALIASES[HARMLESS],
}
_TARGETS_ZH = (
    *("性别", "种族", "MBTI", "地域", "年龄", "外貌身材", "疾病与健康", "LGBTQ", "职业"),
    *("社群或组织", "某个具体的人", "贫穷", "婚恋状况", "父母", "其他"),
)
_TARGETS_EN = (
    *("gender", "race", "MBTI", "region", "age", "looks and body", "illness and health", "LGBTQ"),
    *("occupation", "community or organisation", "specific person", "poverty"),
    *("marriage and relationships", "parents", "other"),
)
TARGET_NAMES: Words = {
    "zh": dict(zip(TARGETS, _TARGETS_ZH, strict=True)) | {NOBODY: "没有针对谁"},
    "en": dict(zip(TARGETS, _TARGETS_EN, strict=True)) | {NOBODY: "nobody"},
}
_MORE: Mapping[str, tuple[str, ...]] = {
    "gender": ("女性", "男性", "sex", "women", "men"),
    "race": ("民族", "ethnicity"),
    "region": ("地区", "region or nationality"),
    "body": ("外貌", "身材", "外貌与身材", "appearance", "appearance and body", "body", "looks"),
    "health": ("疾病", "健康", "疾病健康", "disease", "health", "illness", "disease and health"),
    "lgbtq": ("性少数", "性取向", "LGBT", "sexual orientation"),
    "community": ("社群", "组织", "社群与组织", "community", "organisation", "organization"),
    "individual": ("特定个人", "具体的人", "specific individual", "individual"),
    "poverty": ("贫困", "穷人", "poor"),
    "relationship": ("婚恋", "婚姻", "恋爱", "marriage", "relationship", "relationships"),
    "parent": ("家长", "parent"),
    "other": ("其它", "others"),
    NOBODY: ("没有针对", "没有目标", "无目标", "no one", "none"),
}
TARGET_ALIASES: Mapping[str, tuple[str, ...]] = {
    name: (TARGET_NAMES["zh"][name], TARGET_NAMES["en"][name], *_MORE.get(name, ()))
    for name in (*TARGETS, NOBODY)
}
QUESTIONS: Words = {
    "zh": {
        "detection": "这张表情包有害吗？",
        "type": "这张表情包有没有害？有害的话，是哪一种？",
        "target": "这张表情包针对的是哪一类人？",
    },
    "en": {
        "detection": "Is this meme harmful?",
        "type": "Is this meme harmful, and in which way?",
        "target": "Whom is this meme aimed at?",
    },
}
