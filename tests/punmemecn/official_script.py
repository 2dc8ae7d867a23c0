"""A script in the shape of the authors' ``utils/eval/task.py``, in words of our own.

Its branches, lambdas, inner functions, escapes and indents are as theirs; running it would end.
"""

from __future__ import annotations

from pathlib import Path

_HEAD = """raise SystemExit("this file was run")
import textwrap


def obtain_client(model):
    if model == "x":
        client = call()
    return client
"""

_DETECTION = '''

def vlm_pun_meme_detection(dataset_path:str, language:str, prompt_mode:int):
    mode = [None, 'only_image', 'pinyin']
    assert language in ['en', 'cn']
    py = lambda text: ' '.join(spell(text))
    if language == 'cn':
        pun_meme_definition = textwrap.dedent("""\\
        定义：\\n双关 5$。
        """)
        # 1. Only image
        if prompt_mode == 1:
            instruction = textwrap.dedent("""\\
            任务：\\n判断。\\n\\n回答：
            """)
        elif prompt_mode == 2:
            instruction = lambda caption: textwrap.dedent(f"""\\
            任务：\\n字幕“{caption}”。
            """)
        elif prompt_mode == 3:
            instruction = textwrap.dedent("""\\
            第一张是；
            第二张非；
            判断第四张。
            """)
        elif prompt_mode == 4:
            instruction = lambda caption1, caption2, caption3, caption4: textwrap.dedent(f"""\\
            示例：\\n一“{caption1}”；
            二“{caption2}”；三“{caption3}”；
            四“{caption4}”。
            """)
        elif prompt_mode == 5:
            instruction = lambda caption1, caption2, caption3, caption4: textwrap.dedent(f"""\\
            一“{caption1}”拼音“{py(caption1)}”；四“{caption4}”拼音“{py(caption4)}”。
            """)
        elif prompt_mode == 6:
            instruction = lambda caption1, caption2, caption3, caption4: textwrap.dedent(f"""\\
            分析：一“{caption1}”，谐音。\\n判断：双关
            分析：二“{caption2}”。\\n判断：非双关
            四“{caption4}”。
            """)
        else:
            instruction = lambda caption1, caption2, caption3, caption4: textwrap.dedent(f"""\\
            七“{py(caption2)}{py(caption3)}”四“{caption4}”。
            """)
    else:
        pun_meme_definition = textwrap.dedent("""\\
        Definition:\\nA pun.
        """)
        if prompt_mode == 1:
            instruction = textwrap.dedent("""\\
            Task:\\nIs it?
            """)
        else:
            instruction = lambda caption: textwrap.dedent(f"""\\
            Task:\\nThe caption is "{caption}".
            """)
    for img in dataset:
        if prompt_mode == 1:
            task_prompt = pun_meme_definition + '\\n' + instruction
'''

_SENTIMENT = '''

def vlm_pun_meme_sentiment_analysis(language:str, prompt_mode:int):
    def json_sentiment(sentiment, language):
        if language == 'cn':
            return f'{{"情感指向对象": "{target}", "情感类别": "{sent_type}"}}'
    if language == 'cn':
        pun_meme_definition = textwrap.dedent("""\\
        定义：\\n双关。
        """)
        if prompt_mode == 1:
            instruction = textwrap.dedent("""\\
            回答{"情感指向对象": "XXX", "情感类别": "XXX"}。
            """)
        else:
            instruction = SENT: textwrap.dedent(f"""\\
            一“{caption1}”{json_sentiment(sent1, language=language)}；
            三{json_sentiment(sent3, language=language)}。四“{caption4}”。
            回答{{"情感指向对象": "XXX", "情感类别": "XXX"}}。
            """)
    else:
        pun_meme_definition = textwrap.dedent("""\\
        Definition:
        """)
        instruction = lambda sent1, sent2, sent3: textwrap.dedent(f"""\\
        First {json_sentiment(sent1, language=language)}.
        Reply {{"Sentiment Target": "XXX", "Sentiment Type": "XXX"}}.
        """)
'''

