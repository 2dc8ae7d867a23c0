"""Things one can draw: characters that name them, with English words for them.

Puns in memes write the character of what the picture shows. The list is our own: everyday food,
plants, animals, things, weather, places and elements. Characters beyond it are judged by their
radical, which the order of the Unicode block gives.
"""

from __future__ import annotations

from functools import cache, lru_cache

_GLOSSES = """
鱼 fish|虾 shrimp,prawn|蟹 crab|鲨 shark|鲸 whale|鳄 crocodile|龟 turtle,tortoise|鳖 turtle
蛙 frog|蛇 snake|虫 bug,insect,worm|蜂 bee|蝶 butterfly|蚊 mosquito|蝇 fly|蚁 ant|蛛 spider
蜗 snail|蚌 clam|贝 shell|螺 snail,shell|猫 cat|狗 dog|犬 dog|猪 pig|牛 cow,ox,bull
羊 sheep,goat|马 horse|驴 donkey|鸡 chicken,hen,rooster|鸭 duck|鹅 goose|鸟 bird|鹰 eagle
鸦 crow|雀 sparrow|鸽 pigeon,dove|燕 swallow|兔 rabbit,bunny|鼠 mouse,rat|虎 tiger|狼 wolf
狐 fox|熊 bear|狮 lion|豹 leopard|象 elephant|猴 monkey|猩 gorilla,ape|鹿 deer|骆 camel|蝠 bat
龙 dragon|蛋 egg|奶 milk|猿 ape|獭 otter|蚕 silkworm|桃 peach|梨 pear|苹 apple|橙 orange
橘 tangerine,orange|桔 tangerine|蕉 banana|莓 strawberry,berry|柿 persimmon|枣 date|杏 apricot
樱 cherry|李 plum|梅 plum|芒 mango|柠 lemon|檬 lemon|瓜 melon|葡 grape|萄 grape|椰 coconut
榴 durian|莲 lotus|荔 lychee|菠 pineapple,spinach|柚 pomelo|果 fruit|菜 vegetable,dish
葱 onion,scallion|姜 ginger|蒜 garlic|椒 pepper,chili|茄 tomato,eggplant|豆 bean|笋 bamboo shoot
菇 mushroom|菌 mushroom|芋 taro|薯 potato,chips|藕 lotus root|韭 leek|芹 celery|萝 radish
蔗 sugarcane|栗 chestnut|核 walnut,nut|米 rice|饭 rice,meal|面 noodle|粥 porridge
饼 pancake,cake,biscuit|糕 cake|包 bun,bag|饺 dumpling|馒 bun|粽 dumpling|汤 soup|肉 meat
肠 sausage|肘 pork|排 ribs|堡 burger|糖 sugar,candy|盐 salt|醋 vinegar|酱 sauce|油 oil
酒 wine,beer,alcohol|茶 tea|咖 coffee|啤 beer|酪 cheese|冰 ice|蒸 steam,steamer|煎 frying,pan
炒 wok,frying|煮 boiling,pot|烤 grill,oven|炸 fried,bomb|荤 meat|树 tree|木 wood,tree|竹 bamboo
花 flower|草 grass|叶 leaf|根 root|枯 withered|麦 wheat|棉 cotton|麻 hemp|山 mountain|河 river
海 sea|湖 lake|水 water|火 fire|石 stone|土 soil|沙 sand|云 cloud|雨 rain|雪 snow|风 wind,fan
雷 thunder|电 lightning,battery|星 star|月 moon|日 sun|阳 sun|雾 fog|墙 wall|壁 wall|门 door
窗 window|房 house|庙 temple|塔 tower|桥 bridge|路 road|车 car|船 boat|舰 ship|机 machine,plane
杯 cup|碗 bowl|盘 plate|盆 basin|瓶 bottle|壶 kettle,teapot|锅 pot,pan|刀 knife|叉 fork|勺 spoon
筷 chopsticks|钉 nail|锤 hammer|钳 pliers|锯 saw|剪 scissors|针 needle|线 thread|绳 rope|锁 lock
钥 key|匙 spoon,key|鼓 drum|琴 piano,violin|笛 flute|钟 clock,bell|表 watch|灯 lamp|烛 candle
伞 umbrella|扇 fan|球 ball|书 book|笔 pen,pencil|纸 paper|画 painting,picture|尺 ruler
键 keyboard,key|屏 screen|盒 box|箱 box,case|袋 bag|桶 bucket|篮 basket|床 bed|桌 table|椅 chair
凳 stool|枕 pillow|被 quilt|镜 mirror|帽 hat|衣 clothes,shirt|裤 trousers,pants|裙 skirt,dress
鞋 shoe|靴 boot|袜 sock|巾 towel|裆 trousers,crotch|头 head|手 hand|脚 foot,feet|眼 eye|耳 ear
鼻 nose|嘴 mouth|牙 tooth,teeth|舌 tongue|腿 leg|肝 liver|肺 lung|肾 kidney|心 heart|骨 bone
血 blood|脑 brain|发 hair|胡 beard|屎 poop|粪 poop,dung|尿 urine|屁 fart|金 gold|银 silver
铜 copper|铁 iron|铅 lead|锌 zinc|锈 rust|钱 money|币 coin|玉 jade|钻 diamond|锡 tin|氢 hydrogen
氧 oxygen|氦 helium|氮 nitrogen|氯 chlorine|碳 carbon|硫 sulfur|苯 benzene|酸 acid|碱 alkali
剑 sword|枪 gun|弹 bullet,bomb|箭 arrow|弓 bow|盾 shield|旗 flag|轮 wheel|胎 tyre,tire|桨 oar
帆 sail|墓 tomb|棺 coffin|佛 buddha|鬼 ghost|仙 fairy|僧 monk|尼 nun|兵 soldier|王 king
皇 emperor|孩 child
"""

# Blocks of the Unicode table whose radical means a plant, an animal, food, a tool, stone, rain…
_RADICALS = (
    *((0x6728, 0x6B1F), (0x706B, 0x7229), (0x725B, 0x738A), (0x74DC, 0x74E5), (0x77F3, 0x7939)),
    *((0x79BE, 0x7A73), (0x7AF9, 0x7CF7), (0x7F8A, 0x7FBC), (0x8278, 0x883F), (0x8C46, 0x8C9C)),
    *((0x9149, 0x91C5), (0x91D1, 0x9576), (0x96E8, 0x9751), (0x98DF, 0x9995), (0x99AC, 0x9AD7)),
    *((0x9B5A, 0x9E75), (0x9E7F, 0x9EBA), (0x9F20, 0x9F3A), (0x9F9C, 0x9F9F)),
)


@cache
def _glosses() -> dict[str, tuple[str, ...]]:
    entries = (entry for line in _GLOSSES.split("\n") for entry in line.split("|") if entry)
    pairs = (entry.split(" ", 1) for entry in entries)
    return {character: tuple(words.split(",")) for character, words in pairs}


def list_glosses(character: str) -> tuple[str, ...]:
    """English words for a thing; nothing where the character is not in our list.

    >>> list_glosses("鱼"), list_glosses("的")
    (('fish',), ())
    """
    return _glosses().get(character, ())


@lru_cache(maxsize=16384)
def rate_drawable(character: str) -> float:
    """How likely a character names something one can draw: 1 listed, 0.5 by its radical, else 0.

    >>> rate_drawable("鱼"), rate_drawable("蟮"), rate_drawable("的")
    (1.0, 0.5, 0.0)
    """
    if character in _glosses():
        return 1.0
    code = ord(character)
    return 0.5 if any(low <= code <= high for low, high in _RADICALS) else 0.0
