//! The bodies of `/v1/models` and its siblings: what the key may call, in the caller's dialect.

use crate::dialect::Dialect;
use bytes::Bytes;
use serde_json::{Value, json};

/// The list of `names`, in that order. `created` is in seconds since the Unix epoch (OpenAI, Azure); Anthropic's form
/// has the epoch itself, its own word for an unknown date.
pub fn list_body<'a>(dialect: Dialect, names: impl IntoIterator<Item = &'a str>, created: u64) -> Bytes {
    let data: Vec<Value> = names.into_iter().map(|name| entry(dialect, name, created)).collect();
    let list = match dialect {
        Dialect::OpenAi | Dialect::Azure => json!({"object": "list", "data": data}),
        Dialect::Anthropic => {
            let id = |entry: Option<&Value>| entry.map_or(Value::Null, |entry| entry["id"].clone());
            json!({"first_id": id(data.first()), "last_id": id(data.last()), "has_more": false, "data": data})
        }
    };
    list.to_string().into()
}

/// One model.
pub fn model_body(dialect: Dialect, name: &str, created: u64) -> Bytes {
    entry(dialect, name, created).to_string().into()
}

fn entry(dialect: Dialect, name: &str, created: u64) -> Value {
    match dialect {
        Dialect::OpenAi => json!({"id": name, "object": "model", "created": created, "owned_by": "seawall"}),
        Dialect::Azure => json!({
            "id": name, "object": "model", "status": "succeeded", "created_at": created, "created": created,
            "owned_by": "seawall", "lifecycle_status": "generally-available"
        }),
        Dialect::Anthropic => {
            json!({"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn lists_keep_names_and_order() {
        for dialect in Dialect::ALL {
            let list = parsed(&list_body(dialect, ["b\"1", "a"], 5));
            let names: Vec<&str> =
                list["data"].as_array().unwrap().iter().filter_map(|entry| entry["id"].as_str()).collect();
            assert_eq!(names, ["b\"1", "a"], "{dialect:?}");
            assert_eq!(parsed(&model_body(dialect, "a", 5)), list["data"][1]);
        }
        let list = parsed(&list_body(Dialect::Anthropic, ["x", "y"], 5));
        assert_eq!((&list["first_id"], &list["last_id"], &list["has_more"]), (&json!("x"), &json!("y"), &json!(false)));
        let empty = parsed(&list_body(Dialect::Anthropic, [], 5));
        assert_eq!((&empty["data"], &empty["first_id"]), (&json!([]), &Value::Null));
    }
}
