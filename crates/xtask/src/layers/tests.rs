use super::*;

const HEALTHY: &str = "\
0seawall-core v0.1.0 (/repo/crates/seawall-core)|
1rand_pcg v0.10.1|
2rand_core v0.10.0|
1smallvec v1.16.0|
0seawall-wire v0.1.0 (/repo/crates/seawall-wire)|
1seawall-core v0.1.0 (/repo/crates/seawall-core)| (*)
1serde_json v1.0.154|raw_value,std
0seawall-proxy v0.1.0 (/repo/crates/seawall-proxy)|
1hyper v1.12.0|client,server
2tokio v1.54.0|net
1seawall-wire v0.1.0 (/repo/crates/seawall-wire)| (*)
";

fn graph(text: &str) -> Graph {
    Graph::parse(text).expect("a tree as cargo prints it")
}

/// The healthy graph with one more edge.
fn with_edge(from: &str, to: &str) -> Graph {
    let mut graph = graph(HEALTHY);
    graph.add(from.to_owned(), to.to_owned());
    graph
}

#[test]
fn a_healthy_graph_breaks_no_rule() {
    let graph = graph(HEALTHY);
    assert_eq!(unknown_members(&graph.members()), []);
    assert_eq!(internal_edges(&graph), []);
    assert_eq!(reaches_no_io(&graph, "seawall-core"), []);
    assert_eq!(reaches_no_io(&graph, "seawall-wire"), []);
    assert_eq!(only_allowed(&graph, "seawall-core"), []);
    assert_eq!(banned_everywhere(&graph), []);
    assert_eq!(banned_features(&graph), []);
}

#[test]
fn a_runtime_below_a_pure_crate_is_shown_with_its_chain() {
    let graph = with_edge("serde_json v1.0.154", "hyper v1.12.0");
    let found = reaches_no_io(&graph, "seawall-wire");
    assert!(
        found.iter().any(|violation| violation.message.ends_with("seawall-wire -> serde_json -> hyper -> tokio")),
        "{found:?}"
    );
    assert!(
        found.iter().any(|violation| violation.message.ends_with("seawall-wire -> serde_json -> hyper")),
        "{found:?}"
    );
}

#[test]
fn a_transitive_dependency_off_the_allow_list_is_found() {
    let graph = with_edge("rand_core v0.10.0", "getrandom v0.4.0");
    let found = only_allowed(&graph, "seawall-core");
    assert_eq!(found.len(), 1);
    assert!(found[0].message.ends_with("seawall-core -> rand_pcg -> rand_core -> getrandom"), "{found:?}");
}

#[test]
fn an_edge_against_the_layers_is_found() {
    let graph = with_edge("seawall-core v0.1.0", "seawall-wire v0.1.0");
    let found = internal_edges(&graph);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].to_string(), "seawall-core: must not depend on seawall-wire; see the table in ARCHITECTURE.md");
}

#[test]
fn a_banned_crate_and_a_banned_feature_are_found() {
    let ring = with_edge("hyper v1.12.0", "ring v0.17.14");
    assert_eq!(banned_everywhere(&ring).len(), 1);
    let text = HEALTHY.replace("|raw_value,std", "|arbitrary_precision,raw_value");
    let found = banned_features(&graph(&text));
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("arbitrary_precision"), "{found:?}");
}

#[test]
fn a_crate_in_no_layer_is_found() {
    let graph = graph("0seawall-extra v0.1.0 (/repo/crates/seawall-extra)|\n");
    assert_eq!(unknown_members(&graph.members()).len(), 1);
}

#[test]
fn two_versions_of_one_crate_stay_apart() {
    let text = "\
0seawall-core v0.1.0 (/repo/crates/seawall-core)|
1hashbrown v0.17.0|
0seawall-proxy v0.1.0 (/repo/crates/seawall-proxy)|
1hashbrown v0.15.0|
2ahash v0.8.0|
";
    assert_eq!(only_allowed(&graph(text), "seawall-core"), []);
}

#[test]
fn nonsense_is_refused() {
    assert!(Graph::parse("0no-version\n").is_err());
    assert!(Graph::parse("3deep v1.0.0|\n").is_err());
    assert_eq!(Graph::parse("").expect("an empty tree"), Graph::default());
}
