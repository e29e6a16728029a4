package statelessserver_test

import (
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/statelessserver"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// piped is a server on a pipe, which answers each message by a function.
type piped struct {
	t      *testing.T
	answer func(s *piped, m *jsonrpc.Message)
	out    chan string
	closed chan struct{}
	once   sync.Once

	mu  sync.Mutex
	got []string
}

func (s *piped) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		s.t.Errorf("the server got %s: %v", msg, err)
		return err
	}
	if strings.Contains(string(msg), `"busy"`) {
		return jsonrpc.ErrBusy
	}
	s.mu.Lock()
	s.got = append(s.got, string(msg))
	s.mu.Unlock()
	s.answer(s, m)
	return nil
}

func (s *piped) Recv() ([]byte, error) {
	select {
	case msg, ok := <-s.out:
		if !ok {
			return nil, io.EOF
		}
		return []byte(msg), nil
	case <-s.closed:
		return nil, jsonrpc.ErrClosed
	}
}

func (s *piped) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// say sends a message in which $ID is the id of m.
func (s *piped) say(m *jsonrpc.Message, msg string) {
	s.out <- strings.ReplaceAll(msg, "$ID", string(m.ID))
}

// modern answers as a server of 2026-07-28 alone.
func modern(s *piped, m *jsonrpc.Message) {
	version, _ := rawjson.Member(m.Params(), "_meta", "io.modelcontextprotocol/protocolVersion")
	switch {
	case m.Kind != jsonrpc.Request:
	case string(version) != `"2026-07-28"`:
		s.say(m, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no such method"}}`)
	case m.Method == "server/discover":
		s.say(m, `{"jsonrpc":"2.0","id":$ID,"result":`+changing[:len(changing)-1]+`,"supportedVersions":["2026-07-28"]}}`)
	case m.Method == "subscriptions/listen":
		filter, _ := rawjson.Member(m.Params(), "notifications")
		s.say(m, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":`+string(filter)+`,"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}}`)
		s.say(m, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}}`)
	case m.Method == "tools/call" && strings.Contains(string(m.Params()), "wait"):
	case m.Method == "tools/call" && strings.Contains(string(m.Params()), "drop"):
		s.say(m, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}`)
	case m.Method == "tools/call":
		s.say(m, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+string(m.Token.Value)+`,"progress":1}}`)
		s.say(m, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
		s.say(m, `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[]}}`)
	default:
		s.say(m, `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":[]}}`)
	}
}

func overPipe(t *testing.T, answer func(*piped, *jsonrpc.Message), test func(s *piped, p *statelessserver.Pipe)) {
	synctest.Test(t, func(t *testing.T) {
		s := &piped{t: t, answer: answer, out: make(chan string, 100), closed: make(chan struct{})}
		p := statelessserver.NewPipe(s, slog.New(slog.DiscardHandler))
		test(s, p)
		ssetest.Want(t, "Close", p.Close(), nil)
		if _, _, err := p.RecvFor(); err == nil {
			t.Error("a closed session has messages")
		}
	})
}

// wants compares the next messages.
func wants(t *testing.T, p *statelessserver.Pipe, want ...string) {
	t.Helper()
	for _, want := range want {
		got, about, err := p.RecvFor()
		if err != nil || string(got) != want && string(about)+" "+string(got) != want {
			t.Fatalf("got %q %s, %v, want %s", about, got, err, want)
		}
	}
}

const greeting = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

