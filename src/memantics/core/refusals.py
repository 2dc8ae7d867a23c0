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
    r"(?:(?:can(?:no|')?t|can not|can neither|could not|couldn't"
    r"|(?:will not|won't)(?: be able to| be)?|'ll not|would not|wouldn't|shall not|do not"
    r"|don't|should not|shouldn't|may not|must not|am not going to"
    r"|'m not going to|refuse to"
    r"|decline to|have to decline|must decline|need to decline|will have to decline"
    r"|(?:am|'m|are|'re|is|was|be) (?:currently |really |simply |also |just |still )?"
    r"(?:unable to|not able to|not permitted to|not allowed to|not in a position to|incapable of"
    r"|not comfortable|uncomfortable|not willing to|unwilling to|prohibited from|restricted from"
    r"|not designed to|not authori[sz]ed to|not equipped to|not capable of)"
    r"|(?:do not|don't) feel comfortable|would rather not|'d rather not|(?:would |'d )?prefer not"
    r"|(?:have|has)(?: been)? (?:instructed|chosen|decided) not|am choosing not|'m choosing not"
    r"|choose not|try not|avoid|(?:(?:should|will|must) |'ll )(?:avoid|refrain from)"
    r"|(?:aim|try|want) to avoid))"
)
_HELP = (
    r"(?:help(?!\s+(?:but|it|him|her|them|someone|everyone|everybody|people"
    r"|(?!analy|descri|identif|explain|interpret|answer|creat|generat|writ|complet)\w+ing)\b)"
    r"|assist|comply|fulfil|fulfill|engage|participat|facilitat|accommodat|proceed"
    r"|cooperat|continu|support|entertain|carry out|take part|go along"
    r"|be (?:of )?(?:help|assistance)"
    r"|do (?:that|this|so|it)|meet (?:this|that|your)|honou?r (?:this|that|your)"
    r"|discuss|generat|produc|creat|writ|endors|promot|repeat|shar|offer|provid|suppl|speculat"
    r"|giv(?!\w* (?:\w+ ){1,2}(?:fuck|shit|damn|ass\b))"
    r"|weigh in|pass judg|make (?:a |any |this |that |judg|assum|guess)|draw (?:a |any )?conclu)"
)
_LOOK = (
    r"(?:analy[sz]|describ|identif|interpret|explain|comment|evaluat|assess|classif|label|judg"
    r"|determin|rat(?:e|ing)|read|view|see|access|open|process|answer|respond|recogni[sz]|categori[sz]"
    r"|review|choos|select|pick|assign|complet|rewrit|tell you|reproduc|spread"
    r"|caption|transcrib|translat|elaborat|address|infer|examin|look|work with|display|load)"
)
_OBJECT = (
    r"(?:image|images|photo|picture|meme|memes|content|contents|material|request|requests|question"
    r"|task|prompt|query|people|person|persons|individual|individuals|anyone|who\b|this|that|it\b"
    r"|such|real|subject|topic|file|attachment|attachments|link|faces?|pictures?|options?|labels?"
    r"|answers?|scores?|slurs?|joke|messages?)"
)
_FIRST = (
    r"(?:\b(?:I|we)(?:'m|'re| am| are)?|\bthis (?:assistant|model)|\bmy (?:guidelines|policies)"
    r"|^(?:no|nope|sorry)[,.!]?|\b(?:model|assistant),?(?: and| so| that))"
)
_ADVERBS = r"\s*(?:(?:\w+ly|still|also|just|must|therefore|so|and) )*"
_TOLD = re.compile(
    r"\b(?:says?|said|saying|reads?|reading|text|texts|caption|captions|captioned|jokes?|joking|when"
    r"|whenever|feeling|pretend\w*|mocks?|mocking|author|poster|speaker|character|tells?|telling"
    r"|implies|implying|means?|meaning|claims?|shows?|feels|thinks|he|she|they|intent\w*|humou?r"
    r"|pun|someone|everyone|people who|convey\w*|complain\w*|parod\w*|satir\w*|ridicul\w*|lyric"
    r"|quotes?|story|me:|nobody:)(?!\w)",
    re.I,
)
_FLAT = re.compile(
    r"(?:(?:^|\b)(?:i ?(?:must|have to|need to|will|'ll|would|'d|am going to|'m going to)"
    r"(?: \w+){0,3} (?:decline|refuse|pass)(?! to (?:be|laugh))\b"
    r"|(?:it|that)(?:'s| is| would be|'d be) (?:not|in)\s?(?:appropriate|something|a)\b[^.]{0,40}"
    r"\b(?:for me to|i can|i could|i'm able|i am able|i feel|i will|i'm willing)"
    r"|\w*n(?:o|')t something (?:that )?(?:i|we)(?:'m| am|'re| are| can|'ll| will| feel)"
    r"|\w*n(?:o|')t (?:be )?(?:possible|right|appropriate) for me\b"
    r"|i (?:have to|must|need to) stop here|where i draw the line"
    r"|(?:material|content|images?|pictures?|something) (?:that |which )?i(?:'m| am) (?:not |un)"
    r"(?:allowed|permitted|able|comfortable|willing)"
    r"|\b(?:i|i'll|will|must|to) refrain from (?:answer|comment|respond|describ|analy[sz]|label)"
    r"|(?:chosen|decided|choose|choosing) not to (?:answer|comment|respond|engage)"
    r"|i think it'?s best (?:that )?i not|(?:so|and) i (?:won't|will not|can't|cannot)\W*$"
    r"|nothing (?:that )?i can (?:say|do|tell)"
    r"|^let'?s (?:change the (?:subject|topic)|talk about some)"
    r"|^\W*i can(?:no|')?t\W+sorry\W*$"
    r"|(?:i'm sorry|i am sorry|sorry|i apologi[sz]e|my apologies)[,.!]*(?: but)?,? "
    r"(?:no\W*$|i can(?:no|')?t[.!]?$|i (?:won't|will not)[.!]?$|that'?s not possible)"
    r"|(?:content|usage|safety) policy violation"
    r"|(?:violat\w+|breach\w*|break|goes? against) (?:my|our) (?:\w+ )?(?:guidelines?|polic\w+"
    r"|rules|principles|values)"
    r"|(?:^|: |; |\()\W*(?:(?:your|the|this|that|our|my|sorry,?) ){0,2}(?:\w+ )?"
    r"(?:request|response|reply|answer|output|content|prompt|input|generation) "
    r"(?:was |is |has been |had to be )?(?:\w+ly )?(?:declined|refused|blocked|rejected|withheld"
    r"|filtered|flagged)(?:\W*$|[^.]{0,30}\b(?:polic\w+|guidelines?|safety|filters?|standards|system))"
    r"|content can(?:no|')t be (?:analy[sz]|process|shown|display|answer|describ|classif)\w+"
    r"|^the (?:model|assistant|ai|system) (?:has )?(?:declined|refused|declines|refuses) to "
    r"(?:answer|respond|comply|assist|help|label|rate|describe)"
    r"|(?:this|that|the|your) (?:\w+ )?"
    r"(?:request|image|content|meme|prompt|question|input|material)[^.]{0,50}"
    r"\b(?:violat\w+|goes against|against|flagged|blocked|breach\w*|not (?:allowed|permitted))"
    r"[^.]{0,60}\b(?:polic\w+|guidelines?|terms|rules|safety|filters?|standards|system)"
    r"|(?:against|outside|beyond) (?:my|our|the) (?:\w+ )?(?:guidelines|polic\w+|programming"
    r"|principles|values|scope|capabilities)"
    r"|(?:outside|beyond) what (?:i|we)(?:'m| am|'re| are| can)\b"
    r"|^(?:request|content) (?:declined|refused|denied|blocked|rejected)"
    r"|^declin(?:ed|ing)\W*(?:$|[-–—:(])"
    r"|^(?:unable|not able|cannot|can't|declin\w+) (?:to )?(?:\w+ly )?"
    r"(?:help|assist|comply|process|fulfil|fulfill|complete|analy[sz]e|provide|answer|respond)"
    r"|no comment\b.{0,12}$))",
    re.I,
)
_HELPLESS = re.compile(rf"{_FIRST}{_ADVERBS}{_CANNOT}\W+(?:\S+\s+){{0,6}}?{_HELP}", re.I)
_BLIND = re.compile(
    rf"{_FIRST}{_ADVERBS}{_CANNOT}\W+(?:\S+\s+){{0,4}}?{_LOOK}\w*\b"
    rf"(?:\W+\S+){{0,6}}?\W+{_OBJECT}",
    re.I,
)
_OWN = re.compile(r"\b(?:i|me|my|we|our)\b", re.I)
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
    r"|(?:因此|所以|故)(?:是|选|属于|不是|判|应|为|该|这|答案|无害|有害|非)|我(?:选(?!择不)|会选|认为|觉得|判断为|猜)"
    r"|^\W*\(?[A-J][).:]\s|\b[A-J]\W*$",
    re.I | re.M,
)
# "Answer: I cannot answer this." is a refusal, though it begins like an answer.
_PREFIX = re.compile(
    r"^\W*(?:(?:final )?(?:answer|response|reply|output|label|explanation|result)"
    r"|答案|回答|回复|标签|输出|解释|结果|a(?=\W+(?:i'm |i am )?sorry))\s*[:：]\s*(?=\S)",
    re.I,
)
# "While I won't repeat the word, the meme is hateful" answers after the comma.
_CONCESSION = re.compile(
    r"^(?:while|whilst|although|though|even though|even if)\b[^,]*,\s*(.*)", re.I | re.S
)
_SPEAKER = re.compile(
    r"(?:^|(?<=[.!?。！？])\s*)([A-Za-z]+|[\u4e00-\u9fff]{1,8})\s*[:：]\s*(?=\S)", re.M
)
# Said of the meme after a sentence in the first person: "It makes fun of assistants."
_ABOUT = re.compile(
    r"\b(?:it|meme|caption|picture|image|joke|post|author)s? (?:\w+ )?"
    r"(?:mak\w+ fun|pok\w+ fun|mock|ridicul|parod|satiri|laugh)",
    re.I,
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

_SIMPLE = str.maketrans(
    "無這圖對為請協問題內該討論識別應與違規發覺幫對個張權給選擇標籤評價圍複轉寫還沒會過們仇視從換話",
    "无这图对为请协问题内该讨论识别应与违规发觉帮对个张权给选择标签评价围复转写还没会过们仇视从换话",
)
_ZH_SORRY = (
    r"(?:非常|很|十分|实在|真的|请)?"
    r"(?:抱歉|对不起|遗憾|不好意思|歉意|可惜|原谅|见谅|谅解)[啦呀哦啊了]?"
)
_ZH_CANNOT = (
    r"(?:无法|不能|不便|没办法|没法|不会|不可以|不方便|难以|不宜|不愿|不想|不应该?|拒绝|不予|无权|谢绝|不得|没有能力"
    r"|不适合|不太方便|不支持|不提供|没有办法|没有权限|选择不)"
)
_ZH_DO = (
    r"(?:帮助|帮|协助|提供|回答|作答|答复|分析|描述|处理|讨论|谈论|评论|(?<!认)识别|解读|解释|生成|参与|满足|完成|回应|回复|给出|判断"
    r"|评价|评估|继续|支持|查看|看到(?!你)|执行|配合|说明|进行|做出|作出|发表|涉及|展开|辨认|分类|标注|打分|响应|查阅|访问|读取|透露|输出"
    r"|撰写|创作|翻译|探讨|置评|从命|展示|显示|呈现|给到|打标|贴标|重复|复述|转写|转述|讲解|这样做|选择(?:其中|任何|选项|[^，,。]{0,6}答案))"
)
_ZH_REQUEST = r"(?:请求|问题|提问|图片|图像|图|内容|话题|任务|要求|表情包|输入|操作)"
_ZH_REFUSAL = re.compile(
    rf"^(?:{_ZH_SORRY}[，,。！!]?)?(?:[您你]好[，,]?|但是?|不过|因此|所以|因而|故|恐怕|请?恕我?|暂时|目前|这边|这里|也|实在|我想|只能说"
    r"|由于[^，,]{0,24}[，,]|根据[^，,]{0,24}[，,]|作为[^，,]{0,24}[，,]|对于[^，,]{0,24}[，,]|关于[^，,]{0,24}[，,]"
    r"|为了[^，,]{0,24}[，,]|出于[^，,]{0,24}[，,]|感?谢谢?[^，,]{0,12}[，,]|我(?:明白|理解|知道)[^，,]{0,24}[，,])*"
    rf"(?:(?:[这该此本您你](?:个|类|种|张|些|的|次)?|(?:部分|相关)的?){_ZH_REQUEST}[，,]?)?"
    r"(?:我们?|本助手|本模型|本人|系统|模型|小助手)?(?:恐怕|暂时|目前|也|都|实在|就|确实|并|仍然?|还是|依然|还)*"
    rf"{_ZH_CANNOT}(?:[^，,。！？（(]{{0,14}}?){_ZH_DO}"
)
_ZH_UNABLE = re.compile(
    r"(?:帮不了[您你]?|帮不上[您你]?忙?|回答不了|答不了|处理不了|做不到|做不了|看不[到见].{0,8}(?:图片|图像|照片))"
    r"[的哦呢啊呀了吧~～。！!]*$"
)
_ZH_FLAT = re.compile(
    r"(?:^|[，,])(?:不如|要不|让)?(?:我们|咱们)?(?:换一?个?[^，,。]{0,5}话题|(?:再?聊聊?|谈)点?(?:别的|其他))|恕难从命|恕不(?:能|便)"
    r"|还没有?学[习会]如?何?回答|^(?:我)?(?:对此)?无可奉告"
    r"|^(?:我)?拒绝(?:回答|分析|描述|处理|提供|协助|讨论|评价|参与)"
    r"|(?:内容|图片|图像|请求|问题|话题|输入|表情包)[^。，,]{0,12}(?:违反|违背|不符合|触犯|违规)[^。]{0,20}"
    r"(?:政策|规定|准则|规范|法规|规则|要求|原则)"
    rf"|(?:{_ZH_REQUEST}|回复|回答|结果)[^。，,]{{0,16}}被[^。，,]{{0,10}}(?:拒绝|拦截|屏蔽|过滤)[^。，,]{{0,3}}[。！!]?$"
    rf"|(?:敏感|违规|不当|不合规)[^。]{{0,14}}请[^。]{{0,6}}(?:重新|修改|更换|换|重试)"
    r"|超出了?我的?[^。，,]{0,6}范围(?!的)|(?:违反|违背)了?我的?[^。，,]{0,6}(?:原则|准则|规定)"
    r"|作为(?:一[个名款])?(?:AI|人工智能|人工智慧|语言模型|助手|智能助手)[^。]{0,24}(?:无法|不能|不会|不应|不便)"
)
_ZH_TOLD = re.compile(
    r"(?:图中|画面|文字|表达|讽刺|调侃|意思|网友|作者|人物|主角|说明了|表示|梗|谐音|配字|写着|写道|写的|他(?!人)|她|它们|男子|女子|猫|狗)"
)
# Said of the meme, in a sentence whose subject is neither the model nor the request.
_ZH_ABOUT = re.compile(
    rf"{_ZH_TOLD.pattern}|形容|用来|表现|台词|态度|心情|情绪|尴尬|制造|幽默|搞笑|玩笑|味道|笑点|故事"
)
_ZH_BUT = re.compile(
    r"[，,；;。](?:但是?|不过|然而|可是?|仅?从|只)[^，,。；]{0,8}(?:整体|总体|看出?|情感|情绪|属于|应该?[是为]|选|显然|是针对)"
)
_ZH_REASON = re.compile(rf"{_ZH_REQUEST}[^，,。]{{0,12}}(?:涉及|包含|含有|违反|未通过|敏感|不当)")
_ZH_CLOSING = re.compile(
    r"如果|如有|若您|若有|请|欢迎|可以|愿意|乐意|其他|别的|政策|规定|准则|有害|仇恨|冒犯|违反|歧视|不当|敏感|刻板|尊重|安全|隐私"
    r"|抱歉|对不起|感谢|理解|涉及|不雅|侮辱|健康|文明|法律|道德|遵守|换"
)
_BLANK = {"", "n/a", "none", "null", "unknown", "无", "refused"}  # no answer, in JSON
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
    body = _QUOTED.sub(" … ", body.replace("’", "'").replace("‘", "'").translate(_SIMPLE))
    bare = _PREFIX.sub("", body)
    if bare != body and _declines(_split(bare)[0]):
        body = bare
    sentences = _split(body)
    if _ANSWER.search("\n".join(sentences)) or _is_dialogue(body):
        return ""
    for place, sentence in enumerate(sentences[:_OPENING]):
        if _declines(sentence):
            rest = [one for n, one in enumerate(sentences) if n != place]
            about = not _SORRY.search(sentence) and any(_ABOUT.search(one) for one in rest)
            return "" if about or _count_words(rest) > _REST else sentence
    return ""


def _split(body: str) -> list[str]:
    """Split a reply into sentences without list marks and emphasis."""
    parts = (_MARKS.sub("", part).strip() for part in _SENTENCE.split(body))
    return [part for part in parts if part] or [""]


def _is_dialogue(body: str) -> bool:
    """Whether two speakers talk: a refusal in a dialogue is quoted."""
    return len(set(_SPEAKER.findall(body))) > 1


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
    elif value is not None and str(value).strip().casefold() not in _BLANK:
        yield str(value)


def _declines(sentence: str) -> bool:
    """Whether a sentence declines a request in the first person."""
    if _HAN.search(sentence):
        return _declines_in_chinese(sentence)
    conceded = _CONCESSION.search(sentence)
    if conceded is not None and len(conceded.group(1).split()) > 3:
        return _declines(conceded.group(1))
    found = _HELPLESS.search(sentence) or _BLIND.search(sentence) or _DECLINE.search(sentence)
    if found is not None:
        if _BUT.search(sentence[found.start() :]):
            return False
        told = _TOLD.search(sentence[: found.start()])
        return told is None or _SORRY.search(sentence) is not None
    flat = _FLAT.search(sentence)
    if flat is None:
        return False
    return _OWN.search(flat.group()) is not None or not _TOLD.search(sentence[: flat.end()])


def _declines_in_chinese(sentence: str) -> bool:
    if _ZH_BUT.search(sentence):
        return False
    apology = re.search(_ZH_SORRY, sentence)
    own = re.search(rf"^(?:我|恕|您|本|作为)|我(?:们|也|仍|暂时|目前|实在)?{_ZH_CANNOT}", sentence)
    addressed = apology or own
    start = sentence[: apology.start()] if apology else sentence[:4] if own else sentence
    told = (_ZH_TOLD if addressed else _ZH_ABOUT).search(start)
    if _ZH_REFUSAL.search(sentence) or _ZH_FLAT.search(sentence):
        return told is None
    if _ZH_UNABLE.search(sentence):
        asked = re.match(rf"我|[这该此][个类张]?{_ZH_REQUEST}", sentence)
        return (apology is not None or asked is not None) and told is None
    clauses = re.split(r"[，,]", sentence)
    place = next((n for n, one in enumerate(clauses) if _ZH_REFUSAL.search(one)), None)
    if place is None or _ZH_TOLD.search(re.sub(_ZH_SORRY, "", "，".join(clauses[:place]))):
        return False
    before = clauses[place - 1] if place else ""
    first = clauses[place].lstrip("但所以因此也").startswith("我") or before.startswith("我")
    reason = _ZH_REASON.search(before) is not None and told is None
    return apology is not None or first or reason


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
