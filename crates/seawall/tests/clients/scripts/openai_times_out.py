"""Asks through the OpenAI Python client with a timeout that is shorter than the answer takes. Argument: HOST:PORT.

The client gives up and asks again by itself, twice; it has to end with the answer.
"""
import sys

import openai

sent = []
hooks = {"request": [lambda request: sent.append(request.headers["x-stainless-retry-count"])]}
client = openai.OpenAI(
    base_url=f"http://{sys.argv[1]}/v1",
    api_key="demo-key",
    timeout=1.0,
    max_retries=2,
    http_client=openai.DefaultHttpxClient(event_hooks=hooks),
)
answer = client.chat.completions.create(model="demo-chat", messages=[{"role": "user", "content": "hi"}], max_tokens=5)
assert answer.choices[0].message.content, answer
assert sent in (["0", "1"], ["0", "1", "2"]), sent
print("ok")