func TestModernServerOnAPipe(t *testing.T) {
	overPipe(t, modern, func(s *piped, p *statelessserver.Pipe) {
		_ = p.Send([]byte(greeting))
		got, _, err := p.RecvFor()
		if err != nil || !strings.Contains(string(got), `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"`) {
			t.Fatalf("got %s, %v", got, err)
		}
		_ = p.Send([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
		wants(t, p, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{}}}`)
		_ = p.Send([]byte(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}`))
		var of2, of0 []string
		for range 3 { // a message of no request comes before, between or behind those of one
			got, about, _ := p.RecvFor()
			if about == "2" {
				of2 = append(of2, string(got))
			} else {
				of0 = append(of0, string(got))
			}
		}
		ssetest.Want(t, "messages of 2", of2, []string{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}`, `{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`})
		ssetest.Want(t, "messages of none", of0, []string{`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`})
		_ = p.Send([]byte(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait"}}`))
		synctest.Wait()
		_ = p.Send([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`))
		synctest.Wait()
		ssetest.WantText(t, "the last message to the server", s.got[len(s.got)-1], `"method":"notifications/cancelled","params":{"requestId":"s-`)
	})
}

// A request for which a server has no room, or that it drops, gets an error, and the session
// goes on.
func TestModernServerOnAPipeIsBusy(t *testing.T) {
	overPipe(t, modern, func(_ *piped, p *statelessserver.Pipe) {
		_ = p.Send([]byte(greeting))
		_, _, _ = p.RecvFor()
		for name, want := range map[string]string{"busy": `"reason":"server_busy","retryable":true`, "drop": `"reason":"response_lost","retryable":false`} {
			_ = p.Send([]byte(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + name + `"}}`))
			if got, about, err := p.RecvFor(); about != "2" || !strings.Contains(string(got), want) {
				t.Fatalf("%s: got %s, %v", name, got, err)
			}
		}
		_ = p.Send([]byte(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`))
		wants(t, p, `{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}`)
	})
}

// The end of a process ends its session, with the reason.
func TestModernServerOnAPipeEnds(t *testing.T) {
	overPipe(t, modern, func(s *piped, p *statelessserver.Pipe) {
		_ = p.Send([]byte(greeting))
		_, _, _ = p.RecvFor()
		_ = p.Send([]byte(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait"}}`))
		synctest.Wait()
		close(s.out)
		ssetest.WantError(t, "Recv", upstreamtest.RecvError(p), io.EOF)
	})
}

// A server that refuses initialize for another reason is heard.
func TestLegacyServerOnAPipeRefuses(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"not you"}}`
	for name, discover := range map[string]string{"knows no discover": `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"m"}}`, "ignores discover": ""} {
		t.Run(name, func(t *testing.T) {
			overPipe(t, func(s *piped, m *jsonrpc.Message) {
				switch {
				case m.Kind != jsonrpc.Request:
				case m.Method == "initialize":
					s.say(m, refusal)
				case m.Method != "server/discover":
					s.say(m, `{"jsonrpc":"2.0","id":$ID,"result":{}}`)
				case discover != "":
					s.say(m, discover)
				}
			}, func(_ *piped, p *statelessserver.Pipe) {
				began := time.Now()
				_ = p.Send([]byte(greeting))
				wants(t, p, refusal)
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it took %s", took)
				}
				_ = p.Send([]byte(`{"jsonrpc":"2.0","id":2,"method":"ping"}`))
				wants(t, p, `{"jsonrpc":"2.0","id":2,"result":{}}`)
			})
		})
	}
}

// A program such as cat is not waited for: what it sends back is no answer.
func TestEchoOnAPipe(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no server"}}`
	overPipe(t, func(s *piped, m *jsonrpc.Message) {
		if m.Method == "server/discover" {
			s.say(m, string(m.Raw()))
		} else {
			s.say(m, refusal)
		}
	}, func(_ *piped, p *statelessserver.Pipe) {
		began := time.Now()
		_ = p.Send([]byte(greeting))
		wants(t, p, refusal)
		ssetest.Want(t, "the wait", time.Since(began), time.Duration(0))
	})
}

func TestServerOnAPipeThatTakesInitialize(t *testing.T) {
	overPipe(t, func(s *piped, m *jsonrpc.Message) { s.say(m, `{"jsonrpc":"2.0","id":$ID,"result":{}}`) }, func(s *piped, p *statelessserver.Pipe) {
		_ = p.Send([]byte(greeting))
		wants(t, p, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		if s.got[0] != greeting || len(s.got) != 1 {
			t.Errorf("the server got %q", s.got)
		}
	})
}
