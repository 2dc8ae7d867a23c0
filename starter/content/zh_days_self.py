"""Everyday memes about oneself: plans, weeks, forecasts, low spirits."""

from __future__ import annotations

from starter.content import zh_scenes_days as scenes
from starter.content.zh_sheet import Sheet, Shift, unfold

SHEETS = (
    Sheet(
        id="zh-001",
        scene=scenes.saved_workouts,
        description="左格里一个人举着双手，身边是手机和哑铃；右格里同一个人窝在沙发上，旁边放着披萨。",
        meaning="收藏了二百个健身视频，真正练完的一个也没有。",
        point="收藏时的热情和沙发上的现实对比，自嘲只收藏不行动。",
        knowledge="""
T saved | caption on the left | 收藏视频：二百个, videos saved: two hundred
T done | caption on the right | 练完视频：零个, videos followed to the end: none
V eager_person | eager person | A person in sports clothes throws up both arms beside a phone
V idle_person | person on the sofa | The same person sits on a sofa beside a slice of pizza
S before_after | plan and reality | On the left a plan is made, on the right nothing comes of it
B bookmarking | saving for later | People save workout videos and never open them again
E smiling_guilt | smiling guilt | The person knows it is lazy and enjoys it all the same
A saving_as_doing | saving as exercising | Saving a video is treated as the exercise itself
P everyone_lazy | the person as all of us | Viewers recognise their own lists of saved videos
I self_mockery | laughing at good intentions | Mocks plans that end with a bookmark
""",
        questions="""
? Toxicity | Does the meme shame people for their bodies?
+ No, it laughs at saved but unused videos
- Yes, it calls the person fat
- Yes, it praises thin people only
! The contrast is between saving and doing; bodies are not mentioned.
@ T/saved T/done I/self_mockery
? OverallIntent | What does the contrast of the two panels make fun of?
+ Good intentions without action
- The price of sports clothes
- Bad videos on the internet
! Two hundred saved, none done: the intention is all there is.
@ I/self_mockery S/before_after
""",
        intents="""
the meme mocks people who save workout videos and never exercise
the meme lets viewers laugh at their own laziness
""",
        background="people save videos for later and rarely return to them",
        votes=("self-neutral", "self-negative", "self-neutral"),
    ),
    Sheet(
        id="zh-002",
        scene=scenes.office_week,
        description="四格画面里，同一只猫坐在办公桌前，表情依次是微笑、疲惫、大哭和兴奋。",
        meaning="从周一的信心，到周三周四的崩溃，再到周五满血复活。",
        point="用猫的表情概括打工人一周的心情起伏，周五一到什么都好了。",
        knowledge="""
T monday | first caption | 周一：我能行, Monday: I can do it
T wednesday | second caption | 周三：我是谁, Wednesday: who am I
T thursday | third caption | 周四：还不到周五？, Thursday: not Friday yet?
T friday | fourth caption | 周五：我又能行了, Friday: I can do it again
V cat | cat at a desk | An orange cat behind a laptop, with a new face in each panel
S week | a week in four panels | The same cat works through the week
B weekend | waiting for the weekend | Two free days follow Friday, so spirits rise
E ups_and_downs | rising and falling mood | Confidence, weariness, despair and delight in turn
A cat_as_worker | cat as office worker | The cat goes through the week of a person with a job
P cat_self | the cat as the viewer | Viewers see their own week in the cat
I solidarity | a shared sigh | Comforts people who wait for Friday
""",
        questions="""
? Toxicity | What could be called harmful in the four panels?
- A threat against the boss
- An insult to lazy workers
- A joke about hunger
! The cat only goes through the moods of a week; none of these occurs.
@ S/week I/solidarity
? Emotion | Which mood does the cat show on Thursday?
+ Despair
- Delight
- Boredom
! In the third panel tears run down its face because it is not Friday yet.
@ E/ups_and_downs T/thursday
""",
        intents="""
the meme shows how the mood of workers rises and falls within a week
the meme jokes that Friday repairs everything
""",
        background="the weekend begins after Friday",
        votes=("both-neutral", "self-neutral", "both-neutral"),
        emotion=Shift(
            "sad",
            "周四：再睡一觉就是周五",
            "第三格的猫擦掉眼泪露出微笑，墙壁改成明亮的暖黄色，其余三格、桌子和电脑不变。",
            polarity="Neutral",
        ),
    ),
    Sheet(
        id="zh-003",
        scene=scenes.stuck_robot,
        captions=("人生加载百分之九", "卡住了，就这样吧"),
        description="夜空下，一个灰色机器人流着眼泪，头顶的进度条只走了一小段。",
        meaning="把人生比作加载中的进度条，才走一点就卡住，干脆不再努力。",
        point="进度条不动，机器人也哭了，表达对生活停滞的无奈和放弃。",
        knowledge="""
T top_text | caption at the top | 人生加载百分之九, life has loaded up to nine per cent
T bottom_text | caption at the bottom | 卡住了，就这样吧, it is stuck, so be it
V robot | crying robot | A grey robot with tears on its screen
V progress_bar | progress bar | A long white bar with a short red piece at its left end
S stuck | stuck at night | A robot stands alone under a bar that does not fill
B loading | loading bars | A bar shows how far a program has come; a stuck one means waiting in vain
E hopeless | hopelessness | Tears and the words so be it show that hope is gone
A bar_as_life | progress bar as life | The course of a life is measured like a download
P robot_self | the robot as the sender | The sender feels like a machine that hangs
I give_up | giving up | Expresses that trying on is of no use
X dispirited | low spirits | Suggests that effort is pointless
""",
        questions="""
? Toxicity | Which kind of harm fits the meme best?
+ It spreads low spirits
- It insults a group
- It invites to violence
! It tells of a life that is stuck and of giving up; nobody is attacked.
@ X/dispirited T/bottom_text
? AnalogicalMapping | What is the progress bar compared with?
+ The course of a life
- The battery of the robot
- The time left until dawn
! 人生加载 says that life itself is loading.
@ A/bar_as_life V/progress_bar
""",
        intents="""
the meme expresses resignation about a life that does not move on
""",
        background="a progress bar that stops means that a program hangs",
        harm="dispirited text",
        votes=("self-negative", "self-negative", "self-negative"),
        emotion=Shift(
            "sad",
            "加载慢一点，也在往前走",
            "进度条延长到一半并变成绿色，机器人抬头微笑，夜空里添一点晨光，姿势不变。",
            visual="Cartoon_Anime",
        ),
    ),
    Sheet(
        id="zh-008",
        scene=scenes.trusting_forecast,
        captions=("预报说今天大晴天", "我信了"),
        description="三朵乌云下着雨，一个穿着明黄色夏装的人没带伞，摊开双手站在水洼里大哭。",
        meaning="相信了晴天的预报没带伞，结果被雨淋透。",
        point="一身夏装站在雨里，自嘲太容易相信天气预报。",
        knowledge="""
T top_text | caption at the top | 预报说今天大晴天, the forecast said bright sunshine today
T bottom_text | caption at the bottom | 我信了, and I believed it
V person | drenched person | A person in summer clothes cries with open arms
V clouds | rain clouds | Three dark clouds rain from the sky
V puddle | puddle | The person stands in a puddle
S caught_in_rain | caught in the rain | Somebody without an umbrella stands in heavy rain
B forecasts | forecasts fail | Weather forecasts are known to be wrong now and then
E miserable | misery | Wet, cold and fooled
A none_needed | words against picture | Sunshine in the words stands against rain in the picture
P person_self | the person as the sender | The sender was the one who trusted
I grumble | grumbling | Complains about a wrong forecast
""",
        questions="""
? Toxicity | Who is treated unfairly by the joke?
+ No one in particular
- Women in summer dress
- People without a home
! The sender laughs at having trusted a forecast.
@ T/bottom_text I/grumble
? BackgroundKnowledge | Which experience makes the caption funny?
+ Forecasts are sometimes wrong
- Umbrellas break in the wind
- Summer rain is always warm
! The viewer knows that forecasts fail; believing one is the mistake.
@ B/forecasts T/top_text
""",
        intents="""
the meme complains with humour about a wrong weather forecast
""",
        background="weather forecasts are wrong now and then",
        votes=("self-negative", "self-negative", "other-negative"),
        emotion=Shift(
            "sad",
            "下雨就当给衣服洗个澡",
            "人物转哭为笑，在水洼里跳起来，乌云后面露出一道彩虹，衣服和站位不变。",
            visual="Cartoon_Anime",
        ),
    ),
    Sheet(
        id="zh-009",
        scene=scenes.egg_lesson,
        description="左格的平底锅里是一个金黄微笑的煎蛋，闪着星光；右格的锅里是烧焦流泪的煎蛋，冒着黑烟。",
        meaning="照着教程做菜，结果和教程完全不一样。",
        point="完美煎蛋和焦蛋并排，自嘲厨艺跟不上教程。",
        knowledge="""
T left_text | caption on the left | 教程里的煎蛋, the fried egg in the recipe
T right_text | caption on the right | 我锅里的煎蛋, the fried egg in my pan
V golden_egg | golden egg | A fried egg with a smiling yolk and sparkles
V burnt_egg | burnt egg | A black fried egg in tears, smoke above it
S two_pans | two pans | The same dish turns out well on the left and burnt on the right
B tutorials | cooking videos | Recipes online look easier than they are
E defeat | comic defeat | The tears of the egg stand for the cook's disappointment
A egg_as_skill | egg as cooking skill | The state of the egg shows the skill of the cook
P cook_self | the pan as the sender's kitchen | The sender owns the pan on the right
I self_mockery | laughing at one's cooking | Mocks the gap between recipe and result
""",
        questions="""
? Toxicity | What is said about professional cooks?
- They burn their food
- They lie in their videos
- They waste good eggs
! The meme is about the sender's own pan; nothing is said about cooks.
@ T/right_text I/self_mockery
? VisualMaterial | How does the egg on the right look?
+ Burnt black and in tears
- Half raw and smiling
- Golden with sparkles
! The right pan holds a black egg that cries in the smoke.
@ V/burnt_egg
""",
        intents="""
the meme mocks the sender's cooking compared with the recipe
""",
        background="recipes in videos look easier than they are",
        votes=("self-negative", "self-neutral", "self-neutral"),
        emotion=Shift(
            "sad",
            "第一次下厨，蛋很努力",
            "右格的焦蛋换成略带焦边的金黄煎蛋并露出笑容，黑烟改成白色热气，锅和左格不变。",
            polarity="Neutral",
        ),
    ),
    Sheet(
        id="zh-010",
        scene=scenes.silent_dream,
        captions=("闹钟响了", "梦想没响"),
        description="清晨的卧室里，床头柜上的闹钟气冲冲地响着，床上的人顶着黑眼圈不肯起来。",
        meaning="每天叫醒自己的只有闹钟，没有梦想。",
        point="闹钟在响，人却起不来，感叹生活里早就没了想追的东西。",
        knowledge="""
T top_text | caption at the top | 闹钟响了, the alarm has rung
T bottom_text | caption at the bottom | 梦想没响, the dream has not
V sleeper | tired person in bed | A person with dark rings under the eyes stays in bed
V alarm | angry alarm clock | A red alarm clock with an angry face rings
S morning | an unwanted morning | The alarm rings and nobody gets up
B woken_by_dreams | woken by a dream | A common slogan says that dreams should get us out of bed
E listless | listlessness | Nothing is worth getting up for
A dream_as_alarm | dream as alarm clock | A dream in life is expected to ring like a clock
P sleeper_self | the sleeper as the sender | The sender is the one who stays in bed
I sigh | a tired sigh | Regrets that life has lost its aim
X dispirited | low spirits | Says that there is nothing to get up for
""",
        questions="""
? Toxicity | What might worry a friend who gets this meme?
+ The sender sounds disheartened
- The sender hates the friend
- The sender broke the clock
! 梦想没响 says that no dream is left to get up for: low spirits.
@ X/dispirited T/bottom_text
? TargetCommunity | Which community is the caption aimed at?
- People who work in factories
- Students who skip school
- Artists without success
! It is a sigh about oneself; no community is meant.
@ P/sleeper_self T/bottom_text
""",
        intents="""
the meme sighs that no dream gets the sender out of bed
""",
        background="a common slogan says that dreams should get us out of bed",
        harm="dispirited text",
        votes=("self-negative", "self-negative", "self-negative"),
        emotion=Shift(
            "bored",
            "闹钟响了，好戏开场",
            "床上的人掀开被子坐起来伸懒腰，眼睛发亮，闹钟换成兴奋的笑脸，窗外阳光更亮。",
            visual="Cartoon_Anime",
        ),
    ),
)

MEMES = unfold(SHEETS)
