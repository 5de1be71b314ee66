"""The OpenAI Python client against a real inference server behind the data plane. Argument: HOST:PORT."""
import sys

import openai

client = openai.OpenAI(base_url=f"http://{sys.argv[1]}/v1", api_key="demo-key")
hi = [{"role": "user", "content": "hi"}]
# At temperature zero the server draws the same tokens twice. What OpenAI's API does not have must pass through too.
ask = {
    "model": "tiny",
    "messages": hi,
    "max_tokens": 64,
    "temperature": 0,
    "extra_body": {"ignore_eos": True, "cache_prompt": False},
}
answer = client.chat.completions.create(**ask)
assert answer.usage.completion_tokens == 64 and answer.choices[0].finish_reason == "length", answer
text, pieces, reason, usage = "", 0, None, None
for chunk in client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}):
    usage = chunk.usage or usage
    for choice in chunk.choices:
        pieces += 1
        text += choice.delta.content or ""
        reason = choice.finish_reason or reason
assert pieces > 8 and reason == "length" and usage.completion_tokens == 64, (pieces, reason, usage)
assert text == answer.choices[0].message.content, (text, answer)
print("ok")
