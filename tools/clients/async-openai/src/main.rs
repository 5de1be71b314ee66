//! The Rust client async-openai. Argument: HOST:PORT of the data plane. Ends with `ok`, or fails.

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::types::responses::ResponseStreamEvent;
use futures_util::StreamExt as _;
use serde_json::{Value, from_value, json};
use std::error::Error;

type Done = Result<(), Box<dyn Error>>;

/// The simulated servers' tokens are words: none may be lost on the way.
fn assert_whole(text: &str, tokens: u32) {
    assert!(tokens > 0 && text.split(' ').count() == tokens as usize, "{tokens} tokens: {text:?}");
}

fn client(address: &str, key: &str) -> Client<OpenAIConfig> {
    Client::with_config(OpenAIConfig::new().with_api_base(format!("http://{address}/v1")).with_api_key(key))
}

fn chat_body(model: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "hi"}]})
}

async fn chat(user: &Client<OpenAIConfig>) -> Done {
    let answer = user.chat().create(from_value(chat_body("demo-chat"))?).await?;
    let text = answer.choices[0].message.content.as_deref().ok_or("no text")?;
    assert_whole(text, answer.usage.ok_or("no usage")?.completion_tokens);
    let completion = from_value(json!({"model": "demo-chat", "prompt": "hi"}))?;
    let answer = user.completions().create(completion).await?;
    assert_whole(&answer.choices[0].text, answer.usage.ok_or("no usage")?.completion_tokens);
    Ok(())
}

async fn chat_stream(user: &Client<OpenAIConfig>) -> Done {
    let mut body = chat_body("demo-chat");
    body["stream"] = true.into();
    body["stream_options"] = json!({"include_usage": true});
    let mut stream = user.chat().create_stream(from_value(body)?).await?;
    let (mut text, mut ended, mut usage) = (String::new(), false, None);
    while let Some(chunk) = stream.next().await {
        let chunk = chunk?;
        usage = chunk.usage.or(usage);
        for choice in chunk.choices {
            text.push_str(choice.delta.content.as_deref().unwrap_or_default());
            ended |= choice.finish_reason.is_some();
        }
    }
    assert!(ended, "no finish reason after {text:?}");
    assert_whole(&text, usage.ok_or("no usage")?.completion_tokens);
    Ok(())
}

/// Unit vectors: wrongly decoded numbers are none.
fn assert_unit(vector: &[f32]) {
    let norm: f32 = vector.iter().map(|number| number * number).sum();
    assert!((norm - 1.0).abs() < 1e-4, "{norm}: {vector:?}");
}

async fn embeddings(user: &Client<OpenAIConfig>) -> Done {
    let mut body = json!({"model": "demo-embed", "input": ["boats", "tides"]});
    let plain = user.embeddings().create(from_value(body.clone())?).await?;
    body["encoding_format"] = "base64".into();
    let coded = user.embeddings().create_base64(from_value(body)?).await?;
    assert_eq!((plain.data.len(), coded.data.len()), (2, 2));
    plain.data.iter().for_each(|item| assert_unit(&item.embedding));
    coded.data.into_iter().for_each(|item| assert_unit(&Vec::from(item.embedding)));
    Ok(())
}

async fn responses(user: &Client<OpenAIConfig>) -> Done {
    let mut body = json!({"model": "demo-chat", "input": "hi"});
    let answer = user.responses().create(from_value(body.clone())?).await?;
    let text = answer.output_text().ok_or("no text")?;
    assert_whole(&text, answer.usage.ok_or("no usage")?.output_tokens);
    body["stream"] = true.into();
    let mut stream = user.responses().create_stream(from_value(body)?).await?;
    let (mut text, mut last) = (String::new(), None);
    while let Some(event) = stream.next().await {
        let event = event?;
        if let ResponseStreamEvent::ResponseOutputTextDelta(piece) = &event {
            text.push_str(&piece.delta);
        }
        last = Some(event);
    }
    let Some(ResponseStreamEvent::ResponseCompleted(completed)) = last else {
        return Err(format!("the last event is {last:?}").into());
    };
    assert_eq!(completed.response.output_text().as_deref(), Some(text.as_str()));
    assert_whole(&text, completed.response.usage.ok_or("no usage")?.output_tokens);
    Ok(())
}

/// Status and code of the refusal, and its message.
async fn refusal(user: &Client<OpenAIConfig>, model: &str) -> Result<(u16, Option<String>, String), Box<dyn Error>> {
    match user.chat().create(from_value(chat_body(model))?).await {
        Ok(answer) => Err(format!("it was served: {answer:?}").into()),
        Err(OpenAIError::ApiError(error)) => {
            Ok((error.status_code.as_u16(), error.api_error.code, error.api_error.message))
        }
        Err(other) => Err(other.into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Done {
    let address = std::env::args().nth(1).ok_or("usage: async-openai-surface HOST:PORT")?;
    let user = client(&address, "demo-key");
    chat(&user).await?;
    chat_stream(&user).await?;
    embeddings(&user).await?;
    responses(&user).await?;
    let models: Vec<String> = user.models().list().await?.data.into_iter().map(|model| model.id).collect();
    assert_eq!(models, ["demo-chat", "demo-embed"]);
    let (status, code, _) = refusal(&client(&address, "wrong"), "demo-chat").await?;
    assert_eq!((status, code.as_deref()), (401, Some("invalid_api_key")));
    let (status, code, message) = refusal(&user, "gpt-0").await?;
    assert_eq!((status, code.as_deref()), (404, Some("model_not_found")));
    assert!(message.contains("demo-embed"), "{message}");
    println!("ok");
    Ok(())
}
