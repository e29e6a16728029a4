package main

import (
	"fmt"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/signin"
	"github.com/mcp-sse/mcp-sse/internal/login"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// One server that may need a login opens the browser for a client that comes, and several do at calls alone: each would
// open a tab.
func TestWhoOpensTheBrowserAtCallsAlone(t *testing.T) {
	const one, two = `one: {url: "https://one.example.com/mcp"}`, `two: {url: "https://two.example.com/mcp"}`
	for servers, want := range map[string]string{
		one: "map[https://one.example.com/mcp:false]",
		one + ", own: {command: [x]}, keyed: {url: \"https://three.example.com/mcp\", headers: {Authorization: y}}": "map[https://one.example.com/mcp:false]",
		one + ", " + two: "map[https://one.example.com/mcp:true https://two.example.com/mcp:true]",
	} {
		file := clitest.WriteFile(t, "gw.yaml", "servers: {"+servers+"}\n")
		all := map[string]*signin.Interactive{}
		askInBrowser(mustLoad(t, clitest.State(t), "stdio", "--config", file), func(own login.Credentials) *signin.Interactive {
			all[own.Server] = &signin.Interactive{Credentials: own}
			return all[own.Server]
		})
		asked := map[string]bool{}
		for server, person := range all {
			asked[server] = person.AtCalls.Load()
		}
		ssetest.Want(t, servers, fmt.Sprint(asked), want)
	}
}
