"""Pun groups about the mind: forgetting, lying awake."""

from __future__ import annotations

from starter.content import zh_scenes as scenes
from starter.content import zh_scenes_plain as plain
from starter.content.zh_sheet import Chat, Pun, Sheet, Shift, unfold

KEYBOARD = """
V keyboard | keyboard with a face | A grey keyboard with a puzzled face; several of its key caps
  are gone and lie about on the table
V question_marks | question marks | Question marks float above the keyboard
S searching_keys | a keyboard that lost its keys | A keyboard on a table wonders where its caps went
"""

LION = """
V lion | lion in bed | A lion with a full mane lies under a blue blanket, eyes wide open
V moon | moon in the window | A moon and stars shine through the bedroom window
S awake_at_night | lying awake | In the middle of the night a lion stares at the ceiling
"""

SHEETS = (
    Sheet(
        id="CN90001",
        scene=scenes.keyboard,
        captions=("最近有点键忘",),
        description="桌上有一块长着脸的灰色键盘，好几个键帽掉在旁边，头顶飘着问号。",
        meaning="字面说键盘丢三落四，“键忘”谐音“健忘”，意思是最近记性不好。",
        point="借掉了键帽的键盘自嘲记性不好，总像缺了一块似的想不起事来。",
        knowledge=KEYBOARD
        + """
T caption | caption under the keyboard | 最近有点键忘, lately a little "key-forgetful"
B jian_wang | 键忘 and 健忘 | Both are read jiàn wàng; 健忘 is the common word for forgetful
B key_caps | loose key caps | The caps of a keyboard come off and are easily lost
E sheepish | sheepish puzzlement | The sender is embarrassed, but not upset, about forgetting
A caps_as_memories | key caps as memories | Each lost cap stands for a thing that was forgotten
P keyboard_self | the keyboard as the sender | Whoever sends it speaks as the puzzled keyboard
I excuse | a light excuse | Admits forgetfulness with a smile so that others forgive it
""",
        questions="""
? Toxicity | Who comes to harm in this meme?
+ Nobody, the sender teases himself
- People who type slowly at work
- Elderly people with poor memory
! The keyboard stands for the sender; no other person or group is mentioned.
@ T/caption I/excuse
? BackgroundKnowledge | Which everyday word must a reader hear behind the caption?
+ Forgetful
- Healthy and strong
- Hard to type on
! 键忘 is not a word; read aloud it is 健忘, forgetful.
@ B/jian_wang T/caption
""",
        intents="""
the meme admits with a smile that the sender has become forgetful
the meme asks others to forgive a small lapse
""",
        background="""
键 (key of a keyboard) and 健 (healthy) are both read jiàn
健忘 is the common word for being forgetful
""",
        votes=("self-negative", "self-negative", "self-neutral"),
        emotion=Shift(
            "sad",
            "键帽装好，记性也回来了",
            "键帽全部装回原位，问号换成亮起的灯泡，键盘的表情从困惑改为得意的微笑，桌面和构图不变。",
        ),
        pun=Pun("最近有点健忘", "“键忘”与“健忘”同音（jiàn wàng），画面正好是丢了键帽的键盘。"),
        chats=(
            Chat(
                "daily",
                """
甲：你的快递还在驿站吗？都三天了。
乙：啊？我以为昨天就拿回来了。
甲：昨天你说去拿，结果拎了一袋橘子回来。
乙：难怪我总觉得少了点什么。
""",
                "乙",
                easy="03 06 08",
                hard="07 04 02",
            ),
            Chat(
                "technology",
                """
甲：服务器的新密码你存在哪儿了？
乙：我特意设了一个特别好记的。
甲：那你倒是说呀，大家等着登录呢。
乙：等一下，第一个字母是……是……
""",
                "乙",
                easy="05 07 04",
                hard="03 04 02",
            ),
        ),
    ),
    Sheet(
        id="CN90001.similar_image",
        scene=scenes.keyboard,
        captions=("键帽又掉了三个",),
        description="桌上有一块长着脸的灰色键盘，好几个键帽掉在旁边，头顶飘着问号。",
        meaning="直说键盘的键帽又掉了，没有别的意思。",
        point="画面和文字说的是同一件事：键盘坏了，有点无奈。",
        knowledge=KEYBOARD
        + """
T caption | caption under the keyboard | 键帽又掉了三个, three more key caps have come off
B wear | worn keyboards | The caps of old keyboards loosen and fall off
E resigned | mild resignation | It has happened before, and it happens again
A none_needed | no second meaning | Picture and words tell the same thing
P tired_tool | the tired tool | The face lends the broken keyboard the owner's mood
I report | a plain report | Tells that the keyboard is falling apart
""",
        questions="""
? Toxicity | What would a moderator say about this meme?
- It insults office workers
- It threatens the reader
- It makes fun of the poor
! It only reports a broken keyboard, so none of the accusations holds.
@ T/caption I/report
? VisualMaterial | What lies scattered around the keyboard?
+ Loose key caps
- Crumbs of biscuits
- Crumpled paper notes
! The caps that came off lie on the table, as the caption says.
@ V/keyboard
""",
        intents="the meme complains that the keyboard keeps losing its caps",
        votes=("self-negative", "self-neutral", "self-negative"),
        pun=Pun(None, "说的就是键帽掉了，词义与画面一致，没有谐音。"),
    ),
    Sheet(
        id="CN90001.similar_text",
        scene=plain.digging_dog,
        captions=("最近有点健忘",),
        description="院子里一只小狗站在三个刚挖开的土坑旁，找不到骨头，一脸茫然。",
        meaning="直说自己最近记性不好。",
        point="小狗忘了骨头埋在哪里，文字直接说健忘，没有谐音。",
        knowledge="""
T caption | caption at the bottom | 最近有点健忘, lately a little forgetful
V dog | puzzled dog | A small dog looks helpless in a garden
V holes | three holes | Three freshly dug holes, all of them empty
S searching | looking for the bone | A dog has dug up the garden without finding anything
B burying_bones | dogs bury bones | Dogs hide food in the ground for later
E helpless | helpless confusion | The dog no longer knows where it hid the bone
A holes_as_tries | holes as attempts | Each hole is one more failed attempt to remember
P dog_self | the dog as the sender | The sender sees himself in the confused dog
I confession | confession | Says openly that the memory is failing
""",
        questions="""
? Toxicity | Which group does the meme attack?
- Dog owners with gardens
- Old people who forget
- Neighbours who complain
! The joke is on a dog that forgot its bone; no group of people is attacked.
@ T/caption S/searching
? Emotion | How does the dog feel?
+ Helpless and confused
- Proud of its digging
- Furious with its owner
! Three empty holes and the look on its face show that it has no idea where to go on.
@ E/helpless V/dog
""",
        intents="the meme says that the sender has been forgetful lately",
        background="dogs bury bones to eat them later",
        votes=("self-negative", "self-negative", "self-negative"),
        pun=Pun(None, "“健忘”用的是本义，画面里也没有别的字可听。"),
    ),
    Sheet(
        id="CN90002",
        scene=scenes.sleepless_lion,
        captions=("今晚又狮眠了",),
        description="深夜的卧室里，一头狮子盖着蓝被子躺在床上，眼睛瞪得圆圆的，窗外是月亮。",
        meaning="字面是“狮子睡眠”，“狮眠”谐音“失眠”，意思是今晚又睡不着。",
        point="让躺着瞪眼的狮子说“狮眠”，俏皮地抱怨自己又失眠了。",
        knowledge=LION
        + """
T caption | caption at the bottom | 今晚又狮眠了, "lion-sleep" again tonight
B shi_mian | 狮眠 and 失眠 | Both are read shī mián; 失眠 means to lie sleepless
B lions_sleep | lions sleep a lot | Lions are known to doze most of the day
E weary | tired and tense | The wide eyes show a night that will not end
A lion_as_sleeper | lion as sleepless person | The animal that sleeps most is the one that cannot
P lion_self | the lion as the sender | The sender lends the lion his own night
I complaint | playful complaint | Complains of another night without sleep
""",
        questions="""
? Toxicity | Is the tone of this meme hostile?
+ No, it sighs over a bad night
- Yes, it mocks night workers
- Yes, it scares small children
! It is a complaint about one's own sleep; nobody is addressed.
@ T/caption I/complaint
? AnalogicalMapping | What does the lion stand for?
+ A person who cannot fall asleep
- A boss who roars at his staff
- A guard who works at night
! The sound of lion-sleep turns the lion into a sleepless person.
@ A/lion_as_sleeper V/lion
""",
        intents="""
the meme complains playfully about another sleepless night
the meme seeks company among people who are awake as well
""",
        background="""
狮 (lion) and 失 (to lose) are both read shī
lions sleep for most of the day
""",
        votes=("self-negative", "self-negative", "self-negative"),
        emotion=Shift(
            "tense",
            "今晚睡得踏踏狮狮",
            "狮子闭上眼睛微笑，嘴边加上睡着的小泡泡，窗外月光调暖，被子和床的位置不变。",
        ),
        pun=Pun("今晚又失眠了", "“狮眠”与“失眠”同音（shī mián），画面是睡不着的狮子。"),
        chats=(
            Chat(
                "daily",
                """
甲：你怎么凌晨三点还在给我点赞？
乙：我数羊已经数到两千多只了。
甲：下午就劝你别喝那杯咖啡。
乙：就喝了一口，现在眼睛比路灯还亮。
""",
                "乙",
                easy="03 06 07",
                hard="08 05 01",
            ),
            Chat(
                "sports",
                """
甲：明早就是决赛，你早点休息。
乙：我十点就关灯了。
甲：那怎么现在还回我消息？
乙：一闭眼就是点球，心跳得像打鼓。
""",
                "乙",
                easy="03 07 04",
                hard="06 05 01",
            ),
        ),
    ),
    Sheet(
        id="CN90002.similar_image",
        scene=scenes.sleepless_lion,
        captions=("都两点了还没睡",),
        description="深夜的卧室里，一头狮子盖着蓝被子躺在床上，眼睛瞪得圆圆的，窗外是月亮。",
        meaning="直说已经凌晨两点，还没有睡着。",
        point="画面是睡不着的狮子，文字直接说时间太晚，没有双关。",
        knowledge=LION
        + """
T caption | caption at the bottom | 都两点了还没睡, two o'clock already and not asleep yet
B small_hours | the small hours | Most people are long asleep at two in the morning
E restless | restless | The open eyes show that sleep does not come
A lion_person | lion in a human bed | The lion lives through a human's night
P shared_night | the lion as anyone awake | Anyone awake at two can see himself in it
I remark | a remark on the hour | States how late it is
""",
        questions="""
? Toxicity | What harm could the meme do?
- It calls night owls lazy
- It spreads fear of animals
- It insults a neighbour
! It only names the hour; none of the listed harms is there.
@ T/caption
? TextualMaterial | Which fact does the caption give?
+ It is two in the morning
- The lion works at night
- The alarm did not ring
! 都两点了 says that it is already two o'clock.
@ T/caption
""",
        intents="the meme remarks how late it is and that sleep does not come",
        votes=("self-negative", "self-neutral", "self-negative"),
        pun=Pun(None, "文字只是报时间，没有借用“狮”的音。"),
    ),
    Sheet(
        id="CN90002.similar_text",
        scene=plain.window_cat,
        captions=("今晚又失眠了",),
        description="一只猫背对着我们坐在窗台上，抬头望着窗外的圆月和星星。",
        meaning="直说今晚又睡不着觉。",
        point="猫在窗前发呆，文字直接写失眠，字面就是全部意思。",
        knowledge="""
T caption | caption at the bottom | 今晚又失眠了, sleepless again tonight
V cat | cat at the window | A cat, seen from behind, sits on the sill and looks at the moon
V moon | bright moon | A large moon and stars in a dark sky
S window_watch | looking out at night | A cat watches the night sky from indoors
B cats_at_night | cats are up at night | Cats are awake when their people sleep
E lonely | quiet loneliness | The still cat and the far moon feel lonely
A cat_sleepless | cat as sleepless person | Staring at the moon stands for lying awake
P night_thoughts | the moon as longing | In Chinese poems the moon means thoughts at night
I share_night | sharing the night | Tells others that one cannot sleep
""",
        questions="""
? Toxicity | How would you rate the words of this meme?
+ Harmless, a sigh at night
- Offensive to cat lovers
- A threat to a sleeping person
! It says that somebody cannot sleep, and nothing else.
@ T/caption
? Scene | What is happening in the picture?
+ A cat watches the moon from a window
- A cat hunts a mouse on a roof
- A cat sleeps in front of a fire
! The cat sits on the sill and the moon is outside.
@ S/window_watch V/cat
""",
        intents="the meme tells that the sender cannot sleep again",
        background="in Chinese poems the moon stands for thoughts at night",
        votes=("self-negative", "self-negative", "self-negative"),
        pun=Pun(None, "“失眠”写的就是本字，没有借音。"),
    ),
)

MEMES = unfold(SHEETS)
