// Package mcp holds the vocabulary of the Model Context Protocol that more than
// one package needs: method names, protocol versions, error codes, the hints of tools, and the rule
// that says when a capability is declared.
package mcp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// Methods of requests.
const (
	MethodInitialize    = "initialize"
	MethodPing          = "ping"
	MethodSetLevel      = "logging/setLevel"
	MethodSubscribe     = "resources/subscribe"
	MethodUnsubscribe   = "resources/unsubscribe"
	MethodListResources = "resources/list"
	MethodListTemplates = "resources/templates/list"
	MethodReadResource  = "resources/read"
	MethodListTools     = "tools/list"
	MethodCallTool      = "tools/call"
	MethodListPrompts   = "prompts/list"
	MethodGetPrompt     = "prompts/get"
	MethodComplete      = "completion/complete"
)

// Methods of requests about tasks, which MCP 2025-11-25 added.
const (
	MethodGetTask    = "tasks/get"
	MethodTaskResult = "tasks/result"
	MethodCancelTask = "tasks/cancel"
	MethodListTasks  = "tasks/list"
	MethodUpdateTask = "tasks/update" // of the tasks extension of MCP 2026-07-28
)

// Methods of requests that MCP 2026-07-28 added.
const (
	MethodDiscover = "server/discover"
	MethodListen   = "subscriptions/listen"
)

// NoRequest takes the place of the id of a request with which a message came, if it came with none. No request has it.
const NoRequest = "null"

// Methods of requests from servers to clients.
const (
	MethodElicit    = "elicitation/create"
	MethodSample    = "sampling/createMessage"
	MethodListRoots = "roots/list"
)

// Methods of notifications.
const (
	MethodInitialized         = "notifications/initialized"
	MethodCancelled           = "notifications/cancelled"
	MethodProgress            = "notifications/progress"
	MethodRootsChanged        = "notifications/roots/list_changed"
	MethodToolsChanged        = "notifications/tools/list_changed"
	MethodPromptsChanged      = "notifications/prompts/list_changed"
	MethodResourcesChanged    = "notifications/resources/list_changed"
	MethodResourceUpdated     = "notifications/resources/updated"
	MethodAcknowledged        = "notifications/subscriptions/acknowledged"
	MethodLogMessage          = "notifications/message"
	MethodElicitationComplete = "notifications/elicitation/complete"
	MethodTaskStatus          = "notifications/tasks/status"
	MethodTaskChanged         = "notifications/tasks" // of the tasks extension of MCP 2026-07-28
)

// Members of _meta of MCP 2026-07-28 (basic, _meta).
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo   = "io.modelcontextprotocol/clientInfo"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaLogLevel     = "io.modelcontextprotocol/logLevel"
	MetaServerInfo   = "io.modelcontextprotocol/serverInfo"
	MetaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// Types of results of MCP 2026-07-28 (basic, results).
const (
	ResultComplete = "complete"
	ResultInput    = "input_required"
)

// ChangedList returns the list, such as "tools", that a notification with this
// method says has changed. It reports false for any other method.
func ChangedList(method string) (list string, ok bool) {
	return strings.CutSuffix(strings.TrimPrefix(method, "notifications/"), "/list_changed")
}

// Error codes of MCP 2025-11-25 (schema) that MCP 2026-07-28 no longer has.
const (
	CodeResourceNotFound    = -32002
	CodeElicitationRequired = -32042
)

// URLElicitation returns the data of an error with CodeElicitationRequired, by which the client has its person visit an
// address, with an id for the notification that the person has done so.
func URLElicitation(id, message, address string) json.RawMessage {
	data, _ := json.Marshal(map[string]any{"elicitations": []map[string]string{ // never fails
		{"mode": "url", "elicitationId": id, "url": address, "message": message},
	}})
	return data
}

// VisitsURLs reports whether the capabilities of a client declare that it has its person visit addresses.
func VisitsURLs(capabilities json.RawMessage) bool {
	return Declares(capabilities, "elicitation", "url")
}

