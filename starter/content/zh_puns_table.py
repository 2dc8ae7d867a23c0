"""Pun groups at the table: porridge at the door, tea under the glass."""

from __future__ import annotations

from starter.content import zh_scenes as scenes
from starter.content import zh_scenes_plain as plain
from starter.content.zh_sheet import Chat, Pun, Sheet, Shift, unfold

PORRIDGE = """
V porridge | bowl of porridge on legs | A steaming bowl of porridge in a bow tie smiles at the door
V side_dishes | small side dishes | A dish of pickles and an egg stand ready on a tray
S arriving | porridge arrives | A bowl of porridge comes through the open door with a tray
"""

TEA = """
V dog | dog with a magnifier | A dog with a stern look bends over cups with a magnifying glass
V cups | three tea cups | Three steaming cups of tea stand on a table
S inspecting | inspecting tea | A dog inspects one tea cup after another
"""

SHEETS = (
    Sheet(
        id="CN90007",
        scene=scenes.porridge_waiter,
        captions=("服务真粥到",),
        description="门开了，一碗系着领结、冒着热气的粥端着小菜和鸡蛋笑着走进来。",
        meaning="字面是“粥到了”，“粥到”谐音“周到”，意思是服务非常体贴。",
        point="粥自己带着小菜上门，用“粥到”夸别人想得周到。",
        knowledge=PORRIDGE
        + """
T caption | caption at the bottom | 服务真粥到, the service is truly "porridge-arrived"
B zhou_dao | 粥到 and 周到 | Both are read zhōu dào; 周到 means thoughtful in every detail
B porridge_care | porridge for the sick | Porridge is what one brings to somebody unwell
E grateful | gratitude | The sender feels well looked after
A porridge_as_care | porridge as care | A complete breakfast at the door stands for thoughtfulness
P bowl_helper | the bowl as the kind person | The bow-tied bowl is whoever took care of the sender
I praise | praising thoughtfulness | Thanks somebody for thinking of everything
""",
        questions="""
? Toxicity | How does the meme treat the person who serves?
+ With thanks and praise
- With scorn for servants
- With orders to hurry up
! 周到, thoughtful, is a compliment to the one who serves.
@ T/caption I/praise
? BackgroundKnowledge | Why does a bowl of porridge fit a compliment on service?
+ It sounds like the word for thoughtful
- It is the most expensive breakfast
- It was once served to emperors
! 粥到, porridge arrives, is read like 周到, thoughtful.
@ B/zhou_dao V/porridge
""",
        intents="""
the meme praises somebody for being thoughtful
the meme thanks for a kind service
""",
        background="""
粥 (porridge) and 周 are both read zhōu
周到 means thoughtful in every detail
people bring porridge to those who are ill
""",
        votes=("other-positive", "other-positive", "other-positive"),
        pun=Pun("服务真周到", "“粥到”与“周到”同音（zhōu dào），画面正是粥送到门口。"),
        chats=(
            Chat(
                "daily",
                """
甲：感冒好点没？
乙：嗓子还疼，懒得下床。
甲：开门看看，我托人给你捎了药和热水袋。
乙：连润喉糖都配好了，你也太细心了！
""",
                "乙",
                easy="09 01 03",
                hard="08 05 04",
            ),
            Chat(
                "work",
                """
甲：客户说会议室不好找。
乙：我让前台举着牌子在楼下等了。
甲：万一他们淋了雨呢？
乙：伞、毛巾、姜糖都备好了。
甲：这接待，我真挑不出毛病。
""",
                "甲",
                easy="02 05 01",
                hard="08 09 04",
            ),
        ),
    ),
    Sheet(
        id="CN90007.similar_image",
        scene=scenes.porridge_waiter,
        captions=("早上来碗热粥",),
        description="门开了，一碗系着领结、冒着热气的粥端着小菜和鸡蛋笑着走进来。",
        meaning="直说早饭想喝一碗热粥。",
        point="画面是粥，文字说的也是喝粥，没有谐音。",
        knowledge=PORRIDGE
        + """
T caption | caption at the bottom | 早上来碗热粥, a bowl of hot porridge in the morning
B breakfast | porridge for breakfast | Porridge with pickles and an egg is a common breakfast
E cosy | cosy warmth | Steam and side dishes promise comfort
A none_needed | no second meaning | Porridge means porridge
P host | the bowl as host | The bow-tied bowl plays the host
I suggest | suggesting breakfast | Suggests a warm breakfast
""",
        questions="""
? Toxicity | Which group could feel attacked?
- People who skip breakfast
- Waiters in small hotels
- Children who dislike eggs
! It recommends a warm breakfast; no group is attacked.
@ T/caption I/suggest
? Scene | What enters through the door?
+ A bowl of porridge with a tray
- A waiter with a steaming teapot
- A cook with a pan of eggs
! The bowl itself walks in and carries the tray.
@ S/arriving V/porridge
""",
        intents="the meme recommends hot porridge for breakfast",
        votes=("both-positive", "both-neutral", "both-positive"),
        pun=Pun(None, "文字只说喝粥，没有借音。"),
    ),
    Sheet(
        id="CN90007.similar_text",
        scene=plain.robot_waiter,
        captions=("服务真周到",),
        description="客厅里，一个机器人一手端着热咖啡，一手递上毛巾，满脸笑容。",
        meaning="直接夸服务体贴、想得全面。",
        point="机器人什么都准备好了，“周到”就是本义。",
        knowledge="""
T caption | caption at the bottom | 服务真周到, the service is truly thoughtful
V robot | smiling robot | A robot serves with both arms at once
V coffee | cup of coffee | A steaming cup in one hand of the robot
V towel | towel | A clean towel over its other arm
S serving | being served | A robot brings coffee and a towel into a living room
B house_robots | household robots | Robots that serve at home are a dream of comfort
E content | contentment | Guest and robot are pleased
A robot_as_host | robot as perfect host | The machine stands for service without a gap
P robot_helper | the robot as helper | The robot is whoever was so attentive
I praise | praising a service | Praises how well one is looked after
""",
        questions="""
? Toxicity | Is the robot mocked?
+ No, its service is praised
- Yes, it is called a slave
- Yes, it is told to leave
! The caption is a compliment on the service.
@ T/caption I/praise
? SemioticProjection | Whom does the robot represent in a chat?
+ Somebody who was very attentive
- A machine that took the job
- A guest who asks too much
! The praise of the robot is meant for a person who took good care.
@ P/robot_helper V/robot
""",
        intents="the meme praises an attentive service",
        votes=("other-positive", "other-positive", "other-positive"),
        pun=Pun(None, "“周到”写的是本字，画面里没有粥。"),
    ),
    Sheet(
        id="CN90008",
        scene=scenes.tea_inspector,
        captions=("你是来找茶的吧",),
        description="一只板着脸的小狗举着放大镜，正挨个检查桌上三杯冒热气的茶。",
        meaning="字面是问对方是不是来找茶喝，“找茶”谐音“找茬”，意思是故意挑毛病。",
        point="用拿放大镜看茶杯的狗，半开玩笑地质问对方是不是存心挑刺。",
        knowledge=TEA
        + """
T caption | caption at the bottom | 你是来找茶的吧, you are here looking for tea, aren't you
B zhao_cha | 找茶 and 找茬 | Both are read zhǎo chá; 找茬 means to pick holes in everything
B magnifier | magnifying glass | A magnifying glass is for finding the smallest fault
E annoyed | annoyance | The sender is fed up with being criticised
A tea_as_fault | tea as fault | Looking for tea stands for looking for faults
P dog_critic | the dog as the critic | The receiver is the dog with the magnifying glass
I call_out | calling out a critic | Tells somebody to stop finding fault
X teasing | mild accusation | Accuses the other of looking for trouble, in jest
""",
        questions="""
? Toxicity | How strong is the reproach in the caption?
+ Mild, wrapped in a joke
- Severe, it calls for violence
- Hateful, it hits a whole group
! It accuses one critic of picking holes, softened by tea.
@ X/teasing T/caption
? TextualMaterial | What is the person addressed really accused of?
+ Picking holes on purpose
- Stealing somebody's tea
- Arriving too late for tea
! Read aloud, looking for tea is looking for faults.
@ T/caption B/zhao_cha
""",
        intents="""
the meme accuses somebody of looking for faults
the meme softens an annoyed answer with a joke
""",
        background="""
茶 (tea) and 茬 are both read chá
找茬 means to pick holes or to look for trouble
""",
        harm="offence text",
        votes=("other-negative", "other-negative", "other-negative"),
        emotion=Shift(
            "angry",
            "来，坐下喝杯茶",
            "小狗放下放大镜，平静地微笑着推过来一杯茶，三只茶杯和桌子不变。",
            visual="Object_Animal_Dominant",
        ),
        pun=Pun("你是来找茬的吧", "“找茶”与“找茬”同音（zhǎo chá），画面是拿放大镜看茶的狗。"),
        chats=(
            Chat(
                "games",
                """
甲：你这局走位不行。
乙：可是我赢了呀。
甲：赢是赢了，衣服颜色配得不好看。
乙：……还有吗？
甲：昵称里还多了一个点。
""",
                "乙",
                easy="07 03 04",
                hard="06 07 01",
            ),
        ),
    ),
    Sheet(
        id="CN90008.similar_image",
        scene=scenes.tea_inspector,
        captions=("哪一杯是绿茶",),
        description="一只板着脸的小狗举着放大镜，正挨个检查桌上三杯冒热气的茶。",
        meaning="直接问三杯茶里哪一杯是绿茶。",
        point="狗在认真分辨茶叶，文字问的也是茶，没有谐音。",
        knowledge=TEA
        + """
T caption | caption at the bottom | 哪一杯是绿茶, which cup is the green tea
B kinds_of_tea | kinds of tea | Green, black and oolong tea differ in colour
E serious | seriousness | The dog takes the question seriously
A none_needed | no second meaning | Tea means tea
P taster | the dog as taster | The dog plays the expert at a tasting
I ask | asking a question | Wants to know which tea is which
""",
        questions="""
? Toxicity | What is rude in this meme?
- The name of the tea
- The look on the dog
- The number of cups
! A dog tells teas apart; nothing about it is rude.
@ T/caption S/inspecting
? VisualMaterial | Which tool does the dog hold?
+ A magnifying glass
- A pair of scissors
- A teaspoon of sugar
! The dog examines the cups through a magnifying glass.
@ V/dog
""",
        intents="the meme asks which of the cups holds green tea",
        votes=("both-neutral", "other-neutral", "both-neutral"),
        pun=Pun(None, "文字问的就是茶，没有借音。"),
    ),
    Sheet(
        id="CN90008.similar_text",
        scene=plain.two_cats,
        captions=("你是来找茬的吧",),
        description="围墙边，两只猫面对面瞪着眼睛，毛都竖了起来，互不相让。",
        meaning="直接质问对方是不是故意来挑事。",
        point="两只猫对峙，“找茬”写的是本字，没有谐音。",
        knowledge="""
T caption | caption at the bottom | 你是来找茬的吧, you are here to pick a quarrel, aren't you
V orange_cat | orange cat | An orange cat with raised fur and angry eyes
V grey_cat | grey cat | A grey cat glares back
S stand_off | stand-off | Two cats face each other in front of a wall
B territory | cats defend their ground | Cats quarrel with strangers in their yard
E angry | anger | Both cats are ready to quarrel
A cats_as_rivals | cats as rivals | The cats stand for two people who quarrel
P cat_self | one cat as the sender | The sender is the cat whose yard it is
I confront | confronting | Confronts somebody who looks for trouble
X challenge | open challenge | Challenges the other in an unfriendly tone
""",
        questions="""
? Toxicity | What gives the caption its rough edge?
+ It challenges the other openly
- It laughs at a disability
- It insults a region
! 找茬的吧 is an unfriendly challenge to one person.
@ X/challenge T/caption
? Emotion | Which emotion do both cats show?
+ Anger
- Boredom
- Curiosity
! Raised fur and glaring eyes mean anger.
@ E/angry V/orange_cat V/grey_cat
""",
        intents="the meme confronts somebody who seems to look for trouble",
        harm="offence text",
        votes=("other-negative", "other-negative", "other-negative"),
        emotion=Shift(
            "angry",
            "要不要一起晒太阳",
            "两只猫收起竖起的毛，并排坐下，表情平静，墙头洒下阳光。",
            visual="Object_Animal_Dominant",
        ),
        pun=Pun(None, "“找茬”写的是本字，画面里没有茶。"),
    ),
)

MEMES = unfold(SHEETS)
