// What the OpenAI Node client does in situations of the wire contract; see contract.py. SEAWALL is HOST:PORT,
// SITUATIONS are their names.
import OpenAI from "openai";

const MODELS = {
  "wrong-key": "full",
  "too-large": "full",
  deadline: "silent",
  draining: "patient",
  "twin-first": "twin",
};
const HEADERS = {
  deadline: { "x-seawall-deadline-ms": "50" },
  "twin-first": { "x-seawall-deadline-ms": "300000", "idempotency-key": "one" },
  twin: { "idempotency-key": "one" },
};
const STREAMS = ["breaks", "error-first"];
const SHOWN = ["retry-after", "retry-after-ms", "x-ms-retry-after-ms", "x-should-retry", "x-seawall-outcome"];
const TEXTS = { "too-large": "x".repeat(100_000), "twin-first": "twin" };

async function call(client, situation, options) {
  const messages = [{ role: "user", content: TEXTS[situation] ?? situation }];
  const answer = await client.chat.completions.create(
    { model: MODELS[situation] ?? situation, messages, max_tokens: 10, stream: STREAMS.includes(situation) },
    { headers: HEADERS[situation] ?? {}, ...options },
  );
  if (STREAMS.includes(situation)) {
    for await (const _ of answer);
  }
}

async function ask(situation) {
  let sent = [];
  let answers = [];
  const watched = async (...request) => {
    sent.push(performance.now());
    const response = await fetch(...request);
    const at = performance.now();
    const shown = SHOWN.filter((name) => response.headers.has(name));
    const headers = Object.fromEntries(shown.map((name) => [name, response.headers.get(name)]));
    answers.push({ at, status: response.status, headers });
    return response;
  };
  const apiKey = situation === "wrong-key" ? "wrong" : "demo-key";
  const client = new OpenAI({ baseURL: `http://${process.env.SEAWALL}/v1`, apiKey, fetch: watched });
  let error = null;
  let code = null;
  if (situation === "again") {
    await call(client, situation, { maxRetries: 0 }).catch(() => {});
    sent = [];
    answers = [];
  }
  try {
    await call(client, situation, {});
  } catch (raised) {
    error = raised.constructor.name;
    code = raised.code ?? null;
  }
  answers = answers.map(({ at, ...answer }, index) => ({ ...answer, gap: (sent[index + 1] - at) / 1000 }));
  return { situation, attempts: sent.length, error, code, answers };
}

for (const told of await Promise.all(process.env.SITUATIONS.split(" ").map(ask))) {
  console.log(JSON.stringify(told));
}
