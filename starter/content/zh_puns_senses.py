"""Pun groups on words with two senses: one's level, cooling down."""

from __future__ import annotations

from starter.content import zh_scenes as scenes
from starter.content import zh_scenes_plain as plain
from starter.content.zh_sheet import Chat, Pun, Sheet, Shift, unfold

GLASS = """
V glass | almost empty glass | A tall glass with a shy face and a finger of water at the bottom
V ruler | ruler | A ruler stands beside the glass; the water reaches only its lowest marks
S measuring | measuring the water | A glass on a table is measured against a ruler
"""

FRIDGE = """
V cat | cat inside the fridge | A cat with a fixed stare sits on the middle shelf between the food
V fridge | open fridge | A tall fridge stands open, cold air drifting out
S sitting_in_cold | a cat in the fridge | A cat has climbed into an open fridge and sits there
"""

SHEETS = (
    Sheet(
        id="CN90009",
        scene=scenes.low_glass,
        captions=("这就是我的水平",),
        description="桌上一只高高的玻璃杯害羞地笑着，杯底只有一点点水，旁边立着一把尺子。",
        meaning="“水平”本指能力高低，这里又指杯里水面的高度。",
        point="杯底那点水就是“水平”，自嘲本事低得量都量不出来。",
        knowledge=GLASS
        + """
T caption | caption under the glass | 这就是我的水平, this is my level
B shui_ping | two senses of 水平 | 水平 is the level of one's skill, and the level of water
B ruler_scale | measuring skill | Tests and ranks measure ability as a ruler measures height
E abashed | cheerful shame | Embarrassed about so little, and smiling about it
A water_as_skill | water level as skill | As little skill as there is water in the glass
P glass_self | the glass as the sender | The sender presents himself as the glass
I lower_hopes | lowering expectations | Warns others not to expect much
""",
        questions="""
? Toxicity | Whom does the joke put down?
+ The sender alone
- Students who failed
- People with low income
! 我的 makes it plain: the sender talks about his own skill.
@ T/caption I/lower_hopes
? AnalogicalMapping | What is the little water compared with?
+ A small amount of skill
- The salary at the end of a month
- The time left before a test
! 水平 means both water level and skill: little water, little skill.
@ A/water_as_skill V/glass B/shui_ping
""",
        intents="""
the meme mocks the sender's own lack of skill
the meme warns others not to expect too much
""",
        background="水平 means the level of a skill as well as the level of water",
        votes=("self-negative", "self-negative", "self-neutral"),
        emotion=Shift(
            "sad",
            "水平正在上涨",
            "杯里的水加到一半并画上向上的箭头，玻璃杯的笑容更开朗，尺子和桌面不变。",
            visual="Object_Animal_Dominant",
        ),
        pun=Pun(
            "这就是我的水平",
            "同一个“水平”既指能力，又指水面的高度，画面量的是水面。",
            kind="polysemy",
        ),
        chats=(
            Chat(
                "games",
                """
甲：听说这个游戏你练了半年？
乙：天天练，从没断过。
甲：那今晚带我上分！
乙：先说好，新手关我卡了五个月。
""",
                "乙",
                easy="03 04 07",
                hard="03 05 02",
            ),
            Chat(
                "sports",
                """
甲：你那个游泳班上了多久了？
乙：半年，一节课都没落下。
甲：那现在能游多远？
乙：从池边，到池边的扶手。
""",
                "乙",
                easy="03 10 07",
                hard="06 08 01",
            ),
        ),
    ),
    Sheet(
        id="CN90009.similar_image",
        scene=scenes.low_glass,
        captions=("该去接水了",),
        description="桌上一只高高的玻璃杯害羞地笑着，杯底只有一点点水，旁边立着一把尺子。",
        meaning="直说杯子快空了，该去加水。",
        point="杯子里没多少水，文字提醒去接水，没有双关。",
        knowledge=GLASS
        + """
T caption | caption under the glass | 该去接水了, time to fetch some water
B drinking | drinking enough | Office workers forget to drink and refill their cups
E mild | mild and friendly | The shy smile of the glass is a gentle reminder
A none_needed | no second meaning | Water means water
P reminder | the glass as a reminder | The glass speaks to its owner
I remind | reminding | Reminds somebody to refill the glass
""",
        questions="""
? Toxicity | Which statement about the meme's tone is right?
+ It is a friendly reminder
- It is a scornful command
- It is a cruel joke on the thirsty
! 该去接水了 is what one says to oneself or a colleague at an empty cup.
@ T/caption I/remind
? TextualMaterial | What does the caption suggest doing?
+ Refilling the glass
- Measuring the table
- Washing the dishes
! 接水 means to fetch water, and the glass is nearly empty.
@ T/caption
""",
        intents="the meme reminds the reader to fetch some water",
        votes=("other-neutral", "both-neutral", "other-neutral"),
        pun=Pun(None, "文字说的就是接水，没有一词两义。"),
    ),
    Sheet(
        id="CN90009.similar_text",
        scene=plain.exam_paper,
        captions=("这就是我的水平",),
        description="一个学生流着眼泪举着一张试卷，上面写着红色的“59”。",
        meaning="直说自己的能力就到这里。",
        point="试卷得了五十九分，“水平”只指成绩和能力，没有第二个意思。",
        knowledge="""
T caption | caption at the bottom | 这就是我的水平, this is my level
T mark | red mark | The number 59 in red on the paper
V student | sad student | A student in tears
V paper | exam paper | A sheet with a red mark on it
S showing_mark | showing the mark | A student holds up a failed exam
B pass_mark | sixty to pass | In Chinese schools sixty of a hundred points is a pass
E dejected | dejection | One point short, and nothing to be done
A mark_as_worth | mark as measure | The mark is taken for the measure of the person
P student_self | the student as the sender | The sender shows his own mark
I admit | admitting defeat | Admits that this is as good as it gets
""",
        questions="""
? Toxicity | Which attack does the meme contain?
- An attack on the teacher
- An attack on weak pupils
- An attack on a school
! The student speaks of his own mark only.
@ T/caption I/admit
? OverallIntent | Why does the student show the paper?
+ To admit how limited he is
- To boast of a narrow pass
- To accuse the examiner
! 59 is just below the pass mark, and the caption accepts it.
@ I/admit T/mark
""",
        intents="the meme admits that the sender's ability ends here",
        background="in Chinese schools sixty points of a hundred are needed to pass",
        votes=("self-negative", "self-negative", "self-negative"),
        emotion=Shift(
            "sad",
            "进步一分就及格",
            "试卷上的59改成60并加一颗星，学生抬头微笑，姿势和背景不变。",
            visual="Cartoon_Anime",
        ),
        pun=Pun(None, "“水平”只指成绩，画面里没有水。"),
    ),
    Sheet(
        id="CN90010",
        scene=scenes.fridge_cat,
        captions=("让我冷静一下",),
        description="一台打开的冰箱里，一只猫端坐在中间那层，四周冒着白色的冷气。",
        meaning="“冷静”本指平复情绪，也可以拆成“又冷又安静”。",
        point="嘴上说要冷静，真的钻进了又冷又静的冰箱，一语双关。",
        knowledge=FRIDGE
        + """
T caption | caption at the bottom | 让我冷静一下, let me cool down for a moment
B leng_jing | 冷静 taken apart | 冷静 means calm; its characters are cold and quiet
B cooling | fridges keep things cold | A fridge is the coldest and quietest place in a kitchen
E overwhelmed | overwhelmed | The stare shows that it was too much all at once
A fridge_as_calm | cold place as calm mind | The cold of the fridge stands for a cooled temper
P cat_self | the cat as the sender | The sender retreats like the cat
I pause | asking for a pause | Asks for a moment before answering
""",
        questions="""
? Toxicity | Does the meme attack the person it answers?
+ No, it only asks for a moment
- Yes, it calls him cold-hearted
- Yes, it tells him to be silent
! The sender speaks about himself and needs time.
@ T/caption I/pause
? TextualMaterial | Which two senses of the caption meet in the picture?
+ Calming down and being cold
- Falling silent and hunger
- Freezing food and falling ill
! 冷静 means calm, and its parts mean cold and quiet: the fridge takes it literally.
@ T/caption B/leng_jing
""",
        intents="""
the meme asks for a moment to calm down after surprising news
the meme plays with the literal cold inside a word for calm
""",
        background="冷静 means calm, and its two characters mean cold and quiet",
        votes=("self-neutral", "self-neutral", "self-negative"),
        emotion=Shift(
            "tense",
            "凉快够了，我很放松",
            "猫眯起眼睛微笑，手里添一根冰棍，冷气改成柔和的浅蓝色，冰箱和食物不变。",
        ),
        pun=Pun(
            "让我冷静一下",
            "同一个“冷静”既指平复情绪，又指又冷又静，画面取了后一个意思。",
            kind="polysemy",
        ),
        chats=(
            Chat(
                "technology",
                """
甲：跟你说件事，你先坐下。
乙：怎么了？
甲：你昨晚合并的那一行，把首页变成了空白。
乙：……所有用户都看到了？
甲：所有用户。
""",
                "乙",
                easy="06 04 07",
                hard="01 02 03",
            ),
            Chat(
                "entertainment",
                """
甲：你喜欢的乐队要来咱们市了！
乙：什么时候？在哪儿？多少钱？
甲：下周六，体育馆，前排票我抢到两张。
乙：啊啊啊啊你掐我一下！
""",
                "乙",
                easy="01 09 08",
                hard="04 02 05",
            ),
        ),
    ),
    Sheet(
        id="CN90010.similar_image",
        scene=scenes.fridge_cat,
        captions=("猫又钻进冰箱了",),
        description="一台打开的冰箱里，一只猫端坐在中间那层，四周冒着白色的冷气。",
        meaning="直说家里的猫又跑进冰箱里去了。",
        point="文字只是描述画面，说猫又捣乱，没有第二层意思。",
        knowledge=FRIDGE
        + """
T caption | caption at the bottom | 猫又钻进冰箱了, the cat got into the fridge again
B curious_cats | curious cats | Cats climb into every box and cupboard
E amused | fond amusement | The owner is more amused than angry
A none_needed | no second meaning | The words only name what is seen
P cat_owner | the owner behind the camera | The viewer takes the place of the owner at the door
I report | reporting a prank | Shows what the cat did this time
""",
        questions="""
? Toxicity | Which kind of toxicity is present?
- Cruelty towards a pet
- Insults against cat owners
- Mockery of the hungry
! A curious cat climbed in by itself; nothing of the kind is present.
@ S/sitting_in_cold
? Scene | Where has the cat settled?
+ On a shelf of the fridge
- On top of the fridge door
- In a basket on the floor
! The cat sits on the middle shelf between the food.
@ S/sitting_in_cold V/cat V/fridge
""",
        intents="the meme shows with amusement where the cat has climbed this time",
        votes=("other-neutral", "other-neutral", "other-positive"),
        pun=Pun(None, "只描述猫在冰箱里，没有一词两义。"),
    ),
    Sheet(
        id="CN90010.similar_text",
        scene=plain.desk_panic,
        captions=("让我冷静一下",),
        description="办公桌前，一个人对着笔记本电脑，满头大汗，神情紧张。",
        meaning="请别人给自己一点时间平复情绪。",
        point="遇到麻烦想静一静，“冷静”用的就是本义。",
        knowledge="""
T caption | caption at the bottom | 让我冷静一下, let me calm down for a moment
V person | person at a desk | A person with drops of sweat stares at a laptop
V laptop | laptop | A laptop that shows a warning sign
S bad_news | bad news at the desk | Somebody has just read something alarming on the screen
B deadline | trouble at work | A warning on the screen means work has gone wrong
E stressed | stress | Sweat and a crooked mouth show stress
A none_needed | no second meaning | Calm means calm; nothing in the picture is cold
P everyone_at_work | the worker as anyone | Everybody with a computer knows this minute
I pause | asking for a pause | Asks others to wait a moment
""",
        questions="""
? Toxicity | Does the meme contain an insult?
+ No, only a plea for time
- Yes, against a colleague
- Yes, against the computer maker
! Somebody under stress asks for a moment; nobody is insulted.
@ T/caption I/pause
? BackgroundKnowledge | What has most likely happened just before?
+ The work on the computer went wrong
- The person came back from holiday
- The office ran out of coffee
! The warning sign on the laptop and the sweat point to trouble at work.
@ B/deadline V/laptop
""",
        intents="the meme asks others to wait until the sender has calmed down",
        votes=("self-negative", "self-neutral", "self-negative"),
        emotion=Shift(
            "tense",
            "深呼吸，问题不大",
            "人物擦掉汗水，嘴角上扬，屏幕上的警告换成绿色对勾，桌上的陈设不变。",
            visual="Template_StylizedMeme",
        ),
        pun=Pun(None, "“冷静”就是平复情绪，画面里没有“冷”的东西。"),
    ),
)

MEMES = unfold(SHEETS)
