//! Files that are planned with: without their secrets, and with the place of every key.

use seawall_config::{KeyPlace, Plan};
use seawall_core::id::{DeploymentId, PoolId};
use std::path::Path;

const FILE: &str = r#"[server]
max_connections = 500

[[models]]
name = "chat"
queue = { patience = "3s" }

[[models.deployments]]
name = "north"
url = "https://north.example.com/v1"
region = "north"
credential = { env = "NOBODY_HAS_THIS" }

[[models]]
name = "embed"

[models.retry]
max_attempts = 1

[[models.deployments]]
name = "south"
url = "https://south.example.com/v1"
credential = { file = "/nowhere/key" }

[[models.deployments]]
name = "west"
url = "https://west.example.com/v1"
capacity = { standard = 7 }

[[tenants]]
name = "team"
keys = [{ env = "NOBODY_HAS_THIS_EITHER" }]
"#;

#[test]
fn a_plan_needs_no_secret() {
    let plan = Plan::parse(FILE, "seawall.toml").expect("the file is right");
    assert_eq!((plan.file(), plan.server().max_connections), ("seawall.toml", 500));
    let names: Vec<&str> = plan.models().iter().map(|model| model.name.as_str()).collect();
    assert_eq!((names, plan.core().deployments.len(), plan.core().tenants.len()), (vec!["chat", "embed"], 3, 1));
    assert_eq!(plan.host(DeploymentId(2)), "west.example.com");
    assert_eq!((Plan::model_key(PoolId(1)), plan.deployment_key(DeploymentId(2))), {
        ("models[1]".to_owned(), "models[1].deployments[1]".to_owned())
    });
}

#[test]
fn each_key_has_its_line_or_that_of_the_section_around_it() {
    let plan = Plan::parse(FILE, "seawall.toml").expect("the file is right");
    let written = |line| KeyPlace { line: Some(line), is_written: true };
    let around = |line| KeyPlace { line: Some(line), is_written: false };
    for (key, place) in [
        ("server.max_connections", written(2)),
        ("models[0].queue.patience", written(6)),
        ("models[0].queue.max_waiting", around(6)),
        ("models[0].retry.max_attempts", around(4)),
        ("models[1].retry.max_attempts", written(18)),
        ("models[1].retry.budget_percent", around(17)),
        ("models[1].deployments[1].capacity", written(28)),
        ("models[1].deployments[0].capacity", around(20)),
        ("tenants[0].mode", around(30)),
        ("tenants[1].mode", around(30)),
    ] {
        assert_eq!(plan.place(key), place, "{key}");
    }
    let anonymous = "[server]\nallow_anonymous = true\n[[models]]\nname = \"chat\"\n[[models.deployments]]\n\
                     name = \"north\"\nurl = \"https://north.example.com/v1\"\n";
    let plan = Plan::parse(anonymous, "seawall.toml").expect("the file is right");
    assert_eq!(plan.place("tenants[0].mode"), KeyPlace { line: None, is_written: false });
}

#[test]
fn a_wrong_file_is_no_plan_and_tells_all_its_mistakes() {
    let text = FILE.replace("max_attempts = 1", "max_attempts = 9").replace("name = \"team\"", "nme = \"team\"");
    let errors = Plan::parse(&text, "seawall.toml").expect_err("two mistakes");
    assert_eq!(errors.problems().len(), 2, "{errors}");
    let absent = Plan::load(Path::new("absent.toml")).expect_err("there is no such file");
    assert!(absent.to_string().contains("cannot be read"), "{absent}");
}
