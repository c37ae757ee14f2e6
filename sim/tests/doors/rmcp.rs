//! The official Rust client against the MCP endpoint, in each way that it can begin.

use dealer_sim::Dealer;
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientLifecycleMode, ClientServiceExt as _};
use serde_json::{Value, json};

fn ways() -> [ClientLifecycleMode; 3] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions: preferred_versions.clone() },
        ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
    ]
}

#[tokio::test]
async fn rmcp_lists_the_tools_and_reads_results_and_errors() {
    let dealer = Dealer::builder().vehicles(60).start().await.unwrap();
    for way in ways() {
        let url = dealer.url().replace("/a2a", "/mcp");
        let transport = StreamableHttpClientTransport::from_uri(url);
        let client = ().serve_with_lifecycle(transport, way.clone()).await.unwrap();
        let tools = client.list_all_tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        let expected = [
            "aap_dealer_information",
            "aap_inventory_facets",
            "aap_inventory_search",
            "aap_inventory_vehicle",
            "aap_lead_submit",
        ];
        assert_eq!(names, expected, "{way:?}");
        for (payload, kind) in [
            (json!({ "type": "inventory.search.request" }), "inventory.search.response"),
            (json!({ "type": "bad" }), "aap.error"),
        ] {
            let Value::Object(arguments) = payload else { panic!("no object") };
            let call = CallToolRequestParams::new("aap_inventory_search").with_arguments(arguments);
            let result = client.call_tool(call).await.unwrap();
            assert_eq!(result.is_error.unwrap_or(false), kind == "aap.error", "{way:?}");
            assert_eq!(result.structured_content.unwrap()["type"], kind, "{way:?}");
        }
        let unknown = client.call_tool(CallToolRequestParams::new("aap_nothing")).await;
        assert!(unknown.unwrap_err().to_string().contains("-32602"), "{way:?}");
        client.cancel().await.unwrap();
    }
}
