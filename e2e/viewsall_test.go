//go:build all

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// inViews are the servers of a view of all kinds: three of npm, one of each Go SDK, and remote ones with sessions, over
// HTTP+SSE and of 2026-07-28.
var inViews = []string{"Everything", "Filesystem", "Memory", "GoSDK", "MCPGo", "TypeScript1Streamable", "GoSDKSSE",
	"TypeScript2Stateless"}

// viewOfAllKinds starts a view of these servers. It returns its URL, and the servers as they are in the view.
func viewOfAllKinds(t *testing.T) (url string, servers []server) {
	t.Helper()
	entries, members := map[string]any{}, map[string]any{}
	for _, s := range slices.Concat(stdioServers(), urlServers()) {
		if !slices.Contains(inViews, s.name) {
			continue
		}
		name := strings.ToLower(s.name)
		entries[name], members[name] = entryOf(s.start(t)), map[string]any{}
		for _, of := range []*string{&s.tool, &s.walk, &s.prompt} {
			if *of != "" {
				*of = name + "__" + *of
			}
		}
		s.questions = slices.Clone(s.questions)
		for i := range s.questions {
			s.questions[i].tool = name + "__" + s.questions[i].tool
		}
		servers = append(servers, s)
	}
	ssetest.Want(t, "servers", len(servers), len(inViews))
	_, url = startView(t, entries, members)
	return url, servers
}

// Each client has the tools, progress, prompts and resources of each server of a view of all kinds, over both
// transports. Four clients are there at the same time, and count their ids and progress tokens alike: a client of which
// nothing is remembered starts all eight servers.
func TestEachClientOverAViewOfAllKinds(t *testing.T) {
	t.Parallel()
	url, servers := viewOfAllKinds(t)
	for some := range slices.Chunk(unlike(), 4) {
		var wg sync.WaitGroup
		for _, k := range some {
			wg.Go(func() {
				if err := awaitServers(t, k, url, servers); err != nil {
					t.Errorf("%s: %v", k.name, err)
					return
				}
				for _, s := range servers {
					(&visit{t: t, server: s, kind: k, url: url, owner: k.name}).run()
				}
			})
		}
		wg.Wait()
	}
}

// awaitServers has a client of a kind list until the view has the tools of all its servers: they boot slowly, and lists
// are remembered for clients with equal capabilities.
func awaitServers(t *testing.T, k kind, url string, servers []server) error {
	c := k.open(t, url, "")
	defer c.close()
	ctx := within(t)
	if !k.oneShot {
		if err := c.connect(ctx); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
	}
	var tools []string
	for _, s := range servers {
		tools = append(tools, s.tool)
	}
	return listUntil(ctx, c, tools...)
}

// listUntil has a client list until all these tools are there.
func listUntil(ctx context.Context, c client, tools ...string) error {
	for {
		listed, err := c.listTools(ctx)
		if err != nil {
			return fmt.Errorf("list tools until there are %q: %w", tools, err)
		}
		if !slices.ContainsFunc(tools, func(tool string) bool { return !slices.Contains(listed, tool) }) {
			return nil
		}
	}
}

// The question of each server of such a view reaches the client that has called it.
func TestServersOfAViewAskTheirClient(t *testing.T) {
	t.Parallel()
	url, servers := viewOfAllKinds(t)
	for _, s := range servers {
		for some := range slices.Chunk(unlike(), 4) {
			forEachAsked(t, waiting(some), url, s, func(who, tool, text string, err error) {
				if err != nil || !strings.Contains(text, who) {
					t.Errorf("%s: %s = %q, error %v, want %s in it", who, tool, text, err, who)
				}
			})
		}
	}
}

// waiting returns the same clients, which list until a tool is there before they call it: a server of a view may boot
// slowly.
func waiting(kinds []kind) []kind {
	kinds = slices.Clone(kinds)
	for i := range kinds {
		open := kinds[i].make
		kinds[i].make = func(t *testing.T, url string, over transport, name string) client {
			return waitingClient{open(t, url, over, name)}
		}
	}
	return kinds
}

type waitingClient struct{ client }

func (c waitingClient) callTool(ctx context.Context, name string, args map[string]any) (string, error) {
	if err := listUntil(ctx, c.client, name); err != nil {
		return "", err
	}
	return c.client.callTool(ctx, name, args)
}
