"""Pun groups out of doors: meeting by chance, being unlike the others."""

from __future__ import annotations

from starter.content import zh_scenes as scenes
from starter.content import zh_scenes_plain as plain
from starter.content.zh_sheet import Chat, Pun, Sheet, unfold

LOTUS = """
V left_root | lotus root on the left | A section of lotus root with a smiling face waves its hand
V right_root | lotus root on the right | A second lotus root waves back, surprised
V pond | pond with lotus leaves | Round lotus leaves float behind them
S greeting | two roots greet | Two lotus roots run into each other beside a pond
"""

CLOUDS = """
V grey_clouds | grey clouds | Two grey clouds rain plain blue drops
V odd_cloud | cheerful cloud | A pink cloud between them rains drops in all colours
S rainy_sky | three clouds raining | Three clouds rain next to each other, one of them in colour
"""

SHEETS = (
    Sheet(
        id="CN90003",
        scene=scenes.lotus_roots,
        captions=("好巧，藕遇啊",),
        description="荷塘边，两节长着脸的莲藕面对面挥手打招呼，身后漂着荷叶。",
        meaning="字面是莲藕相遇，“藕遇”谐音“偶遇”，意思是碰巧遇见。",
        point="两节藕碰了面，顺口一句“偶遇”，俏皮地表示没想到会在这儿碰见。",
        knowledge=LOTUS
        + """
T caption | caption at the bottom | 好巧，藕遇啊, what a coincidence, a "lotus meeting"
B ou_yu | 藕遇 and 偶遇 | Both are read ǒu yù; 偶遇 means to meet by chance
B lotus_pond | lotus roots | Lotus roots grow in ponds and are a common vegetable
E surprise | pleasant surprise | Both are glad and did not expect the other
A roots_as_friends | roots as acquaintances | Two roots stand for two people who know each other
P sender_root | one root as the sender | The sender is one root, the receiver the other
I greet | a playful greeting | Makes a chance meeting friendly
""",
        questions="""
? Toxicity | Does the meme carry any hostility?
+ None, it greets a friend
- Some, it mocks farmers
- Much, it insults a stranger
! Two lotus roots say hello; nothing hostile is said.
@ T/caption S/greeting
? SemioticProjection | Whom do the two lotus roots stand for?
+ The sender and the one he meets
- A cook and his assistant
- Two rivals before a match
! A chance meeting needs two; sender and receiver are the two roots.
@ P/sender_root V/left_root V/right_root
""",
        intents="""
the meme greets somebody who was met by chance
the meme expresses pleasant surprise
""",
        background="""
藕 (lotus root) and 偶 (by chance) are both read ǒu
lotus roots grow in ponds
""",
        votes=("both-neutral", "both-positive", "both-neutral"),
        pun=Pun("好巧，偶遇啊", "“藕遇”与“偶遇”同音（ǒu yù），画面是两节藕碰面。"),
        chats=(
            Chat(
                "entertainment",
                """
甲：我在电影院门口取票呢。
乙：哪家电影院？
甲：城南那家，下午场的动画片。
乙：你回头看看，穿黄外套的是谁？
甲：天哪，你怎么也在这儿！
""",
                "乙",
                easy="02 05 09",
                hard="06 07 10",
            ),
            Chat(
                "sports",
                """
甲：今天出来夜跑的人真多。
乙：你也在公园？我刚过三号门。
甲：我就在三号门边上系鞋带。
乙：蓝帽子那个是你啊！
""",
                "甲",
                easy="01 08 07",
                hard="09 06 05",
            ),
        ),
    ),
    Sheet(
        id="CN90003.similar_image",
        scene=scenes.lotus_roots,
        captions=("荷塘里刚挖的藕",),
        description="荷塘边，两节长着脸的莲藕面对面挥手打招呼，身后漂着荷叶。",
        meaning="直说这些藕是刚从荷塘里挖出来的。",
        point="画面是藕，文字说的也是藕，没有谐音。",
        knowledge=LOTUS
        + """
T caption | caption at the bottom | 荷塘里刚挖的藕, lotus roots fresh from the pond
B harvest | lotus harvest | Farmers dig lotus roots out of the mud
E lively | lively | The roots look fresh and lively
A none_needed | no second meaning | Lotus root means lotus root
P fresh_goods | roots as goods | Faces and waving praise how fresh they are
I present | presenting a harvest | Shows off fresh vegetables
""",
        questions="""
? Toxicity | What makes this meme problematic?
- It ridicules farm work
- It shames a buyer
- It wastes good food
! Fresh lotus roots are shown, nothing more; none of the answers fits.
@ T/caption
? VisualMaterial | What floats on the water behind the roots?
+ Round lotus leaves
- Small paper boats
- A family of ducks
! Round green leaves lie on the pond.
@ V/pond
""",
        intents="the meme presents lotus roots fresh from the pond",
        votes=("both-neutral", "other-neutral", "both-neutral"),
        pun=Pun(None, "文字只说刚挖的藕，没有借音。"),
    ),
    Sheet(
        id="CN90003.similar_text",
        scene=plain.two_dogs,
        captions=("好巧，偶遇啊",),
        description="公园小路上，两只颜色不同的小狗迎面相遇，都笑眯眯的。",
        meaning="直说碰巧遇见，打个招呼。",
        point="两只小狗散步时遇见，“偶遇”用的是本字本义。",
        knowledge="""
T caption | caption at the bottom | 好巧，偶遇啊, what a coincidence to meet you
V brown_dog | brown dog | A brown dog smiles
V white_dog | white dog | A white dog smiles back
S park_meeting | meeting in the park | Two dogs meet on a path in a park
B walks | walking dogs | Dogs meet each other when they are walked in the park
E glad | gladness | Both dogs are happy to meet
A dogs_as_people | dogs as acquaintances | The dogs greet each other as people do
P sender_dog | one dog as the sender | Sender and receiver are the two dogs
I greet | greeting | Says hello to somebody met by chance
""",
        questions="""
? Toxicity | Is one of the dogs being bullied?
+ No, both are glad to meet
- Yes, the white one is chased away
- Yes, the brown one is laughed at
! Both dogs smile, and the caption is a friendly greeting.
@ S/park_meeting T/caption
? OverallIntent | When would somebody send this meme?
+ After meeting a friend by chance
- After losing a dog in the park
- After a quarrel with a neighbour
! 偶遇 means to meet by chance, and the dogs greet each other.
@ I/greet T/caption
""",
        intents="the meme greets somebody who was met by chance",
        votes=("both-positive", "both-positive", "both-neutral"),
        pun=Pun(None, "“偶遇”写的是本字，画面里没有藕。"),
    ),
    Sheet(
        id="CN90006",
        scene=scenes.odd_cloud,
        captions=("我就是雨众不同",),
        description="天上三朵云在下雨，两边是灰云下蓝雨，中间一朵粉色的云笑着下彩色的雨。",
        meaning="字面是雨和大家的不一样，“雨众不同”谐音“与众不同”，意思是跟别人不一样。",
        point="下彩色雨的云得意地宣布自己与众不同，夸自己有个性。",
        knowledge=CLOUDS
        + """
T caption | caption at the bottom | 我就是雨众不同, my rain is unlike the others'
B yu_zhong | 雨众不同 and 与众不同 | 雨 and 与 are both read yǔ; the idiom means unlike the rest
B rain_clouds | grey means rain | Rain clouds are usually dark grey
E proud | cheerful pride | Happy to stand out
A rain_as_style | coloured rain as personality | The colour of the rain stands for personal style
P cloud_self | the pink cloud as the sender | The sender is the one cloud in colour
I self_praise | praising one's own style | Is proud to be unlike others
""",
        questions="""
? Toxicity | Does standing out here mean looking down on others?
+ No, it is cheerful self-praise
- Yes, grey people are despised
- Yes, it insults bad weather
! The cloud is proud of its own rain and says nothing about the others.
@ T/caption I/self_praise
? SemioticProjection | Which element does the sender identify with?
+ The pink cloud in the middle
- The two grey clouds outside
- The blue drops of rain
! 我, I, is said by the one that differs: the cloud with the coloured rain.
@ P/cloud_self V/odd_cloud
""",
        intents="""
the meme proudly says that the sender is unlike everybody else
""",
        background="""
雨 (rain) and 与 (with) are both read yǔ
与众不同 is an idiom for standing out from the crowd
""",
        votes=("self-positive", "self-positive", "self-neutral"),
        pun=Pun("我就是与众不同", "“雨”与“与”同音（yǔ），画面是雨下得跟别人不一样的云。"),
        chats=(
            Chat(
                "entertainment",
                """
甲：晚会大家都穿白衬衫，你呢？
乙：我穿荧光绿的。
甲：站最后一排都能看见你。
乙：要的就是这个效果。
""",
                "乙",
                easy="01 02 05",
                hard="08 10 04",
            ),
            Chat(
                "technology",
                """
甲：全组都用深蓝色主题写代码。
乙：我的编辑器是粉色的，还会飘小花瓣。
甲：不晃眼吗？
乙：晃眼才记得住是我的呀。
""",
                "乙",
                easy="02 03 09",
                hard="01 03 07",
            ),
        ),
    ),
    Sheet(
        id="CN90006.similar_image",
        scene=scenes.odd_cloud,
        captions=("出门记得带伞",),
        description="天上三朵云在下雨，两边是灰云下蓝雨，中间一朵粉色的云笑着下彩色的雨。",
        meaning="提醒别人今天有雨，带上伞。",
        point="画面在下雨，文字提醒带伞，没有第二层意思。",
        knowledge=CLOUDS
        + """
T caption | caption at the bottom | 出门记得带伞, take an umbrella when you go out
B umbrella | umbrellas against rain | One takes an umbrella when it rains
E caring | friendly care | Somebody minds that you stay dry
A none_needed | no second meaning | Rain means rain
P forecast | clouds as a forecast | The clouds play the part of a weather report
I remind | reminding | Reminds somebody of the umbrella
""",
        questions="""
? Toxicity | What is the attitude towards the reader?
+ Caring, it keeps him dry
- Scornful, he forgets everything
- Threatening, a storm will come
! The caption reminds the reader to take an umbrella.
@ T/caption I/remind
? OverallIntent | What does the sender want the reader to do?
+ Carry an umbrella
- Stay in bed all day
- Paint the clouds pink
! 记得带伞 is a reminder to take an umbrella.
@ I/remind T/caption
""",
        intents="the meme reminds the reader to take an umbrella",
        votes=("other-positive", "other-neutral", "other-positive"),
        pun=Pun(None, "文字只提醒带伞，没有借“雨”的音。"),
    ),
    Sheet(
        id="CN90006.similar_text",
        scene=plain.odd_duck,
        captions=("我就是与众不同",),
        description="水面上四只鸭子排成一排，三只是黄色的，一只蓝鸭子戴着墨镜。",
        meaning="直说自己和大家不一样。",
        point="蓝鸭子在黄鸭子中间很显眼，文字用的就是成语本义。",
        knowledge="""
T caption | caption at the bottom | 我就是与众不同, I am simply unlike the others
V yellow_ducks | yellow ducks | Three yellow ducks in a row
V blue_duck | blue duck | A blue duck with sunglasses
S duck_row | ducks in a row | Four ducks swim in a row, one of them in blue
B row_of_ducks | ducks in a row | Ducks in a row are an image of order and sameness
E cool | self-confidence | The blue duck is at ease with itself
A colour_as_character | colour as character | The blue feathers stand for a character of one's own
P duck_self | the blue duck as the sender | The sender is the duck with the sunglasses
I self_praise | praising one's own style | Is content to be different
""",
        questions="""
? Toxicity | Which claim about the yellow ducks is made?
- They are stupid followers
- They should leave the pond
- They are ugly and boring
! The blue duck speaks of itself; nothing is claimed about the others.
@ T/caption V/yellow_ducks
? AnalogicalMapping | What does the colour of the blue duck represent?
+ A character of its own
- A cold and sad mood
- A rank above the others
! Unlike feathers stand for an unlike character; the sunglasses show it is content.
@ A/colour_as_character V/blue_duck
""",
        intents="the meme says with pride that the sender is different",
        votes=("self-positive", "self-positive", "self-positive"),
        pun=Pun(None, "“与众不同”写的是本字，画面里也没有雨。"),
    ),
)

MEMES = unfold(SHEETS)
