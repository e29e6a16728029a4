package multiplex_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/scaletest"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// scaled is a session with two clients, and a server that says what a test says.
type scaled struct {
	*testing.T
	conn    *pushConn
	session *multiplex.Session
	callers []*multiplex.Caller
}

func newScaled(t *testing.T, opts multiplex.Options) *scaled {
	s := &scaled{T: t, conn: &pushConn{}}
	s.session = multiplex.New(s.conn, opts)
	for _, name := range []string{"ann", "ben"} {
		s.callers = append(s.callers, s.session.Attach(&countingClient{}, name, name))
	}
	return s
}

// end ends the session with its requests and their timers. A pushConn reports no end
// by itself.
func (s *scaled) end() {
	err := errors.New("the test is over")
	s.session.Close(err)
	s.conn.receive(nil, err)
	<-s.session.Done()
}

func (s *scaled) says(format string, args ...any) {
	s.conn.receive(fmt.Appendf(nil, format, args...), nil)
}

// ask has a client send n requests of a method, with params in which %d is the id.
func (s *scaled) ask(n int, method, params string) {
	for id := range n {
		filled := strings.ReplaceAll(params, "%d", fmt.Sprint(id))
		_ = s.callers[0].Forward(parse(s, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, filled))) // some are refused
	}
}

func (s *scaled) cancel(n int) {
	for id := range n {
		_ = s.callers[0].Forward(parse(s, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))) // the same
	}
}

// However many messages clients and a server send, and however long ones, the time
// for each does not grow with those before.
func TestSessionsTakeTimeInProportion(t *testing.T) {
	for name, act := range map[string]func(s *scaled, n int){
		"requests and answers": func(s *scaled, n int) {
			s.ask(n, "tools/call", `{"name":"echo","_meta":{"progressToken":%d}}`)
			for id := 1; id <= n; id++ {
				s.says(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}`, id)
				s.says(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id)
			}
		},
		"answers in reverse": func(s *scaled, n int) {
			s.ask(n, "tools/call", `{"name":"echo"}`)
			for id := n; id > 0; id-- {
				s.says(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id)
			}
		},
		// Each of them looks at all requests of its client, of which connstate bounds the number.
		"some cancellations":    func(s *scaled, n int) { s.ask(n, "tools/call", `{"name":"echo"}`); s.cancel(10) },
		"cancellations of none": func(s *scaled, n int) { s.cancel(n) },
		"requests without ids of the server's": func(s *scaled, n int) {
			for id := range n {
				s.says(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id)
				s.says(`{"jsonrpc":"2.0","id":"s%d","method":"roots/list"}`, id)
			}
		},
		"strange answers": func(s *scaled, n int) {
			s.ask(10, "tools/call", `{"name":"echo"}`)
			for id := range n {
				s.says(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id+1000)
				s.says(`{"jsonrpc":"2.0","id":null,"result":{}}`)
			}
		},
		"subscriptions": func(s *scaled, n int) {
			s.ask(n, "resources/subscribe", `{"uri":"test://%d"}`)
			for id := 1; id <= n; id++ {
				s.says(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id)
				s.says(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://%d"}}`, id)
			}
		},
		"levels": func(s *scaled, n int) { s.ask(n, "logging/setLevel", `{"level":"info"}`) },
		"tools": func(s *scaled, n int) {
			s.ask(1, "tools/list", "{}")
			s.says(`{"jsonrpc":"2.0","id":1,"result":{"tools":[%s{}]}}`, strings.Repeat(`{"name":"echo","annotations":{"readOnlyHint":true}},`, n))
		},
		"long params": func(s *scaled, n int) {
			s.ask(1, "tools/call", `{"name":"echo"`+strings.Repeat(`,"_meta":{"progressToken":1}`, n)+`}`)
			s.says(`{"jsonrpc":"2.0","id":1,"result":{"a":1%s}}`, strings.Repeat(`,"_meta":{}`, n))
		},
		"a long notification": func(s *scaled, n int) {
			s.says(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"%s}}`, strings.Repeat(`,"_meta":{}`, n))
			s.says(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test:%s"}}`, strings.Repeat("/", n))
			s.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"%s"}}`, strings.Repeat("x", n))
		},
		"the end with requests in flight": func(s *scaled, n int) {
			s.ask(n, "tools/call", `{"name":"echo"}`)
			s.callers[0].Detach()
		},
	} {
		for mode, opts := range map[string]multiplex.Options{
			"dedicated": {}, "shared": {Shared: true},
			"one in flight": {MaxInFlight: 1, MaxWaiting: 1 << 30}, "shared, one in flight": {Shared: true, MaxInFlight: 1, MaxWaiting: 1 << 30},
		} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				scaletest.Linear(t, 100, func(n int) func() {
					return func() {
						s := newScaled(t, opts)
						defer s.end()
						act(s, n)
					}
				})
			})
		}
	}
}
