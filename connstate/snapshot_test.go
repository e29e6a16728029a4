package connstate_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// The log and the counts name a client as check --for does, however it calls itself.
func TestProgram(t *testing.T) {
	for _, tc := range []struct{ name, userAgent, want string }{
		{"codex-mcp-client", "", "codex"},
		{"", "codex-mcp-client/0.171.0", "codex"},
		{"gemini-cli-mcp-client", "node", "gemini-cli"},
		{"my-client", "Java-http-client/17", "my-client"}, // its own name says more than that of its library
		{"", "Java-http-client/17", "java-sdk"},
		{"", "impatient/1.0 (x)", "impatient"},
		{"", "", "unknown"},
	} {
		s := connstate.Snapshot{}
		s.UserAgent = tc.userAgent
		if tc.name != "" {
			s.Client = &connstate.ClientInfo{Name: tc.name}
		}
		if got := s.Program(); got != tc.want {
			t.Errorf("%q, %q: got %q, want %q", tc.name, tc.userAgent, got, tc.want)
		}
	}
}
