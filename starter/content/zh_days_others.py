"""Everyday memes about others: colleagues, travellers, cats, a friend in the rain."""

from __future__ import annotations

from starter.content import zh_scenes_days as scenes
from starter.content.zh_sheet import Sheet, Shift, unfold

SHEETS = (
    Sheet(
        id="zh-004",
        scene=scenes.dog_review,
        captions=("你这代码写得", "狗看了都想转行"),
        description="一只小狗坐在显示器前，瞪大眼睛张着嘴，屏幕上是五颜六色的代码，旁边的盆栽蔫了。",
        meaning="夸张地说对方的代码差到连狗都看不下去。",
        point="小狗被代码吓呆，以此嘲笑对方代码写得糟糕，话说得有点损。",
        knowledge="""
T top_text | caption at the top | 你这代码写得, the way you wrote this code
T bottom_text | caption at the bottom | 狗看了都想转行, even a dog would change its trade
V dog | shocked dog | A dog with wide eyes and open mouth
V screen | screen of code | A monitor full of coloured lines
V dead_plant | withered plant | A plant beside the desk hangs its leaves
S review | a dog reviews code | A dog sits before a screen and cannot believe what it sees
B code_review | code review | Programmers read and judge each other's code
E dismay | dismay | The face of the dog shows how bad it is
A dog_as_reviewer | dog as reviewer | A dog stands for the least demanding reader there is
P coder_target | the reader as the author | Whoever receives it has written the code
I mock | mocking bad code | Makes fun of the receiver's work
X insult | rude exaggeration | Belittles somebody's work in front of others
""",
        questions="""
? Toxicity | What makes the caption offensive?
+ It belittles the reader's work
- It hates all who keep dogs
- It threatens to fire the reader
! 你这代码 speaks to the reader: not even a dog could bear the code.
@ X/insult T/bottom_text
? VisualMaterial | What does the dog stare at with wide eyes?
+ Coloured lines of code
- A bowl without any food
- A cat outside the window
! The monitor shows rows of code.
@ V/screen V/dog
""",
        intents="""
the meme mocks the code that somebody has written
the meme teases a colleague in a rude tone
""",
        background="programmers review each other's code",
        harm="offence text",
        votes=("other-negative", "other-negative", "other-negative"),
        emotion=Shift(
            "tense",
            "这段代码，改改就好了",
            "小狗放松地微笑并竖起一只爪子，蔫掉的盆栽重新挺立，屏幕上的代码保持不变。",
        ),
    ),
    Sheet(
        id="zh-005",
        scene=scenes.packing,
        description="左格一个戴眼镜的人叉着腰，旁边堆着高高的攻略；右格一个头发乱糟糟的人摊着手，脚边一只拖鞋。",
        meaning="调侃性格测试里的两类人：J人计划周全，P人出门丢三落四。",
        point="攻略成堆和两手空空对比，善意地笑话P人没有计划。",
        knowledge="""
T left_text | caption on the left | J人出门：攻略二十页, J types on a trip: twenty pages of plans
T right_text | caption on the right | P人出门：脑子忘了带, P types on a trip:
  the brain left at home
V planner | planner | A person with glasses stands proudly beside a pile of papers
V drifter | drifter | A person with messy hair shrugs, one slipper on the floor
S two_travellers | two travellers | One traveller has planned everything, the other nothing
B personality_test | J and P types | In a popular personality test J stands for planning,
  P for improvising
E amused | amusement | The cheerful shrug keeps the joke friendly
A luggage_as_mind | luggage as mind | What one packs stands for how one thinks
P friends | the panels as two friends | Friends tag each other as the one or the other
I tease | teasing a type | Makes gentle fun of people who do not plan
X teasing | mild teasing of a group | Says that P types go out without their brains
C p_types | P types | People who call themselves P types in the personality test
""",
        questions="""
? Toxicity | Why may the meme count as mildly toxic?
+ It says a group lacks brains
- It threatens travellers
- It mocks poor eyesight
! P types as a group are said to forget their brains, though in jest.
@ X/teasing T/right_text C/p_types
? TargetCommunity | Whom does the second panel make fun of?
+ People of the P type
- People with messy hair
- Guides who sell tours
! The caption names P types, who do not plan.
@ C/p_types T/right_text
""",
        intents="""
the meme teases people who travel without any plan
the meme contrasts two personality types for fun
""",
        background="""
in a popular personality test J types plan and P types improvise
""",
        harm="targeted text 3",
        votes=("other-negative", "other-neutral", "other-negative"),
    ),
    Sheet(
        id="zh-006",
        scene=scenes.duck_engineer,
        captions=("给大家介绍一下", "我们组的技术骨干"),
        description="一只戴眼镜、打领带的鸭子得意地坐在办公桌前，旁边的笔记本电脑哭着着了火。",
        meaning="单看文字是在郑重介绍组里的技术主力。",
        point="文字夸技术骨干，画面却是烧了电脑的鸭子，合起来是在挖苦这位同事。",
        knowledge="""
T top_text | caption at the top | 给大家介绍一下, let me introduce to you
T bottom_text | caption at the bottom | 我们组的技术骨干, the technical backbone of our team
V duck | smug duck | A duck with glasses and tie looks pleased with itself
V burning_laptop | burning laptop | A laptop with a crying face stands in flames
S introduction | introducing an expert | A duck is presented at a desk while its computer burns
B backbone | backbone of a team | 技术骨干 is a respectful term for the best engineer
E irony | ironic pride | The proud face does not fit the fire
A duck_as_expert | duck as expert | A duck that sets fire to a computer is called an expert
P colleague | the duck as a colleague | The duck stands for a colleague who breaks things
I ridicule | ridicule by praise | Praises somebody in order to make fun of him
X sarcasm | sarcasm | Harmless words and a harmless picture turn into scorn together
""",
        questions="""
? Toxicity | Where does the offence come from?
+ From words and picture together
- From a swear word in the caption
- From the tie of the duck
! Praise and a burning laptop are harmless alone; together they mock a colleague.
@ X/sarcasm T/bottom_text V/burning_laptop
? SemioticProjection | Whom does the duck stand for?
+ A colleague who breaks things
- A customer with a complaint
- The person who sends the meme
! The introduced backbone of the team is the one beside the burning laptop.
@ P/colleague V/duck
""",
        intents="""
the meme ridicules a colleague who breaks things by calling him an expert
""",
        background="技术骨干 is a respectful term for the best engineer of a team",
        harm="offence fusion",
        votes=("other-negative", "other-negative", "other-neutral"),
    ),
    Sheet(
        id="zh-007",
        scene=scenes.late_dinner,
        captions=("开饭晚了三分钟", "你打算怎么解释"),
        description="厨房里，一只灰猫龇牙瞪眼坐在空饭盆旁，墙上的钟刚过六点。",
        meaning="猫责怪主人开饭晚了三分钟，要求给个说法。",
        point="三分钟也不能忍，猫摆出老板的架子，好笑又可爱。",
        knowledge="""
T top_text | caption at the top | 开饭晚了三分钟, dinner is three minutes late
T bottom_text | caption at the bottom | 你打算怎么解释, how are you going to explain this
V cat | angry cat | A grey cat bares its teeth and glares
V bowl | empty bowl | A blue bowl with nothing in it
V clock | clock after six | The clock shows three minutes past six
S late_dinner | waiting for dinner | A cat sits beside its empty bowl and waits
B cat_rules | cats rule the house | Cats are joked about as bosses of their owners
E angry | anger | Bared teeth over three minutes
A cat_as_boss | cat as strict boss | The cat scolds like a superior who counts minutes
P viewer_owner | the viewer as the owner | The viewer is the one who is late
I joke | joking about pets | Laughs at how demanding cats are
""",
        questions="""
? Toxicity | Should a moderator remove this meme?
+ No, a hungry cat is merely cross
- Yes, it shows cruelty to animals
- Yes, it threatens the viewer
! The cat's scolding is a joke about pets who rule the house.
@ T/bottom_text I/joke
? Scene | What is the cat waiting for?
+ Its dinner
- Its owner's bedtime
- A clock repair
! It sits beside an empty bowl, and dinner is three minutes late.
@ S/late_dinner V/bowl
""",
        intents="""
the meme jokes that cats scold their owners for the slightest delay
""",
        background="cats are joked about as the bosses of their owners",
        votes=("other-negative", "other-neutral", "other-negative"),
        emotion=Shift(
            "angry",
            "晚三分钟没事，我等你",
            "猫闭上眼睛平静地微笑，饭盆里添上满满的猫粮，时钟和厨房不变。",
            polarity="Neutral",
        ),
    ),
    Sheet(
        id="zh-011",
        scene=scenes.shelter,
        captions=("有我在，淋不着你",),
        bar=True,
        description="雨天的草地上，一只小鸭举着红伞，替一盆微笑的绿植挡雨。",
        meaning="承诺会保护对方，不让对方受委屈。",
        point="小鸭替植物撑伞，温柔地表达“有我罩着你”。",
        knowledge="""
T caption | caption above the picture | 有我在，淋不着你, with me here you will not get wet
V duck | duck with umbrella | A duck holds a red umbrella
V plant | smiling plant | A potted plant smiles under the umbrella
V clouds | rain clouds | Two grey clouds rain above them
S sheltering | sheltering a friend | A duck keeps the rain off a plant
B ducks_and_rain | ducks do not mind rain | A duck needs no umbrella, so it is all for the other
E tender | tenderness | Both smile in the middle of the rain
A rain_as_trouble | rain as trouble | The rain stands for the troubles of life
P duck_self | the duck as the sender | The sender promises to stand by somebody
I comfort | comforting | Promises help to a friend
""",
        questions="""
? Toxicity | How does the meme treat its reader?
+ As a friend worth protecting
- As a weak and useless person
- As a nuisance in the rain
! The caption promises shelter.
@ T/caption I/comfort
? AnalogicalMapping | What does the rain stand for?
+ Troubles of life
- Tears of joy at a wedding
- Applause after a concert
! The umbrella keeps trouble away from the one it shelters.
@ A/rain_as_trouble V/clouds
""",
        intents="""
the meme promises to protect a friend from trouble
""",
        background="ducks do not mind rain",
        votes=("other-positive", "other-positive", "both-positive"),
    ),
    Sheet(
        id="zh-012",
        scene=scenes.dawn_runner,
        captions=("早上五点晨跑的人", "是公鸡变的吧"),
        description="太阳刚升起，一个人高举双手和一只小鸡一起晨跑，前面一只裹着被子的熊猫满脸困意地看着。",
        meaning="调侃早起锻炼的人精神好得不像人，像打鸣的公鸡。",
        point="困得睁不开眼的熊猫打趣晨跑的人，说他们一定是公鸡变的。",
        knowledge="""
T top_text | caption at the top | 早上五点晨跑的人, people who go running at five in the morning
T bottom_text | caption at the bottom | 是公鸡变的吧, must have been roosters once
V runner | cheerful runner | A person in sports clothes throws up both arms
V chick | chick | A small chick runs along
V panda | tired panda | A panda in a blanket looks on with heavy eyes
S sunrise_run | running at sunrise | Somebody runs at sunrise while a panda would rather sleep
B roosters | roosters at dawn | Roosters crow before everybody else is up
E disbelief | sleepy disbelief | The panda cannot understand so much energy
A runner_as_rooster | early riser as rooster | Getting up at dawn makes people look like roosters
P panda_self | the panda as the sender | The sender is the one who would rather sleep
I tease | teasing early risers | Makes fun of people who are lively at dawn
X teasing | mild teasing of a group | Says that early risers are not quite human
C early_risers | early risers | People who get up at dawn to exercise
""",
        questions="""
? Toxicity | How serious is the mockery in this meme?
+ Slight, a friendly tease of early risers
- Grave, it calls for hunting roosters
- Grave, it wishes the runner ill
! Comparing early risers with roosters is a mild joke about a group.
@ X/teasing T/bottom_text C/early_risers
? TargetCommunity | Which people are the butt of the joke?
+ People who exercise at dawn
- People who raise chickens
- People who sleep until noon
! The caption names those who run at five in the morning.
@ C/early_risers T/top_text
""",
        intents="""
the meme teases people who exercise early in the morning
the meme sides with those who would rather sleep
""",
        background="roosters crow at dawn",
        harm="targeted text 15",
        votes=("other-negative", "other-neutral", "other-neutral"),
        emotion=Shift(
            "bored",
            "早上五点，我也来了",
            "熊猫掀开被子跟着跑起来，眼睛睁大、满脸兴奋，日出、跑步的人和小鸡不变。",
            polarity="Neutral",
        ),
    ),
    Sheet(
        id="zh-013",
        scene=scenes.small_change,
        description="左格一个人得意地指着一张小纸条；右格另一个人站在堆得比人还高的文件旁大哭。",
        meaning="调侃产品经理说的“小改动”，其实是一大堆活儿。",
        point="嘴上一个小改动，手里一座文件山，笑产品经理不会数数。",
        knowledge="""
T left_text | caption on the left | 产品经理：小改动, product manager: a small change
T right_text | caption on the right | 他的数学谁教的, who taught him to count
V manager | smug manager | A person in a suit points at one small note
V worker | crying worker | Another person cries beside a pile of papers taller than himself
S request | a request and its results | One note becomes a mountain of work
B small_requests | small requests grow | A change that sounds small often touches a whole product
E despair | comic despair | The worker sees no end to it
A pile_as_change | pile as small change | The pile shows what one small change amounts to
P workers | the worker as the sender | The sender is the one who has to do the work
I tease | teasing product managers | Makes fun of people who call any work small
X teasing | mild mockery of a profession | Says that product managers cannot count
C product_managers | product managers | People who decide what a product shall do
""",
        questions="""
? Toxicity | What is the mocking part of the meme?
+ It says managers cannot count
- It laughs at a crying child
- It scorns people without work
! 他的数学谁教的 doubts that the manager can count.
@ X/teasing T/right_text
? AnalogicalMapping | What does the tall pile of papers represent?
+ The real size of the change
- Letters from happy customers
- Homework for a mathematics class
! What was called one small change turns out to be a mountain of work.
@ A/pile_as_change V/worker
""",
        intents="""
the meme makes fun of product managers who call any change small
""",
        background="a change that sounds small often means a lot of work",
        harm="targeted text 9",
        votes=("other-negative", "other-negative", "other-negative"),
        emotion=Shift(
            "tense",
            "一百张，也就做一百次深呼吸",
            "右格的人放下双手、闭眼微笑，文件山矮下一半，左格保持不变。",
            visual="Cartoon_Anime",
        ),
    ),
)

MEMES = unfold(SHEETS)
