package e2e

import (
	"path/filepath"
	"testing"
)

// server is a real MCP server and what it answers.
type server struct {
	name string
	// start returns the arguments of sse-server that lead to a fresh server.
	start func(t *testing.T) []string
	// tool answers a text with the token in it, given the arguments for the token.
	tool string
	args func(token string) map[string]any
	// walk is a tool that reports as much progress as steps says, if there is one.
	walk  string
	pace  map[string]any
	steps int
	// late: its progress may come after the answer, when nobody wants it any more.
	late bool
	// uri is a resource and text what is in it; "" for a server without.
	uri, text string
	// prompt answers the greeting for the arguments; "" for a server without.
	prompt, greeting string
	wants            map[string]string
	// questions are its tools that ask the client something.
	questions []question
}

// question is a tool that answers what the client answered.
type question struct {
	tool string
	args map[string]any
}

// ours completes a server that has the tools of ./everything.
func ours(name string, start func(t *testing.T) []string) server {
	return server{
		name: name, start: start,
		tool: "echo", args: message,
		walk: "progress", pace: map[string]any{"steps": 5}, steps: 5,
		uri: "test://greeting", text: "hello",
		prompt: "greet", wants: map[string]string{"name": "anna"}, greeting: "Greet anna",
		questions: []question{{tool: "sampling"}, {tool: "elicitation"}, {tool: "roots"}},
	}
}

// oursLate is ours for mcp-go, whose notifications go another way than its answers.
func oursLate(name string, start func(t *testing.T) []string) server {
	s := ours(name, start)
	s.late = true
	return s
}

func message(token string) map[string]any { return map[string]any{"message": token} }

// stdioServers are started by the gateway.
func stdioServers() []server {
	return []server{
		{
			name: "Demo", start: func(*testing.T) []string { return nil },
			tool: "echo", args: message,
		},
		serverEverything("Everything", everything),
		{
			name: "Filesystem", start: filesystem,
			tool: "create_directory", args: func(token string) map[string]any { return map[string]any{"path": token} },
		},
		{
			name: "Memory", start: memory,
			tool: "create_entities", args: func(token string) map[string]any {
				return map[string]any{"entities": []any{map[string]any{"name": token, "entityType": "e2e", "observations": []string{}}}}
			},
			uri: "memory://knowledge-graph", text: "entities",
		},
		ours("GoSDK", func(t *testing.T) []string { return []string{"--", built(t, "everything")} }),
		oursLate("MCPGo", func(t *testing.T) []string { return []string{"--", built(t, "everything"), "-sdk", "mcp-go"} }),
	}
}

// serverEverything completes server-everything over one transport.
func serverEverything(name string, start func(t *testing.T) []string) server {
	return server{
		name: name, start: start,
		tool: "echo", args: message,
		walk: "trigger-long-running-operation", pace: map[string]any{"duration": 0.1, "steps": 5}, steps: 5,
		uri: "demo://resource/dynamic/text/1", text: "Resource 1",
		prompt: "args-prompt", wants: map[string]string{"city": "Rome"}, greeting: "weather in Rome",
		questions: []question{
			{tool: "trigger-sampling-request", args: map[string]any{"prompt": "who are you?"}},
			{tool: "trigger-elicitation-request"}, {tool: "get-roots-list"},
		},
	}
}

// everything returns the arguments that put server-everything behind the gateway.
func everything(t *testing.T) []string {
	t.Helper()
	return []string{"--", node(t), serverEverythingJS(t), "stdio"}
}

func serverEverythingJS(t *testing.T) string {
	t.Helper()
	return npm(t, "@modelcontextprotocol/server-everything/dist/index.js")
}

// filesystem serves an empty directory. Relative paths are below it.
func filesystem(t *testing.T) []string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--", "env", "--chdir=" + dir, node(t), npm(t, "@modelcontextprotocol/server-filesystem/dist/index.js"), dir}
}

// memory serves a knowledge graph of its own, in a file that all its children share.
func memory(t *testing.T) []string {
	t.Helper()
	return []string{"--", "env", "MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "memory.jsonl"),
		node(t), npm(t, "@modelcontextprotocol/server-memory/dist/index.js")}
}

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

// modes are the ways to give sessions to connections.
func modes() map[string][]string {
	return map[string][]string{"PerConnection": nil, "Shared": {"--sessions", "shared"}}
}
