"""What a client does in situations of the wire contract. Arguments: HOST:PORT, `openai` or `anthropic`, situations.

Prints one line of JSON for each: the answers with the time from each to the next attempt, the attempts, the error.
Nothing is intercepted: a hook of the HTTP library sees each request and each answer, and the client sleeps as it does.
"""
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

host, family, *situations = sys.argv[1:]
if family == "openai":
    import openai as sdk

    Client, base_url = sdk.OpenAI, f"http://{host}/v1"
else:
    import anthropic as sdk

    Client, base_url = sdk.Anthropic, f"http://{host}"

MODELS = {
    "wrong-key": "full",
    "too-large": "full",
    "deadline": "silent",
    "draining": "patient",
    "twin-first": "twin",
}
HEADERS = {
    "deadline": {"x-seawall-deadline-ms": "50"},
    "twin-first": {"x-seawall-deadline-ms": "300000", "idempotency-key": "one"},
    "twin": {"idempotency-key": "one"},
}
STREAMS = ("breaks", "error-first")
SHOWN = ("retry-after", "retry-after-ms", "x-ms-retry-after-ms", "x-should-retry", "x-seawall-outcome")
TEXTS = {"too-large": "x" * 100_000, "twin-first": "twin"}


def call(client, situation):
    create = client.chat.completions.create if family == "openai" else client.messages.create
    answer = create(
        model=MODELS.get(situation, situation),
        messages=[{"role": "user", "content": TEXTS.get(situation, situation)}],
        max_tokens=10,
        stream=situation in STREAMS,
        extra_headers=HEADERS.get(situation),
    )
    if situation in STREAMS:
        for _ in answer:
            pass


def ask(situation):
    sent, answers = [], []

    def answered(response):
        headers = {name: response.headers[name] for name in SHOWN if name in response.headers}
        answers.append((time.monotonic(), {"status": response.status_code, "headers": headers}))

    hooks = {"request": [lambda request: sent.append(time.monotonic())], "response": [answered]}
    # Nothing here is encrypted: reading the system's certificates once for each client would only take time.
    http = sdk.DefaultHttpxClient(event_hooks=hooks, verify=False)
    client = Client(
        base_url=base_url, api_key="wrong" if situation == "wrong-key" else "demo-key", http_client=http
    )
    error = code = None
    try:
        if situation == "again":
            try:
                call(client.with_options(max_retries=0), situation)
            except sdk.APIError:
                sent.clear()
                answers.clear()
        call(client, situation)
    except sdk.APIError as raised:
        error, code = type(raised).__name__, getattr(raised, "code", None)
    for (at, answer), again in zip(answers, sent[1:]):
        answer["gap"] = again - at
    answers = [answer for _, answer in answers]
    return {"situation": situation, "attempts": len(sent), "error": error, "code": code, "answers": answers}


with ThreadPoolExecutor(len(situations)) as pool:
    for told in pool.map(ask, situations):
        print(json.dumps(told))
