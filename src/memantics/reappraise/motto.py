"""Motivational-poster text: a reappraised meme stays a meme and preaches nothing."""

from __future__ import annotations

import re

_ENGLISH = (
    r"believe in (?:yourself|your dreams)",
    r"never (?:give up|stop dreaming)",
    r"(?:don't|do not) give up",
    r"you can do (?:it|anything|this)",
    r"you(?:'ve| have)? got this",
    r"(?:stay|think|be) (?:strong|positive)",
    r"(?:good|positive) vibes",
    r"dream big",
    r"follow your (?:heart|dreams?|passion)",
    r"reach for the (?:stars|sky)",
    r"live,? laugh,? love",
    r"(?:every|each) (?:day|morning) is a (?:gift|new|fresh)",
    r"everything happens for a reason",
    r"(?:the )?best is yet to come",
    r"when one door closes",
    r"(?:failure|success) is (?:not|only|just|a journey)",
    r"be the change",
    r"hard work pays off",
    r"what doesn'?t kill you",
    r"the sky is the limit",
)
_CHINESE = (
    r"相信自己",
    r"(?:永不|不要|绝不|别)(?:言弃|放弃)",
    r"你(?:一定)?(?:可以|能行|做得到)的",
    r"坚持就是胜利",
    r"加油(?:吧)?(?:少年|朋友|打工人)",
    r"未来可期",
    r"不忘初心",
    r"(?:努力|奋斗).{0,4}(?:终|总|必|会).{0,3}(?:回报|成功)",
    r"每一天都是(?:新的)?(?:开始|礼物)",
    r"阳光总在风雨后",
    r"(?:一切|什么)都会好(?:起来)?的",
    r"正能量",
    r"做最好的自己",
    r"梦想(?:总|终|一定)会",
)
_MOTTO = re.compile(rf"\b(?:{'|'.join(_ENGLISH)})\b|{'|'.join(_CHINESE)}", re.IGNORECASE)


def find_motto(text: str, source: str = "") -> str | None:
    """The first poster phrase in a text; what the source says already is no offence.

    >>> find_motto("Believe in yourself, small potato"), find_motto("fast potato")
    ('Believe in yourself', None)
    >>> find_motto("明天再来，未来可期")
    '未来可期'
    """
    for match in _MOTTO.finditer(text.replace("’", "'")):
        if match.group().casefold() not in source.casefold():
            return match.group()
    return None