// Error codes of MCP 2026-07-28 (schema), which clients of earlier versions do
// not know.
const (
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
)

const (
	// VersionNewest is the newest protocol version that begins with initialize.
	VersionNewest = "2025-11-25"
	// VersionStateless is the protocol version that has neither initialize nor
	// sessions.
	VersionStateless = "2026-07-28"
)

// withInitialize are the protocol versions that begin with initialize.
var withInitialize = []string{"2024-11-05", "2025-03-26", "2025-06-18", VersionNewest}

// HasInitialize reports whether version is a known protocol version that begins
// with initialize.
func HasInitialize(version string) bool { return slices.Contains(withInitialize, version) }

// VersionsWithInitialize returns the known protocol versions that begin with initialize,
// oldest first.
func VersionsWithInitialize() []string { return slices.Clone(withInitialize) }

// Declares reports whether a capabilities object declares the capability that names
// lead to, such as "tools", "listChanged". An object or true declares a capability
// (MCP 2025-11-25, schema, ClientCapabilities and ServerCapabilities). false does
// not, nor does null, which some encoders write for an absent member. Any other
// value counts as declared: PHP, for one, encodes an empty object as [].
func Declares(capabilities json.RawMessage, names ...string) bool {
	value, ok := rawjson.Member(capabilities, names...)
	return ok && IsDeclared(value)
}

// IsDeclared reports whether this value of a member of a capabilities object
// declares it; see [Declares].
func IsDeclared(value json.RawMessage) bool {
	return string(value) != "null" && string(value) != "false"
}

// Required returns the capabilities that a client must declare to be sent a server's request
// for input, as in requiredCapabilities (MCP 2026-07-28, basic, errors); nil if no client is.
func Required(method string, params json.RawMessage) (capabilities json.RawMessage) {
	for _, name := range slices.Backward(required(method, params)) {
		capabilities = json.RawMessage(`{"` + name + `":` + cmp.Or(string(capabilities), "{}") + `}`)
	}
	return capabilities
}

// required returns the names that lead to the capability that Required is about; nil if no
// client answers the request.
func required(method string, params json.RawMessage) []string {
	_, withTools := rawjson.Member(params, "tools")
	mode, _ := rawjson.MemberText(params, "mode")
	switch {
	case method == MethodListRoots:
		return []string{"roots"}
	case method == MethodSample && withTools:
		return []string{"sampling", "tools"}
	case method == MethodSample:
		return []string{"sampling"}
	case method == MethodElicit && mode == "url": // an address to visit
		return []string{"elicitation", "url"}
	case method == MethodElicit:
		return []string{"elicitation"}
	}
	return nil
}

// Answers reports whether a client with these capabilities answers a server's request for
// input (MCP 2025-11-25 and 2026-07-28, client features). No client answers other
// requests.
func Answers(capabilities json.RawMessage, method string, params json.RawMessage) bool {
	names := required(method, params)
	if method == MethodElicit && len(names) == 1 && Declares(capabilities, "elicitation", "url") {
		names = []string{"elicitation", "form"} // {} means forms, as in versions without modes
	}
	return names != nil && Declares(capabilities, names...)
}

// Hints are what a tool says of itself (MCP 2025-11-25, schema, ToolAnnotations). A hint that a tool leaves out, or
// that is no truth value, is not given.
type Hints struct {
	ReadOnly       bool // readOnlyHint is true
	Idempotent     bool // idempotentHint is true
	NonDestructive bool // destructiveHint is false
}

// HintsOf returns the hints of a tool of a list.
func HintsOf(tool json.RawMessage) Hints {
	annotations, _ := rawjson.Member(tool, "annotations")
	says := func(hint, value string) bool {
		given, _ := rawjson.Member(annotations, hint)
		return string(given) == value
	}
	return Hints{
		ReadOnly: says("readOnlyHint", "true"), Idempotent: says("idempotentHint", "true"),
		NonDestructive: says("destructiveHint", "false"),
	}
}
