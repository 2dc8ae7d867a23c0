"""Puns and plain captions for the tests: our own choice, slogans and sayings anybody knows."""

PUNS = (
    ("年年有鱼", "年年有余"),
    ("步步糕升", "步步高升"),
    ("一路顺疯", "一路顺风"),
    ("前途无亮", "前途无量"),
    ("骑乐无穷", "其乐无穷"),
    ("默默无蚊", "默默无闻"),
    ("咳不容缓", "刻不容缓"),
    ("随心所浴", "随心所欲"),
    ("百衣百顺", "百依百顺"),
    ("衣衣不舍", "依依不舍"),
    ("有口皆杯", "有口皆碑"),
    ("无胃不至", "无微不至"),
    ("闲妻良母", "贤妻良母"),
    ("鸡不可失", "机不可失"),
    ("食全食美", "十全十美"),
    ("饮以为荣", "引以为荣"),
    ("很高杏认识你", "很高兴认识你"),
    ("早点睡叫", "早点睡觉"),
    ("谢谢泥", "谢谢你"),
    ("四海为佳", "四海为家"),
)
PLAIN = (
    *("今天天气不错", "明天早上八点开会", "我先下班了", "你到家了吗", "周末一起吃饭"),
    *("这道题怎么做", "晚上早点休息", "请把门关上", "孩子已经睡了", "谢谢大家的支持"),
    *("我不知道该说什么", "他昨天没有来", "快点起床", "今天又加班"),
    *("老板来了", "我想回家", "多喝热水", "考试结束了", "看什么看"),
)
ENGLISH_PUNS = (
    ("lettuce pray", "let us pray"),
    ("seas the day", "seize the day"),
    ("i love ewe", "i love you"),
    ("have an ice day", "have a nice day"),
    ("eye see you", "i see you"),
    ("wood you marry me", "would you marry me"),
    ("good mourning", "good morning"),
    ("the knight before christmas", "the night before christmas"),
    ("write now", "right now"),
    ("thyme flies", "time flies"),
    ("i whale always love you", "i will always love you"),
    ("bee yourself", "be yourself"),
)
ENGLISH_PLAIN = (
    *("good morning everyone", "i love you", "me after work", "what do you mean", "this is fine"),
    *("my cat is watching you", "time flies", "the food is ready", "please be quiet"),
    *("when you see the price", "that was easy", "you shall not pass"),
)
# Two spans change, one of them to a merged sound only. The first half was looked at while features
# of the order were chosen; the second was read before and after, and nothing was chosen by it.
TWO_SPANS_TUNE = (
    ("今天蒸冷鸭", "今天真冷呀"),
    ("鲤在哪梨", "你在哪里"),
    ("鹿力学席", "努力学习"),
    ("山班池到了", "上班迟到了"),
    ("宾冷的锌", "冰冷的心"),
    ("猪大家花财", "祝大家发财"),
)
TWO_SPANS_CHECK = (
    ("鲤真梅", "你真美"),
    ("蒸好痴", "真好吃"),
    ("虾班飞家", "下班回家"),
    ("我的篮朋油", "我的男朋友"),
    ("森体健糠", "身体健康"),
    ("葱满希旺", "充满希望"),
)
