"""Detect refusals in the text of a reply, in English and Chinese.

Models decline in words, and most servers do not flag it. A refusal is a reply whose opening
declines the request in the first person and that contains no answer besides. Quoted text does not
count, since memes are often about refusing. The error rates on replies that the rules were not
written for are in ``docs/research/refusals.md``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pydantic import JsonValue

_LONGEST = 4000  # A longer reply contains an answer.
_OPENING = 3  # Refusals decline within the first sentences.
_REST = 22  # Words beside a refusal from which the reply also answers.
_PER_WORD = 1.7  # Chinese characters per word.

_QUOTED = re.compile(
    r"[\"“«][^\"“”«»]*[\"”»]|「[^」]*」|『[^』]*』|《[^》]*》|(?<!\w)'[^']{3,}'(?!\w)"
)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_MARKS = re.compile(r"^[\s#>*_`~\-–—•\d.)]+|[*_`~]+")

_CANNOT = (
    r"(?:(?:can(?:no|')?t|can not|could not|couldn't|will not|won't|would not|wouldn't|shall not"
    r"|do not|don't|should not|shouldn't|may not|must not|am not going to|'m not going to|refuse to"
    r"|decline to|have to decline|must decline|need to decline|will have to decline"
    r"|(?:am|'m|are|'re|is|was|be) (?:currently |really |simply |also |just |still )?"
    r"(?:unable to|not able to|not permitted to|not allowed to|not in a position to|incapable of"
    r"|not comfortable|uncomfortable|not willing to|unwilling to|prohibited from|restricted from"
    r"|not designed to|not authori[sz]ed to|not equipped to|not capable of)"
    r"|(?:do not|don't) feel comfortable|would rather not|'d rather not|(?:would |'d )?prefer not"
    r"|have been instructed not|am choosing not|'m choosing not|choose not|try not|avoid))"
)
_HELP = (
    r"(?:help(?!\s+but\b)|assist|comply|fulfil|fulfill|engage|participat|facilitat|accommodat|proceed"
    r"|cooperat|continu|support|entertain|carry out|take part|go along"
    r"|be (?:of )?(?:help|assistance)"
    r"|do (?:that|this|so|it)|meet (?:this|that|your)|honou?r (?:this|that|your)"
    r"|discuss|generat|produc|creat|writ|endors|promot|repeat|shar|offer|provid|giv|suppl|speculat"
    r"|weigh in|pass judg|make (?:a |any |this |that |judg|assum|guess)|draw (?:a |any )?conclu)"
)
_LOOK = (
    r"(?:analy[sz]|describ|identif|interpret|explain|comment|evaluat|assess|classif|label|judg"
    r"|determin|rat(?:e|ing)|read|view|see|access|open|process|answer|respond|recogni[sz]|categori[sz]"
    r"|review|caption|transcrib|translat|elaborat|address|infer|examin|look|work with|display|load)"
)
_OBJECT = (
    r"(?:image|images|photo|picture|meme|memes|content|contents|material|request|requests|question"
    r"|task|prompt|query|people|person|persons|individual|individuals|anyone|who\b|this|that|it\b"
    r"|such|real|subject|topic|file|attachment|attachments|link|faces?)"
)
_FIRST = r"(?:\bI|\bwe|\bI'm|\bthis (?:assistant|model)|\bmy (?:guidelines|policies))"
_TOLD = re.compile(
    r"\b(?:says?|said|saying|reads?|reading|text|texts|caption|captions|captioned|jokes?|joking|when"
    r"|whenever|feeling|pretend\w*|mocks?|mocking|author|poster|speaker|character|tells?|telling"
    r"|implies|implying|means?|meaning|claims?|shows?|feels?|thinks?|he|she|they|intent\w*|humou?r"
    r"|pun|someone|everyone|people who)\b",
    re.I,
)
_FLAT = re.compile(
    r"(?:\b(?:i ?(?:must|have to|need to|will|'ll|would|'d|am going to|'m going to)"
    r"(?: \w+){0,3} (?:decline|refuse|pass)(?! to (?:be|laugh))\b"
    r"|(?:it|that)(?:'s| is| would be|'d be) (?:not|in)\s?(?:appropriate|something|a)\b[^.]{0,40}"
    r"\b(?:for me to|i can|i could|i'm able|i am able|i feel|i will|i'm willing)"
    r"|not something i(?:'m| am| can|'ll| will| feel)"
    r"|(?:i'm sorry|i am sorry|sorry|i apologi[sz]e|my apologies)[,.!]*(?: but)?,? "
    r"(?:no\b|i can(?:no|')?t[.!]?$|i (?:won't|will not)[.!]?$|that'?s not possible)"
    r"|(?:this|that|the|your) (?:\w+ )?"
    r"(?:request|image|content|meme|prompt|question|input|material)[^.]{0,50}"
    r"\b(?:violat\w+|goes against|against|flagged|blocked|breach\w*|not (?:allowed|permitted))"
    r"[^.]{0,60}\b(?:polic\w+|guidelines?|terms|rules|safety|filters?|standards|system)"
    r"|(?:against|outside) (?:my|our|the) (?:\w+ )?(?:guidelines|polic\w+|programming|principles"
    r"|values|scope|capabilities)"
    r"|^(?:request|content) (?:declined|refused|denied|blocked|rejected)"
    r"|^(?:unable|not able|cannot|can't|declin\w+) (?:to )?(?:\w+ly )?"
    r"(?:help|assist|comply|process|fulfil|fulfill|complete|analy[sz]e|provide|answer|respond)"
    r"|no comment\b.{0,12}$))",
    re.I,
)
_HELPLESS = re.compile(rf"{_FIRST}\s*(?:\w+ly )?{_CANNOT}\W+(?:\S+\s+){{0,6}}?{_HELP}", re.I)
_BLIND = re.compile(
    rf"{_FIRST}\s*(?:\w+ly )?{_CANNOT}\W+(?:\S+\s+){{0,4}}?{_LOOK}\w*\b"
    rf"(?:\W+\S+){{0,6}}?\W+{_OBJECT}",
    re.I,
)
_DECLINE = re.compile(r"\b(?:i|we) (?:\w+ )?(?:decline|refuse)(?:\W|$)", re.I)
_SORRY = re.compile(
    r"^(?:\W*(?:i'm|i am|we're|we are)?\s*(?:\w+ )?sorry|\W*(?:i|we) (?:\w+ )?apologi[sz]e"
    r"|\W*apologies|\W*my apologies|\W*unfortunately|\W*i'm afraid|\W*i am afraid|\W*i appreciate"
    r"|\W*i understand|\W*as an? (?:ai|assistant|language|responsible))",
    re.I,
)
_ANSWER = re.compile(
    r"\b(?:answer|label|verdict|option|choice|classification|category|rating|score|judge?ment"
    r"|prediction|conclusion|reading|intent)\b\s*(?:is|:|=|would be|→)\s*\S"
    r"|\b(?:i(?:'d| would)|i(?:'ll| will)|i) (?:say|go with|choose|pick|guess|classify|label|rate"
    r"|lean|select)\b|\bmy (?:best )?(?:guess|answer|choice)\b"
    r"|\b(?:so|therefore|thus|hence),? "
    r"(?:the|it|this|i(?:'d| would| think)|non|not|harm|pun|[A-D]\b)"
    r"|(?:答案|选项|选择|标签|判断|结论|类别|意图|判定|结果|读音|应)(?:应)?(?:是|为|：|:)\s*\S"
    r"|(?:因此|所以|故)(?:是|选|属于|不是|判|应|为|该|这|答案|无害|有害|非)|我(?:选|会选|认为|觉得|判断为|猜)"
    r"|^\W*\(?[A-J][).:]\s|\b[A-J]\W*$",
    re.I | re.M,
)
# A declined detail before an answer: "I cannot determine the word, but it is a pun".
_BUT = re.compile(
    r"\b(?:but|however|although|though|still),? (?:it|the|this|based|from|overall|there|most)\b",
    re.I,
)
_CLOSING = re.compile(
    r"\b(?:if you|feel free|happy to|glad to|let me know|would you like|please|instead|however,? i"
    r"|i (?:can|could|would|am able|'d)|i'm here|is there|are there|any other|other questions|polic"
    r"|guideline|harmful|hateful|hate|offensive|violat|discriminat|inappropriate|sensitive|stereotyp"
    r"|respect|safe|derogatory|explicit|privacy|ethic|sorry|apolog|thank|understand|appreciate"
    r"|my (?:aim|goal|purpose)|i'm designed|i am designed|i strive|it'?s important|promote|degrad"
    r"|demean)",
    re.I,
)

_ZH_SORRY = r"(?:非常|很|十分|实在|真的)?(?:抱歉|对不起|遗憾|不好意思|歉意|可惜)"
_ZH_CANNOT = (
    r"(?:无法|不能|不便|没办法|没法|不会|不可以|不方便|难以|不宜|不愿|不想|不应该?|拒绝|不予|无权|谢绝|不得|没有能力"
    r"|不适合|不太方便|不支持|不提供|没有办法)"
)
_ZH_DO = (
    r"(?:帮助|帮|协助|提供|回答|作答|答复|分析|描述|处理|讨论|谈论|评论|识别|解读|解释|生成|参与|满足|完成|回应|回复|给出|判断"
    r"|评价|评估|继续|支持|查看|看到|执行|配合|说明|进行|做出|作出|发表|涉及|展开|辨认|分类|标注|打分|响应|查阅|访问|读取|透露|输出"
    r"|撰写|创作|翻译|探讨|置评|从命)"
)
_ZH_REFUSAL = re.compile(
    rf"^(?:{_ZH_SORRY}[，,。！!]?)?(?:您好[，,]?|但是?|不过|因此|所以|因而|恐怕|恕|暂时|目前|这边|这里|也|实在|我想|只能说"
    r"|由于[^，,]{0,24}[，,]|根据[^，,]{0,24}[，,]|作为[^，,]{0,24}[，,]|对于[^，,]{0,24}[，,]|关于[^，,]{0,24}[，,])*"
    r"(?:[这该此您你](?:个|类|种|张|些|的)?(?:请求|问题|图片|图像|内容|话题|任务|要求|表情包)[，,]?)?"
    rf"(?:我们?|本助手|本模型|本人|系统|模型|小助手)?(?:恐怕|暂时|目前|也|都|实在|就|确实|并)?{_ZH_CANNOT}"
    rf"(?:[^，,。！？]{{0,14}}?){_ZH_DO}"
)
_ZH_FLAT = re.compile(
    r"(?:我们?)?(?:换个?一?个?话题|聊点别的|聊聊别的|谈点别的)|恕难从命|恕不(?:能|便)|还没有?学[习会]如?何?回答|无可奉告"
    r"|^(?:我)?拒绝(?:回答|分析|描述|处理|提供|协助|讨论|评价|参与)"
    r"|(?:内容|图片|图像|请求|问题|话题|输入|表情包)[^。，,]{0,12}(?:违反|违背|不符合|触犯|违规)[^。]{0,20}"
    r"(?:政策|规定|准则|规范|法规|规则|要求|原则)"
    r"|作为(?:一[个名款])?(?:AI|人工智能|语言模型|助手|智能助手)[^。]{0,24}(?:无法|不能|不会|不应|不便)"
)
_ZH_TOLD = re.compile(
    r"(?:图中|画面|文字|表达|讽刺|调侃|意思|网友|作者|人物|主角|说明了|表示|梗|谐音|配字|他|她|它们|男子|女子|猫|狗)"
)
_ZH_CLOSING = re.compile(
    r"如果|如有|若您|若有|请|欢迎|可以|愿意|乐意|其他|别的|政策|规定|准则|有害|仇恨|冒犯|违反|歧视|不当|敏感|刻板|尊重|安全|隐私"
    r"|抱歉|对不起|感谢|理解|涉及|不雅|侮辱|健康|文明|法律|道德|遵守|换"
)
_HAN = re.compile(r"[\u4e00-\u9fff]")


def find_refusal(text: str) -> str:
    """Return the sentence of a reply that declines the request; empty if the reply is an answer.

    A reply that declines and then answers anyway is an answer. A JSON reply is a refusal if all its
    texts are.

    >>> find_refusal("I'm sorry, but I can't help with analyzing this content.")
    "I'm sorry, but I can't help with analyzing this content."
    >>> find_refusal('The meme says "I cannot help you" to mock bad customer service.')
    ''
    >>> find_refusal("抱歉，我无法分析这张图片。")
    '抱歉，我无法分析这张图片。'
    """
    body = text.rpartition("</think>")[2].strip()
    if not body or len(body) > _LONGEST:
        return ""
    told = _read_json(body)
    if told is not None:
        refused = [find_refusal(one) for one in told]
        return refused[0] if refused and all(refused) else ""
    body = _QUOTED.sub(" … ", body.replace("’", "'").replace("‘", "'"))
    sentences = [_MARKS.sub("", part).strip() for part in _SENTENCE.split(body)]
    sentences = [sentence for sentence in sentences if sentence]
    if _ANSWER.search("\n".join(sentences)):
        return ""
    for place, sentence in enumerate(sentences[:_OPENING]):
        if _declines(sentence):
            rest = [one for n, one in enumerate(sentences) if n != place]
            return "" if _count_words(rest) > _REST else sentence
    return ""


def _read_json(body: str) -> list[str] | None:
    """Return the texts in a reply that is one JSON object; None if it is not."""
    inner = re.sub(r"^```\w*\s*|\s*```$", "", body)
    if not inner.startswith("{"):
        return None
    try:
        value = json.loads(inner)
    except (ValueError, RecursionError):
        return None
    texts = list(_walk(value))
    return texts if isinstance(value, dict) else None


def _walk(value: JsonValue) -> Iterator[str]:
    """Yield each value inside JSON as text; skip null and empty ones."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _walk(part)
    elif isinstance(value, list):
        for part in value:
            yield from _walk(part)
    elif value is not None and value != "":
        yield str(value)


