package gateway_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// listing answers tools/list with the tools, in two pages.
func listing(tools []string) *server {
	return &server{handle: func(s *serverSession, m *jsonrpc.Message) bool {
		page, next := tools[:len(tools)/2], `,"nextCursor":"2"`
		if m.Param("cursor").Value != nil {
			page, next = tools[len(tools)/2:], ""
		}
		if m.Method == "tools/list" {
			s.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"tools":[` + strings.Join(page, ",") + `]` + next + `}}`)
		}
		return m.Method == "tools/list"
	}}
}

// tool returns n tools with a name of so many characters, and a description.
func tool(n, name, description int) (tools []string) {
	for range n {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"description":%q}`, strings.Repeat("n", name), strings.Repeat("é", description)))
	}
	return tools
}

// A list of tools of which clients drop some is a warning, once; /connections and metrics
// have its size in any case.
func TestToolsThatClientsDrop(t *testing.T) {
	for name, tc := range map[string]struct {
		tools  []string
		server string // Options.Name; else the server calls itself "played"
		size   string
		warns  string // the limits that the warning names
	}{
		"few":                      {tool(40, 53, 200), "", `{"tools":40,"descriptionCharacters":8000,"longestName":53}`, ""},
		"many":                     {tool(41, 1, 0), "", `{"tools":41,"descriptionCharacters":0,"longestName":1}`, "Trae: 40 tools over all servers"},
		"described at length":      {tool(2, 1, 4001), "", `{"tools":2,"descriptionCharacters":8002,"longestName":1}`, "Trae: 8000 characters of descriptions over all servers"},
		"with long names":          {tool(2, 54, 1), "", `{"tools":2,"descriptionCharacters":2,"longestName":54}`, `Cursor: names of 60 characters with \"played_\" in front; Trae: names of 60 `},
		"of which few are offered": {append(tool(41, 1, 0), `{"name":"offered"}`), "", `{"tools":1,"descriptionCharacters":0,"longestName":7}`, ""},
		"of a short server":        {tool(2, 58, 1), "a", `{"tools":2,"descriptionCharacters":2,"longestName":58}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			opts := gateway.Options{Name: tc.server, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			if strings.Contains(name, "offered") {
				opts.Select = &compose.Selection{Include: []string{"offered"}}
			}
			inFakeTime(t, listing(tc.tools), opts, func(t *testing.T, g *gateway.Gateway) {
				for n := range 2 {
					p := connect(t, g, plain)
					p.deliver(request("1", "tools/list"))
					if _, body := ask(g.Admin(), "/connections"); n == 0 && strings.Contains(body, `"tools"`) {
						t.Errorf("half of the list is in %s", body)
					}
					p.deliver(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"2"}}`)
				}
				asks(t, g.Admin(), "/connections", 200, `"tools":`+tc.size)
				var tools, characters, longest float64
				if _, err := fmt.Sscanf(tc.size, `{"tools":%g,"descriptionCharacters":%g,"longestName":%g}`, &tools, &characters, &longest); err != nil {
					t.Fatal(err)
				}
				if metric(t, g, "mcp_sse_tools") != tools || metric(t, g, "mcp_sse_tool_description_characters") != characters || metric(t, g, "mcp_sse_tool_name_characters") != longest {
					t.Errorf("the metrics are not %s", tc.size)
				}
			})
			if n := strings.Count(log.String(), `level=WARN msg="some clients will drop tools of the server"`); n != 1 && tc.warns != "" || n != 0 && tc.warns == "" {
				t.Errorf("%d warnings, want one of %q", n, tc.warns)
			}
			if !strings.Contains(log.String(), tc.warns) {
				t.Errorf("no client and its limit in\n%s", log.String())
			}
		})
	}
}
