// The OpenAI Node client and its Azure class. SEAWALL: HOST:PORT of the data plane.
import assert from "node:assert/strict";
import OpenAI, { AzureOpenAI } from "openai";

const host = process.env.SEAWALL;
const messages = [{ role: "user", content: "hi" }];
const client = new OpenAI({ baseURL: `http://${host}/v1`, apiKey: "demo-key" });
const azure = new AzureOpenAI({ endpoint: `http://${host}`, apiKey: "demo-key", apiVersion: "2024-10-21" });

for (const one of [client, azure]) {
  const answer = await one.chat.completions.create({ model: "demo-chat", messages });
  assert.ok(answer.choices[0].message.content && answer.usage.total_tokens > 0);
  let text = "";
  let reason = null;
  for await (const chunk of await one.chat.completions.create({ model: "demo-chat", messages, stream: true })) {
    text += chunk.choices[0]?.delta?.content ?? "";
    reason = chunk.choices[0]?.finish_reason ?? reason;
  }
  assert.ok(text && ["stop", "length"].includes(reason));
  const counted = { model: "demo-chat", messages, stream: true, stream_options: { include_usage: true } };
  let [words, usage] = ["", null];
  for await (const chunk of await one.chat.completions.create(counted)) {
    words += chunk.choices[0]?.delta?.content ?? "";
    usage = chunk.usage ?? usage;
  }
  // The simulated servers' tokens are words: none may be lost on the way.
  assert.equal(words.split(" ").length, usage.completion_tokens);
  assert.ok((await one.completions.create({ model: "demo-chat", prompt: "hi" })).choices[0].text);
  const vectors = await one.embeddings.create({ model: "demo-embed", input: ["a", "b"] });
  assert.equal(vectors.data.length, 2);
  const plain = await one.embeddings.create({ model: "demo-embed", input: ["a", "b"], encoding_format: "float" });
  for (const { embedding } of [...vectors.data, ...plain.data]) {
    // Unit vectors: wrongly decoded numbers are none.
    assert.ok(Math.abs(embedding.reduce((sum, number) => sum + number * number, 0) - 1) < 1e-4);
  }
  assert.ok(vectors.data[0].embedding.length > 0);
}

assert.ok((await client.responses.create({ model: "demo-chat", input: "hi" })).output_text);
const kinds = [];
for await (const event of await client.responses.create({ model: "demo-chat", input: "hi", stream: true })) {
  kinds.push(event.type);
}
assert.equal(kinds.at(0), "response.created");
assert.equal(kinds.at(-1), "response.completed");
const models = [];
for await (const model of client.models.list()) models.push(model.id);
assert.deepEqual(models, ["demo-chat", "demo-embed"]);

await assert.rejects(
  new OpenAI({ baseURL: `http://${host}/v1`, apiKey: "wrong" }).chat.completions.create({ model: "demo-chat", messages }),
  OpenAI.AuthenticationError,
);
await assert.rejects(client.chat.completions.create({ model: "gpt-0", messages }), (error) => {
  return error instanceof OpenAI.NotFoundError && error.code === "model_not_found" && /demo-embed/.test(error.message);
});
console.log("ok");