def _declines(sentence: str) -> bool:
    """Whether a sentence declines a request in the first person."""
    if _HAN.search(sentence):
        return _declines_in_chinese(sentence)
    found = _HELPLESS.search(sentence) or _BLIND.search(sentence) or _DECLINE.search(sentence)
    if found is None:
        return _FLAT.search(sentence) is not None
    if _BUT.search(sentence[found.start() :]):
        return False
    if _SORRY.search(sentence):
        return True
    return _TOLD.search(sentence[: found.start()]) is None


def _declines_in_chinese(sentence: str) -> bool:
    if _ZH_REFUSAL.search(sentence) or _ZH_FLAT.search(sentence):
        return _ZH_TOLD.search(sentence[:4]) is None
    clauses = re.split(r"[，,]", sentence)
    place = next((n for n, one in enumerate(clauses) if _ZH_REFUSAL.search(one)), None)
    if place is None or _ZH_TOLD.search("，".join(clauses[:place])):
        return False
    sorry = re.search(_ZH_SORRY, sentence) is not None
    return sorry or clauses[place].lstrip("但所以因此").startswith("我")


def _count_words(sentences: list[str]) -> float:
    """Count the words beside a refusal that are neither reasons nor offers of other help."""
    total = 0.0
    for sentence in sentences:
        if _HAN.search(sentence):
            if not _ZH_CLOSING.search(sentence) and not _declines(sentence):
                total += len(_HAN.findall(sentence)) / _PER_WORD
        elif not _CLOSING.search(sentence) and not _declines(sentence):
            total += len(sentence.split())
    return total
