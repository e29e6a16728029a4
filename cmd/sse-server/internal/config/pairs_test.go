package config

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A header of clients has another name at the server; two cannot have one, and that with the tokens for this gateway is
// not passed on under any.
func TestRenamedHeaders(t *testing.T) {
	const remote = "url: https://mcp.example.com/mcp\n"
	c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", remote+"forward-header: {x-jira-token: authorization, X-Same: X-Same}\n"))
	s := c.Each()[0]
	ssetest.Want(t, "names", s.ForwardedHeaders(), []string{"x-jira-token", "X-Same"})
	ssetest.Want(t, "renamed", s.Remote().Rename, map[string]string{"X-Jira-Token": "Authorization"})
	c = mustLoad(t, nil, "--url", "https://mcp.example.com/mcp", "--forward-header", "X-A: X-B,X-C")
	ssetest.Want(t, "renamed by the flag", c.Each()[0].Remote().Rename, map[string]string{"X-A": "X-B"})
	tokens := clitest.WriteFile(t, "tokens", "alice:0123456789abcdef\n")
	for options, want := range map[string]string{
		"forward-header: {X-A: X-C, X-B: x-c}\n":                                                                 "two headers would be sent as X-C",
		"forward-header: {X-A: Host}\n":                                                                          "the transport sets Host itself",
		"forward-header: {Authorization: X-B}\nauth-tokens-file: " + tokens + "\n":                               "Authorization: the remote server would get the tokens",
		"forward-header: {X-A: Authorization}\noauth-client: {token-url: \"https://i.example\", client-id: c}\n": "contradicts",
	} {
		_, err := Load([]string{"-c", clitest.WriteFile(t, "gw.yaml", remote+options)}, clitest.Environment(nil), new(Config))
		ssetest.WantText(t, options, err, want)
	}
}

// The value of a pair may be what a program prints, in our own files alone.
func TestSecretsOfPrograms(t *testing.T) {
	const remote = "url: https://mcp.example.com/mcp\n"
	c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", remote+"header: {X-Key: {exec: [/bin/echo, \"a ${HOME} b\"]}, X-Other: c}\n"))
	ssetest.Want(t, "header", c.Each()[0].Remote().Header.Get("X-Key"), "a ${HOME} b")
	for file, want := range map[string]string{
		remote + "header: {X-Key: {exec: [/no/such/program]}}\n": "header: exec: /no/such/program cannot be run",
		remote + "header: {X-Key: {exec: []}}\n":                 "want a program and its arguments",
		remote + "header: {X-Key: {other: [/bin/echo, x]}}\n":    "is not supported here",
		remote + "description: {exec: [/bin/echo, x]}\n":         "is not supported here",
	} {
		_, err := Load([]string{"-c", clitest.WriteFile(t, "gw.yaml", file)}, clitest.Environment(nil), new(Config))
		ssetest.WantText(t, file, err, want)
	}
	ofClient := clitest.WriteFile(t, "mcp.json", `{"mcpServers":{"a":{"command":"x","env":{"K":{"exec":["/bin/echo","x"]}}}}}`)
	_, err := Load([]string{"-c", ofClient}, clitest.Environment(nil), new(Config))
	if err == nil {
		t.Error("the file of a client has started a program")
	}
}
