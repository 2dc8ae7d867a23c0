"""A small checker of LaTeX tables, for machines without LaTeX: what pdflatex would stumble over."""

from __future__ import annotations

import re

KNOWN = {
    *("begin", "end", "centering", "small", "footnotesize", "scriptsize", "caption", "label"),
    *("toprule", "midrule", "bottomrule", "textbf", "textit", "textsuperscript", "setlength"),
    *("tabcolsep", "par", "vspace", "raggedright", "textless", "textgreater", "textbar", "pm"),
    *("textasciitilde", "textasciicircum", "textbackslash", "ldots", "dagger", "cdot"),
    *("rightarrow",),
}
# Characters that stand for themselves with the fonts that pdflatex loads by default.
_PLAIN = re.compile(r"[\x20-\x7e\n]*")


def check_latex(text: str) -> int:
    """Check a fragment of tables; returns the number of rows in its ``tabular`` environments."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert _PLAIN.fullmatch(body), sorted(set(re.findall(r"[^\x20-\x7e\n]", body)))
    names = set(re.findall(r"\\([A-Za-z]+)", body))
    assert names <= KNOWN, names - KNOWN
    bare = re.sub(r"\\[&%$#_{}\\]", "", body)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not re.search("[%#~^]|(?<![\\\\])_", bare)
    open_now: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", body):
        if kind == "begin":
            open_now.append(name)
        else:
            assert open_now.pop() == name
    assert not open_now
    rows = 0
    for layout, inner in re.findall(
        r"\\begin\{tabular\}\{([lcr]+)\}(.*?)\\end\{tabular\}", body, re.DOTALL
    ):
        for line in inner.splitlines():
            if line.endswith(r"\\"):
                rows += 1
                assert len(re.findall(r"(?<!\\)&", line)) == len(layout) - 1, line
    outside = re.sub(r"\\begin\{tabular\}.*?\\end\{tabular\}", "", body, flags=re.DOTALL)
    assert not re.search(r"(?<!\\)&", outside)
    return rows