_CHAT = '''

def vlm_chat_driven_meme_response(difficulty:str, language:str, prompt_mode:int):
    def get_example_analysis(example_captions, prompt_mode, language):
        if language == 'cn':
            if 'pinyin' in mode[prompt_mode]:
                example_analysis = textwrap.dedent(f"""\\
                第一张“{example_captions[1]}”拼音“{py(example_captions[1])}”。
                故选C。
                """).strip('\\n')
            else:
                example_analysis = textwrap.dedent(f"""\\
                第一张“{example_captions[1]}”。
                故选C。
                """).strip('\\n')
        return example_analysis
    def get_chat_data(chat_id, first_half:bool, language:str):
        chat_history = '\\n'.join(chat[chat_id]['chat_history']) + '（表情包回复）'
        if language == 'cn':
            choices_text = ['A: 甲一', 'B: 甲二'] if first_half else \\
                           ['A: 甲五', 'B: 甲六']
        else:
            choices_text = ['A: the first'] if first_half else ['A: the fifth']
        return chat_history
    if language == 'cn':
        pun_meme_definition = textwrap.dedent("""\\
        定义：
        """)
        if prompt_mode == 2:
            instruction = lambda captions, chat_history, choices: textwrap.dedent(f"""\\
            一“{captions[1]}”四“{captions[4]}”。
            【聊天】：\\n{chat_history}
            【选项】：\\n{choices}\\n\\n回答：
            """)
        elif prompt_mode == 6:
            instruction = CHAT: textwrap.dedent(f"""\\
            八“{captions[8]}”。
            【选项】：\\n{choices1}\\n【分析】：\\n{analysis1}\\n正确答案：{answer1}\\n
            """)
        else:
            instruction = CHAT: textwrap.dedent(f"""\\
            一“{captions[1]}”八“{captions[8]}”拼音“{py(captions[8])}”。
            【聊天一】：\\n{chat_history1}
            【选项】：\\n{choices1}\\n【分析】：\\n{analysis1}\\n正确答案：{answer1}\\n
            【聊天二】：\\n{chat_history2}
            【选项】：\\n{choices2}\\n\\n回答：
            """)
'''

_OTHERS = '''

def vlm_caption_pinyin(dataset, language:str, one_shot:bool):
    keep_chinese = lambda text: text
    if not one_shot:  # zero-shot
        if language == 'cn':
            task_prompt = lambda caption: textwrap.dedent(f"""\\
            转成拼音。
            文本：{caption} -> 拼音：
            """).strip('\\n')
        else:
            task_prompt = lambda caption: textwrap.dedent(f"""\\
            Text: {caption} -> Pinyin:
            """).strip('\\n')
    else:
        task_prompt = lambda caption: textwrap.dedent(f"""\\
        {keep_chinese(example_caption)} {caption}
        """).strip('\\n')


def vlm_image_OCR(dataset, language:str, one_shot:bool):
    if not one_shot:
        if language == 'cn':
            task_prompt = textwrap.dedent("""\\
            提取字幕。
            字幕：
            """).strip('\\n')


def vlm_harmful_meme_detection(dataset_type:str, language:str):
    if language == 'cn':
        task_prompt = lambda caption: textwrap.dedent(f"""\\
        字幕“{caption}”。

        形式为{{"甲": "XXXX", "乙": "XXXX", "丙": "有害/无害"}}
        """).strip('\\n')
'''

_LAMBDAS = {
    "SENT": "lambda caption1, caption2, caption3, caption4, sent1, sent2, sent3",
    "CHAT": "lambda captions, chat_history1, choices1, analysis1, answer1, chat_history2, choices2",
}
SCRIPT = _HEAD + _DETECTION + _SENTIMENT + _CHAT + _OTHERS
for _short, _long in _LAMBDAS.items():
    SCRIPT = SCRIPT.replace(f"= {_short}:", f"= {_long}:")


def write_script(clone: Path) -> Path:
    """The script where a clone has it."""
    place = clone / "utils" / "eval" / "task.py"
    place.parent.mkdir(parents=True)
    place.write_text(SCRIPT, encoding="utf-8")
    return place
