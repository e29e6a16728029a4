package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestDeclares(t *testing.T) {
	capabilities := json.RawMessage(`{
		"object":{},"true":true,"false":false,"null":null,"list":[],"text":"",
		"outer":{"object":{"deep":true},"true":true,"false":false,"null":null}}`)
	const declared = "object true list text outer outer.object outer.object.deep outer.true"
	const not = " false null missing outer.false outer.null outer.missing true.below list.below"
	for want, paths := range map[bool]string{true: declared, false: not} {
		for path := range strings.SplitSeq(paths, " ") {
			ssetest.Want(t, path, mcp.Declares(capabilities, strings.Split(path, ".")...), want)
		}
	}
	for _, raw := range []string{"", "null", "true", "[]", `["tools"]`, `"tools"`, "{}"} {
		if mcp.Declares(json.RawMessage(raw), "tools") {
			t.Errorf("%s declares tools", raw)
		}
	}
}

func TestHasInitialize(t *testing.T) {
	ssetest.Want(t, "newest version", mcp.VersionNewest, "2025-11-25")
	for version, want := range map[string]bool{
		"2024-11-05": true, "2025-03-26": true, "2025-06-18": true, mcp.VersionNewest: true,
		mcp.VersionStateless: false, "2025-01-01": false, "": false,
	} {
		ssetest.Want(t, version, mcp.HasInitialize(version), want)
	}
}

func TestChangedList(t *testing.T) {
	for method, want := range map[string]string{
		mcp.MethodToolsChanged: "tools", mcp.MethodPromptsChanged: "prompts", mcp.MethodResourcesChanged: "resources",
		mcp.MethodRootsChanged: "roots",
	} {
		if got, ok := mcp.ChangedList(method); got != want || !ok {
			t.Errorf("ChangedList(%q): got %q, %t, want %q", method, got, ok, want)
		}
	}
	for _, method := range []string{mcp.MethodResourceUpdated, mcp.MethodPing, ""} {
		if _, ok := mcp.ChangedList(method); ok {
			t.Errorf("%q says that a list has changed", method)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		capabilities, method, params string
		want                         bool
	}{
		{`{}`, mcp.MethodElicit, `{}`, false},
		{`{"elicitation":{}}`, mcp.MethodElicit, `{}`, true},
		{`{"elicitation":{}}`, mcp.MethodElicit, `{"mode":"form"}`, true},
		{`{"elicitation":{}}`, mcp.MethodElicit, `{"mode":"url"}`, false},
		{`{"elicitation":{"url":{}}}`, mcp.MethodElicit, `{"mode":"\u0075rl"}`, true},
		{`{"elicitation":{"url":{}}}`, mcp.MethodElicit, ``, false},
		{`{"elicitation":{"url":{},"form":{}}}`, mcp.MethodElicit, `{}`, true},
		{`{"sampling":{}}`, mcp.MethodSample, `{"messages":[]}`, true},
		{`{"sampling":{}}`, mcp.MethodSample, `{"tools":[]}`, false},
		{`{"sampling":{"tools":{}}}`, mcp.MethodSample, `{"tools":[]}`, true},
		{`{"roots":{}}`, mcp.MethodListRoots, ``, true},
		{`{"sampling":{}}`, mcp.MethodListRoots, ``, false},
		{`{"ping":{}}`, mcp.MethodPing, ``, false},
	} {
		ssetest.Want(t, fmt.Sprintf("%+v", tc), mcp.Answers(json.RawMessage(tc.capabilities), tc.method, json.RawMessage(tc.params)), tc.want)
	}
}

func TestHintsOf(t *testing.T) {
	for tool, want := range map[string]mcp.Hints{
		`{}`:                                    {},
		`{"annotations":null}`:                  {},
		`{"annotations":{"readOnlyHint":true}}`: {ReadOnly: true},
		`{"annotations":{"readOnlyHint":"true","idempotentHint":1,"destructiveHint":null}}`:         {},
		`{"annotations":{"readOnlyHint":false,"idempotentHint":true,"destructiveHint":false}}`:      {Idempotent: true, NonDestructive: true},
		`{"readOnlyHint":true,"annotations":{"destructiveHint":true},"idempotentHint":true,"x":{}}`: {},
	} {
		if got := mcp.HintsOf(json.RawMessage(tool)); got != want {
			t.Errorf("%s: got %+v, want %+v", tool, got, want)
		}
	}
}
