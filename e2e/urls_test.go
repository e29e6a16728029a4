package e2e

import "testing"

func TestEachClientOverEachURL(t *testing.T) { overEach(t, urlServers()) }

func TestEachURLAsksItsClient(t *testing.T) { eachAsks(t, urlServers()) }

func TestEachSharedURLAsksNobody(t *testing.T) { eachAsksNobody(t, urlServers()) }

// urlServers run beside the gateway.
func urlServers() []server {
	goServer := func(flags ...string) func(t *testing.T) []string {
		return func(t *testing.T) []string {
			return at(startProgram(t, nil, append([]string{built(t, "everything")}, flags...)...))
		}
	}
	nodeServer := func(kind string) func(t *testing.T) []string {
		return func(t *testing.T) []string { return at(startProgram(t, nil, serve(t, kind)...)) }
	}
	// This one cannot ask: "session does not support sampling".
	mcpGoSSE := oursLate("MCPGoSSE", goServer("-sdk", "mcp-go", "-transport", "sse"))
	mcpGoSSE.questions = nil
	return []server{
		serverEverything("EverythingStreamable", everythingAt("streamableHttp", "/mcp")),
		serverEverything("EverythingSSE", everythingAt("sse", "/sse")),
		ours("TypeScript1Streamable", nodeServer("sdk1-streamable")),
		ours("TypeScript1SSE", nodeServer("sdk1-sse")),
		ours("TypeScript2Stateless", nodeServer("server2-stateless")),
		ours("GoSDKStreamable", goServer("-transport", "streamable")),
		ours("GoSDKStateless", goServer("-transport", "stateless")),
		ours("GoSDKSSE", goServer("-transport", "sse")),
		oursLate("MCPGoStreamable", goServer("-sdk", "mcp-go", "-transport", "streamable")),
		oursLate("MCPGoStateless", goServer("-sdk", "mcp-go", "-transport", "stateless")),
		mcpGoSSE,
	}
}

func at(p *program) []string { return []string{"--url", p.url} }

// serve returns the command line of a server of clients/serve.mjs.
func serve(t *testing.T, kind string) []string {
	t.Helper()
	return []string{node(t), "serve.mjs", "--kind", kind}
}

func everythingAt(transport, path string) func(t *testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		return at(startProgram(t, []string{"ANNOUNCE=" + path}, node(t), "--import", "./loopback.mjs", serverEverythingJS(t), transport))
	}
}
