"""The OpenAI Python client against a real inference server behind the data plane. Argument: HOST:PORT."""
import sys

import openai

client = openai.OpenAI(base_url=f"http://{sys.argv[1]}/v1", api_key="demo-key")
hi = [{"role": "user", "content": "hi"}]
answer = client.chat.completions.create(model="tiny", messages=hi, max_tokens=8)
assert answer.usage.completion_tokens > 0, answer
pieces, reason = 0, None
for chunk in client.chat.completions.create(model="tiny", messages=hi, max_tokens=8, stream=True):
    pieces += 1
    for choice in chunk.choices:
        reason = choice.finish_reason or reason
assert pieces > 1 and reason in ("stop", "length"), (pieces, reason)
print("ok")
