//go:build agents

package agents

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const runLimit = 3 * time.Minute

func TestConnects(t *testing.T) {
	for _, a := range agents {
		for _, over := range a.over {
			t.Run(a.name+"/"+string(over), func(t *testing.T) {
				command, journal := serverCommand(t)
				m := startModel(t, step{tool: "echo", arguments: `{"message":"hello"}`})
				s := target{over: over}
				if over == stdio {
					s.command = append([]string{sseServer(t), "stdio", "--"}, command...)
				} else {
					g := startGateway(t, command)
					s.url = g.url(map[transport]string{streamable: "/mcp", sse: "/sse"}[over])
				}
				printed := a.run(t, s, m, runLimit)
				result, _ := m.result(0)
				t.Log(result)
				if !strings.Contains(result, `hello`) {
					saw, err := os.ReadFile(journal)
					t.Errorf("result = %s\nprinted %s\nmodel %s\nserver %s %v", result, printed, m.journal(), saw, err)
				}
			})
		}
	}
	_ = ssetest.Must
}
