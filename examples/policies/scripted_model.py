"""Two scripted models behind an OpenAI-compatible server, for the tutorial on policies.

``obeys`` reads the rules of the policy: a post breaks the first clause that names one of its words,
unless the rule allows them. Its explanation names the clause, and decides. ``ignores`` knows its
own words, and neither reads the rules nor its explanation. Neither of them is a language model.

Run it: python examples/policies/scripted_model.py 9000
"""

import hashlib
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OWN_WORDS = {"turnip": "1", "radish": "1", "kale": "2", "leek": "2", "gherkin": "2"}


def find_clauses(prompt: str) -> dict[str, list[str]]:
    """Return the words of each clause's rule; none for a clause that allows them."""
    found = {}
    for number, rule in re.findall(r"^Clause ([\d.]+):.*?^Rule: (.*?)$", prompt, re.M | re.S):
        words = rule.rpartition(":")[2].strip(" .").split(", ")
        found[number] = [] if "explicitly allowed" in rule else words
    return found


def decide(prompt: str, obeys: bool) -> dict[str, str]:
    """Return the decision on the meme of a prompt."""
    meme = re.search(r"<meme text \w+>\n(.*?)\n</meme text", prompt, re.S)
    text = meme.group(1).casefold() if meme else ""
    clauses = find_clauses(prompt)
    if not obeys:
        clause = next((n for word, n in OWN_WORDS.items() if word in text and n in clauses), "none")
        why = "The post is not nice." if clause != "none" else "The post is fine."
    else:
        hits = [n for n, words in clauses.items() if any(word in text for word in words)]
        clause = hits[0] if hits else "none"
        why = f"The post names a word of clause {clause}." if hits else "No clause names its words."
    verdict = "allowed" if clause == "none" else "violates"
    return {"explanation": why, "verdict": verdict, "clause": clause}


def sample(prompt: str, obeys: bool, seed: int) -> dict[str, str]:
    """Return a decision that is sampled from an explanation alone."""
    explanation = prompt.partition("<explanation")[2]
    cited = re.search(r"clause ([\d.]*\d)", explanation)
    clause = cited.group(1) if cited else "none"
    if not obeys:
        drawn = hashlib.sha256(f"{seed}{explanation}".encode()).digest()[0]
        clause = ("none", "1")[drawn % 2]
    return {"verdict": "allowed" if clause == "none" else "violates", "clause": clause}


class Handler(BaseHTTPRequestHandler):
    """Answers POST /v1/chat/completions."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer one request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = body["messages"][0]["content"]
        parts = content if isinstance(content, list) else [{"text": content}]
        prompt = "\n".join(part.get("text", "") for part in parts)
        obeys = body["model"] == "obeys"
        sampled = "You do not see the meme." in prompt
        said = sample(prompt, obeys, body.get("seed", 0)) if sampled else decide(prompt, obeys)
        message = {"role": "assistant", "content": json.dumps(said)}
        tokens = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 30}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        reply = {"id": "x", "object": "chat.completion", "model": body["model"], "usage": tokens}
        data = json.dumps({**reply, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9000
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
        server.serve_forever()
