"""How often and when the OpenAI Python client really comes back. Arguments: HOST:PORT, and `waits` or `stops`.

Nothing is intercepted: a hook of its HTTP library sees each request and each answer, and the client sleeps as it does.
"""
import sys
import time

import openai

host, expected = sys.argv[1:]
sent, answers = [], []
hooks = {
    "request": [lambda request: sent.append((time.monotonic(), request.headers["x-stainless-retry-count"]))],
    "response": [lambda response: answers.append((time.monotonic(), response.status_code, dict(response.headers)))],
}
client = openai.OpenAI(
    base_url=f"http://{host}/v1", api_key="demo-key", http_client=openai.DefaultHttpxClient(event_hooks=hooks)
)
try:
    client.chat.completions.create(model="demo-chat", messages=[{"role": "user", "content": f"at {time.time_ns()}"}])
    raise SystemExit("a fleet that serves nobody served")
except openai.RateLimitError as error:
    code = error.code

assert all(status == 429 for _, status, _ in answers), answers
if expected == "stops":
    # The status alone would bring the client back twice, and the wait would tell it when.
    assert code == "upstream_error_retried", code
    assert len(sent) == 1, sent
    assert answers[0][2]["x-should-retry"] == "false" and int(answers[0][2]["retry-after"]) >= 30, answers
else:
    assert code == "capacity_exhausted", code
    assert [count for _, count in sent] == ["0", "1", "2"], sent
    for (answered, _, headers), (came_back, _) in zip(answers, sent[1:]):
        told = int(headers["retry-after-ms"]) / 1000
        assert "x-should-retry" not in headers and 0.5 <= told <= 58, headers
        # Never earlier than told; how much later depends on how busy this machine is.
        assert came_back - answered >= told, (came_back - answered, told)
print("ok")
