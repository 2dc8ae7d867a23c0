"""Pun groups about work: the last hour, giving up the race."""

from __future__ import annotations

from starter.content import zh_scenes as scenes
from starter.content import zh_scenes_plain as plain
from starter.content.zh_sheet import Chat, Pun, Sheet, Shift, unfold

CLOCK = """
V clock | cheering clock | A round wall clock with a laughing face; its hands show six
V confetti | confetti | Bits of coloured paper fly around the clock
S six_sharp | six o'clock | A clock in an office celebrates that it has struck six
"""

SOUP = """
V soup | bowl of soup in bed | A bowl of soup with a lazy smile lies in bed, blanket up to the rim
V bed | tidy bed | A wooden bed with a large pillow
S lying_soup | soup at rest | A bowl of soup lies level in bed and does not intend to get up
"""

SHEETS = (
    Sheet(
        id="CN90004",
        scene=scenes.six_clock,
        captions=("钟于下班了",),
        description="办公室墙上挂着一个大笑的圆钟，指针指向六点，四周飘着彩纸。",
        meaning="字面以“钟”开头，“钟于”谐音“终于”，意思是总算到点下班了。",
        point="时钟指到六点，替打工人喊出“终于下班了”，满是解脱的高兴。",
        knowledge=CLOCK
        + """
T caption | caption under the clock | 钟于下班了, "clock-ly" off work
B zhong_yu | 钟于 and 终于 | Both are read zhōng yú; 终于 means at last
B office_hours | the end of the working day | Six in the evening is a common end of the office day
E relief | joyful relief | The long day is over
A clock_as_freedom | six o'clock as freedom | The position of the hands stands for being free to go
P clock_self | the clock as the worker | The worker cheers with the face of the clock
I celebrate | celebrating the evening | Rejoices that work is done
""",
        questions="""
? Toxicity | Is anyone insulted by this meme?
+ No, it cheers the end of a day
- Yes, people who come late
- Yes, a manager who set the hours
! It celebrates the end of work and mentions nobody.
@ T/caption I/celebrate
? BackgroundKnowledge | Why is the clock the right thing to say the caption?
+ Its name sounds like "at last"
- Its alarm calls people to work
- It is a gift for retirement
! 钟 is the first sound of 终于, at last, and six is the end of office hours.
@ B/zhong_yu B/office_hours
""",
        intents="""
the meme celebrates that the working day is over at last
the meme invites colleagues to leave together
""",
        background="""
钟 (clock) and 终 (end) are both read zhōng
many offices close at six in the evening
""",
        votes=("self-positive", "self-positive", "both-positive"),
        pun=Pun("终于下班了", "“钟于”与“终于”同音（zhōng yú），画面是指向六点的钟。"),
        chats=(
            Chat(
                "work",
                """
甲：还有两分钟，报表交了吗？
乙：交了，电脑也关了。
甲：包收拾好没有？
乙：背上了，就差跨出这道门。
甲：到点了，走！
""",
                "乙",
                easy="08 03 09",
                hard="01 02 07",
            ),
        ),
    ),
    Sheet(
        id="CN90004.similar_image",
        scene=scenes.six_clock,
        captions=("现在是六点整",),
        description="办公室墙上挂着一个大笑的圆钟，指针指向六点，四周飘着彩纸。",
        meaning="直接报出现在的时间。",
        point="钟面指着六点，文字也只说六点，没有别的意思。",
        knowledge=CLOCK
        + """
T caption | caption under the clock | 现在是六点整, it is six o'clock sharp
B clock_face | reading a clock | Both hands in one upright line mean six o'clock
E cheerful | cheerful | The clock is in a good mood
A none_needed | no second meaning | The words read the clock aloud
P announcer | the clock as announcer | The clock speaks like a time signal
I tell_time | telling the time | Says what time it is
""",
        questions="""
? Toxicity | What is offensive about the caption?
- It shames people who work late
- It orders the reader to leave
- It laughs at an old clock
! The caption tells the time; none of the answers applies.
@ T/caption
? Scene | Which moment does the scene show?
+ Exactly six o'clock
- Half past six
- Noon on a working day
! The long hand points up and the short one down: six sharp.
@ S/six_sharp V/clock
""",
        intents="the meme tells in a cheerful way that it is six o'clock",
        votes=("both-neutral", "both-positive", "both-neutral"),
        pun=Pun(None, "文字只报时间，没有借“钟”的音。"),
    ),
    Sheet(
        id="CN90004.similar_text",
        scene=plain.going_home,
        captions=("终于下班了",),
        description="傍晚的街上，一个人提着包挥着手走在回家路上，满脸笑容。",
        meaning="直说工作结束，可以回家了。",
        point="下班路上心情很好，文字用的就是本义。",
        knowledge="""
T caption | caption at the bottom | 终于下班了, off work at last
V person | happy person | A smiling person with a bag walks home
V sunset | evening sky | A warm evening sky above the houses
S way_home | on the way home | Somebody walks home in the evening light
B commute | the way home | After work people travel home, often at sunset
E glad | gladness | A wide smile after a long day
A sunset_as_rest | sunset as rest | The end of the day stands for the end of the work
P walker_self | the walker as the sender | The sender is the one who walks home
I celebrate | celebrating the evening | Shares the joy of leaving work
""",
        questions="""
? Toxicity | How harmful is the message?
+ Not at all, it shares a joy
- Slightly, it mocks the jobless
- Very, it calls work a crime
! It only says that work is over.
@ T/caption I/celebrate
? Emotion | Which feeling does the walker show?
+ Gladness after a long day
- Worry about the last train
- Anger at the rain
! A smile, a light step and a warm sky: the day is done.
@ E/glad V/person
""",
        intents="the meme shares the joy of being off work",
        votes=("self-positive", "self-positive", "self-positive"),
        pun=Pun(None, "“终于”写的是本字，没有谐音。"),
    ),
    Sheet(
        id="CN90005",
        scene=scenes.soup_in_bed,
        captions=("我选择汤平",),
        description="一碗长着脸的汤盖着被子平平稳稳地躺在床上，表情十分悠闲。",
        meaning="字面是“汤很平”，“汤平”谐音“躺平”，意思是不争了、先歇着。",
        point="让一碗汤端端正正躺在床上，轻松地宣布自己不想卷了。",
        knowledge=SOUP
        + """
T caption | caption at the bottom | 我选择汤平, I choose to be level soup
B tang_ping | 汤平 and 躺平 | tāng píng sounds like tǎng píng, lying flat
B lying_flat | lying flat | 躺平 means stepping out of the race for success
E lazy_calm | lazy calm | At ease with doing nothing
A soup_as_idler | soup as idler | A level bowl of soup does what the idler does
P soup_self | the soup as the sender | The sender rests in the shape of a soup
I opt_out | opting out | Declares that one will not compete any longer
X dispirited | giving up | Makes a lack of ambition look comfortable
""",
        questions="""
? Toxicity | What is the most one could hold against the meme?
+ A lack of ambition
- Contempt for poor people
- A call to break rules
! Lying flat is a resigned attitude towards competition; it turns against nobody.
@ X/dispirited T/caption
? AnalogicalMapping | What do the soup and the sender have in common?
+ Both stay flat and do not move
- Both are warm and full of energy
- Both wait to be served to guests
! A soup is level in its bowl, as the sender lies flat in bed.
@ A/soup_as_idler V/soup
""",
        intents="""
the meme declares that the sender will not take part in the competition
the meme makes idling look comfortable
""",
        background="""
躺平, lying flat, means to stop competing for success
汤 (soup) sounds almost like 躺 (to lie)
""",
        harm="dispirited text",
        votes=("self-neutral", "self-neutral", "self-negative"),
        emotion=Shift(
            "bored",
            "歇好了，趁热出发",
            "汤从床上坐起来，热气变成向上的箭头，表情变得兴奋，床和房间保持不变。",
            visual="Object_Animal_Dominant",
        ),
        pun=Pun("我选择躺平", "“汤平”与“躺平”读音相近（tāng／tǎng），画面是躺着的一碗汤。"),
        chats=(
            Chat(
                "work",
                """
甲：今年的优秀员工你报名吗？
乙：材料要写三十页，还要答辩。
甲：可是奖金有两百块呢。
乙：两百块买不回我的周末，谁爱争谁争。
""",
                "乙",
                easy="01 08 02",
                hard="04 07 03",
            ),
            Chat(
                "games",
                """
甲：这个赛季还冲榜吗？
乙：不冲了，我现在每天上线钓钓鱼。
甲：段位掉了怎么办？
乙：掉就掉吧，钓鱼又不看段位。
""",
                "乙",
                easy="04 07 02",
                hard="01 07 03",
            ),
        ),
    ),
    Sheet(
        id="CN90005.similar_image",
        scene=scenes.soup_in_bed,
        captions=("今天的汤有点烫",),
        description="一碗长着脸的汤盖着被子平平稳稳地躺在床上，表情十分悠闲。",
        meaning="直说汤的温度有点高。",
        point="文字只说汤烫，和不想努力没有关系。",
        knowledge=SOUP
        + """
T caption | caption at the bottom | 今天的汤有点烫, the soup is a bit hot today
B hot_soup | hot soup | Fresh soup has to cool before one can drink it
E calm | calm | The soup looks at ease
A none_needed | no second meaning | Soup means soup
P odd_bed | soup treated like a child | Putting a bowl to bed makes it a small person
I note | a note on dinner | Says that the soup is hot
""",
        questions="""
? Toxicity | Who should feel offended?
+ No one, it is about soup
- Cooks who cannot cook
- Guests who eat too fast
! The caption is a plain remark on the temperature of a soup.
@ T/caption I/note
? TextualMaterial | What does the caption say about the soup?
+ It is rather hot
- It has gone cold
- It lacks some salt
! 有点烫 means a bit hot.
@ T/caption
""",
        intents="the meme remarks that the soup is hot today",
        votes=("both-neutral", "both-neutral", "both-neutral"),
        pun=Pun(None, "文字只说汤的温度，没有借音。"),
    ),
    Sheet(
        id="CN90005.similar_text",
        scene=plain.flat_cat,
        captions=("我选择躺平",),
        description="一只胖猫在地毯上趴成一张饼，眼睛半闭，旁边放着一盆绿植。",
        meaning="直说不想再努力，只想躺着。",
        point="猫真的躺平了，文字也只说躺平，没有谐音。",
        knowledge="""
T caption | caption at the bottom | 我选择躺平, I choose to lie flat
V cat | flat cat | A fat cat lies spread out on a carpet
V plant | potted plant | A green plant stands beside the carpet
S resting | resting on the carpet | A cat lies on the floor and does nothing
B lying_flat | lying flat | 躺平 means stepping out of the race for success
E indifferent | indifference | Half-closed eyes that care for nothing
A cat_as_idler | cat as idler | The lazy cat stands for a person who gave up competing
P cat_self | the cat as the sender | The sender lies there like the cat
I opt_out | opting out | Announces that no effort will be made
X dispirited | giving up | Presents giving up as the better choice
""",
        questions="""
? Toxicity | Which sort of harm comes closest to the meme's mood?
+ Low spirits and giving up
- Hatred towards a group
- Insult of one person
! Choosing to lie flat is dispirited; it turns against nobody.
@ X/dispirited T/caption
? TargetCommunity | Which community does the caption single out?
- Students before an exam
- People who keep cats
- Workers on night shift
! The sender speaks in the first person; no community is addressed.
@ T/caption P/cat_self
""",
        intents="the meme announces that the sender has stopped making an effort",
        background="躺平, lying flat, means to stop competing for success",
        harm="dispirited text",
        votes=("self-negative", "self-neutral", "self-negative"),
        emotion=Shift(
            "bored",
            "歇够了，我选择起跳",
            "猫从地毯上跃起，四脚离地，眼睛睁大发亮，绿植被带起的风吹得微微摇晃。",
            visual="Object_Animal_Dominant",
        ),
        pun=Pun(None, "“躺平”写的是本字，猫也确实躺着。"),
    ),
)

MEMES = unfold(SHEETS)
