package remote_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// answered is what a call gets from a server in good order.
const answered = `{"jsonrpc":"2.0","id":2,"result":{}}`

// How servers answer a call, and what the client gets: the next report is one more case. The
// session goes on after each.
func TestMannersOfAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   []string // parts of what the client gets
	}{
		"a 500 of a proxy": {status(500, "<html>"), []string{`"reason":"request_refused"`, `"status":500`}},
		"a 502":            {status(502, ""), []string{`"reason":"request_refused"`, `"status":502`}},
		"a 503":            {status(503, ""), []string{`"reason":"rate_limited","retryable":true`, `"status":503`}},
		"a 504":            {status(504, ""), []string{`"status":504`}},
		"Cloudflare's 524": {status(524, ""), []string{`"status":524`}},

		"no blank line at the end":        {stream("data: " + answered + "\n"), []string{answered}},
		"no end of the last line":         {stream("data: " + answered), []string{answered}},
		"a break after a whole answer":    {broken("data: " + answered + "\n"), []string{answered}},
		"a break in an answer":            {broken(`data: {"jsonrpc":"2.0","id":2,"result":{}`), []string{"response_lost"}},
		"event: result":                   {stream("event: result\ndata: " + answered + "\n\n"), []string{answered}},
		"event: mcp-response":             {stream("event: mcp-response\ndata: " + answered + "\n\n"), []string{answered}},
		"event: ping, with data":          {stream("event: ping\ndata: {}\n\ndata: " + answered + "\n\n"), []string{answered}},
		"a stream that ends in a message": {stream(`data: {"jsonrpc":"2.0","id":2,"resu`), []string{"response_lost"}},

		"br":              {encoded("br", []byte("\x0b\x02\x80{}\x03")), []string{"invalid_response", `\"br\"`}},
		"zstd":            {encoded("zstd", []byte("(\xb5/\xfd")), []string{"invalid_response", `\"zstd\"`}},
		"identity":        {encoded("identity", []byte(answered)), []string{answered}},
		"utf-8":           {encoded("utf-8", []byte(answered)), []string{answered}}, // a charset
		"identity, twice": {encoded("identity, identity", []byte(answered)), []string{answered}},
		"none":            {encoded("none", []byte(answered)), []string{answered}},
		"br of a refusal": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "br")
			status(400, "\x0b\x02\x80hello\x03")(w)
		}, []string{"400 Bad Request", `\"br\"`}},
		"gzip, two layers":            {encoded("gzip, br", []byte("x")), []string{"invalid_response", "br"}},
		"a whole gzip without answer": {gzipStream(""), []string{"response_lost", "the response ended without it"}},
		"gzip stream, cut short":      {encodedStream("gzip", zipped("data: " + answered + "\n\n")[:20]), []string{"response_lost", "gzip body is cut short"}},
		"br stream":                   {encodedStream("br", []byte("x")), []string{"invalid_response", `\"br\"`}},
		"gzip":                        {encoded("gzip", zipped(answered)), []string{answered}},
		"gzip, cut short":             {encoded("gzip", zipped(answered)[:20]), []string{"response_lost", "gzip body is cut short"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := upstreamtest.Open(t, upstreamtest.Streamable(upstreamtest.Serve(t, upstreamtest.Calls(
				func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { test.answer(w) }))))
			k.Send(upstreamtest.Call2)
			msg, _ := k.Recv()
			ssetest.WantText(t, "answer", msg, test.want...)
			k.Ping(3)
		})
	}
}

func status(code int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

func stream(text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(text))
	}
}

// broken is a stream whose connection breaks after the text.
func broken(text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		stream(text)(w)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func encoded(encoding string, body []byte) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", encoding)
		_, _ = w.Write(body)
	}
}

func gzipStream(text string) func(http.ResponseWriter) { return encodedStream("gzip", zipped(text)) }

func encodedStream(encoding string, body []byte) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Encoding", encoding)
		stream(string(body))(w)
	}
}

func zipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

// An event stream in an encoding that nobody asked for is named, too: that of HTTP+SSE in the
// error, that of a server which can do without in the log.
func TestEncodedEventStreams(t *testing.T) {
	for _, transport := range []string{"", remote.TransportSSE} {
		s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
			if r.Method == http.MethodGet {
				encodedStream("br", []byte("\x0b\x02\x80{}\x03"))(w)
				return
			}
			w.WriteHeader(http.StatusMethodNotAllowed)
		})
		said, log := dialed(t, remote.URL{Address: s.URL + "/sse", Transport: transport})
		ssetest.WantText(t, "what is said", said, "the event stream is encoded as", "br")
		if transport == "" {
			ssetest.WantText(t, "log", log, "the event stream is encoded as")
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var log ssetest.Output
		up := upstreamtest.Streamable(upstreamtest.ServeHere(upstreamtest.Session(func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
			if m == nil {
				encodedStream("zstd", []byte("x"))(w)
				return
			}
			upstreamtest.Result(w, m)
		})))
		up.Logger = ssetest.Logger(&log)
		k := upstreamtest.Open(t, up)
		k.Ping(2)
		synctest.Wait()
		ssetest.WantText(t, "log", log.String(), "event stream not read", "zstd")
		_ = k.Conn.Close()
	})
}

// dialed opens a session that fails, and returns what the client is told, and the log.
func dialed(t *testing.T, u remote.URL) (said, logged string) {
	t.Helper()
	var log ssetest.Output
	conn, err := u.Observed(ssetest.Logger(&log), nil).Dial(t.Context())
	if err != nil {
		return err.Error(), log.String()
	}
	defer conn.Close()
	upstreamtest.Send(t, conn, upstreamtest.Initialize)
	return upstreamtest.Recv(t, conn), log.String()
}

// A proxy's 502 for one call harms no other: that one goes on, in the same session.
func TestOneFailedCallHarmsNoOther(t *testing.T) {
	began, failed := make(chan struct{}), make(chan struct{})
	k := upstreamtest.Open(t, upstreamtest.Streamable(upstreamtest.Serve(t, upstreamtest.Calls(
		func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
			if m.ID == "2" {
				close(began)
				<-failed
				upstreamtest.Result(w, m)
				return
			}
			w.WriteHeader(http.StatusBadGateway)
		}))))
	k.Send(upstreamtest.Call2)
	<-began
	k.Send(strings.Replace(upstreamtest.Call2, `"id":2`, `"id":3`, 1))
	msg, _ := k.Recv()
	ssetest.WantText(t, "the failed call", msg, `"id":3`, `"status":502`)
	close(failed)
	k.GetsOf("2", answered)
}

// A ping that breaks has failed, like one that a proxy refuses: the session ends. A ping that the
// server has not answered in its time says nothing: the server is slow.
func TestPingsAfterAFailedCall(t *testing.T) {
	for name, test := range map[string]struct {
		ping func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message)
		ends bool
	}{
		"breaks":   {func(http.ResponseWriter, *http.Request, *jsonrpc.Message) { panic(http.ErrAbortHandler) }, true},
		"refused":  {func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { w.WriteHeader(http.StatusBadGateway) }, true},
		"slow":     {func(_ http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) { <-r.Context().Done() }, false},
		"answered": {func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) { upstreamtest.Result(w, m) }, false},
		"unknown": {func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
			refusing(`{"code":-32601,"message":"m"}`)(w)
		}, false},
	} {
		upstreamtest.TestInBubble(t, name, func(t *testing.T) {
			k := upstreamtest.Open(t, upstreamtest.Streamable(upstreamtest.ServeHere(upstreamtest.Session(
				func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
					switch {
					case m != nil && m.Method == "ping":
						test.ping(w, r, m)
					default:
						w.WriteHeader(http.StatusBadGateway)
					}
				}))))
			k.Send(upstreamtest.Call2)
			if a := k.Next(); a.Err != nil != test.ends || !test.ends && !strings.Contains(string(a.Msg), `"status":502`) {
				t.Errorf("got %s, %v", a.Msg, a.Err)
			}
			_ = k.Conn.Close()
		})
	}
}

// Nor does it harm another client of a shared session.
func TestOneFailedCallHarmsNoOtherClient(t *testing.T) {
	began, failed := make(chan struct{}), make(chan struct{})
	s := upstreamtest.Serve(t, upstreamtest.Calls(func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
		if name, _ := m.Param("name").Text(); name == "slow" {
			close(began)
			<-failed
			upstreamtest.Result(w, m)
			return
		}
		w.WriteHeader(http.StatusGatewayTimeout)
	}))
	post := gatewayOf(t, s)
	slow, _ := post("", upstreamtest.Initialize)
	quick, _ := post("", upstreamtest.Initialize)
	answer := make(chan string, 1)
	go func() { // ends with the call
		_, text := post(slow, strings.Replace(upstreamtest.Call2, `"t"`, `"slow"`, 1))
		answer <- text
	}()
	<-began
	_, text := post(quick, upstreamtest.Call2)
	ssetest.WantText(t, "the failed call", text, `"status":504`)
	close(failed)
	ssetest.WantText(t, "the call of the other client", <-answer, answered)
	ssetest.Want(t, "sessions", len(s.Find(upstreamtest.Posted(`"initialize"`))), 1)
}

// gatewayOf returns a function that posts to a gateway in front of a server, all of whose clients share
// a session.
func gatewayOf(t *testing.T, s *upstreamtest.Scripted) (post func(session, msg string) (id, answer string)) {
	g, err := gateway.New(upstreamtest.Streamable(s), gateway.Options{Sessions: gateway.SessionsShared})
	ssetest.Must(t, err)
	front := httptest.NewServer(g)
	t.Cleanup(func() {
		now, end := context.WithCancel(context.Background())
		end()
		_ = g.Shutdown(now)
		front.Close()
	})
	return func(session, msg string) (id, answer string) {
		req, _ := http.NewRequest(http.MethodPost, front.URL+"/mcp", strings.NewReader(msg))
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {session}}
		resp, err := front.Client().Do(req)
		ssetest.Must(t, err)
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.Header.Get("Mcp-Session-Id"), string(text)
	}
}

// How servers say that they have forgotten a session, to a call, and to the GET that opens their
// own stream again, which shows it before any call.
func TestMannersOfForgetting(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"404":                    status(404, ""),
		"410":                    status(410, ""),
		"the TypeScript SDK":     status(400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`),
		"its example":            status(400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`),
		"401 about the session":  status(401, "Invalid or expired session"),
		"503 about the session":  status(503, "session is on another node"),
		"400 about the sessions": status(400, "Invalid or missing session ID"),
		"400 with other JSON":    status(400, `{"detail":"Session not found"}`),
		"401 with other JSON":    status(401, `{"error":"Invalid or expired session"}`),
		"400 with another code":  status(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Session not found"}}`),
		"401 with the own id":    status(401, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Invalid or expired session"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			calls := upstreamtest.Calls(func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { answer(w) })
			k := upstreamtest.Open(t, upstreamtest.Streamable(upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if m != nil && m.Method == "ping" { // words that may be a tool's are asked about
					answer(w)
					return
				}
				calls(w, r, m)
			})))
			k.Send(upstreamtest.Call2)
			err := k.Ended()
			ssetest.WantText(t, "a call", err, "forgotten the session")
			of, ok := errors.AsType[*jsonrpc.NotTakenError](err)
			if mayHaveRun := strings.HasPrefix(name, "503") || strings.Contains(name, "own id"); ok == mayHaveRun || ok && of.ID != "2" {
				t.Errorf("the end is %#v, want one that names the call only if it cannot have run", err)
			}
		})
		upstreamtest.TestInBubble(t, name+", to the GET", func(t *testing.T) {
			var gets atomic.Int32
			k := upstreamtest.Open(t, upstreamtest.Streamable(upstreamtest.ServeHere(upstreamtest.Session(
				func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
					if gets.Add(1) > 1 {
						answer(w)
						return
					}
					stream(": open\n\n")(w)
				}))))
			ssetest.WantText(t, "the GET", k.Ended(), "forgotten the session")
			_ = k.Conn.Close()
		})
	}
}

// A tool that has run may speak of sessions, in the words of a server that has forgotten one. Such a call
// is never made twice.
func TestCallThatSpeaksOfSessionsIsMadeOnce(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"own id, -32000":   status(400, `{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"payment done, but the browser session crashed"}}`),
		"own id, -32001":   status(400, `{"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"Session not found"}}`),
		"own id, -32600":   status(400, `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"the login session is over"}}`),
		"own id, 404":      status(404, `{"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"order placed, but its page is not found"}}`),
		"503 with JSON":    status(503, `{"error":"login session pool exhausted while posting the order"}`),
		"503, session id":  status(503, `Session not found`),
		"400 with JSON":    status(400, `{"error":"order placed, but could not save the shopping session"}`),
		"400 with a text":  status(400, "mail sent; invalid session of the archive"),
		"401, another one": status(401, `{"error":"order placed, session expired"}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := upstreamtest.Serve(t, upstreamtest.Calls(func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
				answer(w)
			}))
			post := gatewayOf(t, s)
			session, _ := post("", upstreamtest.Initialize)
			_, text := post(session, upstreamtest.Call2)
			if !strings.Contains(text, `"error"`) || strings.Contains(text, `"retryable":true`) {
				t.Errorf("the call got %s", text)
			}
			// It may be the client's own words: nobody else's session ends for them.
			ssetest.Want(t, "sessions", len(s.Find(upstreamtest.Posted(`"initialize"`))), 1)
			ssetest.Want(t, "calls", len(s.Find(upstreamtest.Posted(`"tools/call"`))), 1)
		})
	}
}

// The call that shows that the session is forgotten is made again in the next one, whatever it does: the
// server has not read it. It is made once again at most, and others in flight are not: nobody knows
// whether those have run.
func TestForgottenCallIsMadeAgainOnce(t *testing.T) {
	for name, test := range map[string]struct {
		answer  func(http.ResponseWriter)
		forgets int // that many sessions
		want    []string
	}{
		"404":                {status(404, ""), 1, []string{answered}},
		"400 with JSON":      {status(400, `{"error":"Invalid or missing session ID"}`), 1, []string{answered}},
		"404, always":        {status(404, ""), 99, []string{`"session_lost"`, `"retryable":true`}},
		"401 about the user": {status(401, `{"error":"invalid_token"}`), 99, []string{`"unauthorized"`}},
	} {
		t.Run(name, func(t *testing.T) {
			var sessions atomic.Int32
			began := make(chan struct{})
			s := upstreamtest.Serve(t, upstreamtest.Calls(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				tool, _ := m.Param("name").Text()
				switch {
				case tool == "slow":
					close(began)
					<-r.Context().Done()
				case int(sessions.Add(1)) <= test.forgets:
					test.answer(w)
				default:
					upstreamtest.Result(w, m)
				}
			}))
			post := gatewayOf(t, s)
			session, _ := post("", upstreamtest.Initialize)
			slow := make(chan string, 1)
			go func() { // ends with the session
				_, text := post(session, strings.NewReplacer(`"id":2`, `"id":3`, `"t"`, `"slow"`).Replace(upstreamtest.Call2))
				slow <- text
			}()
			<-began
			_, text := post(session, upstreamtest.Call2)
			ssetest.WantText(t, "the call", text, test.want...)
			calls := 2
			if strings.HasPrefix(name, "401") {
				calls = 1
			} else {
				ssetest.WantText(t, "the other call", <-slow, `"session_lost"`, `"retryable":false`)
			}
			ssetest.Want(t, "calls", len(s.Find(upstreamtest.Posted(`"t"`))), calls)
			ssetest.Want(t, "slow calls", len(s.Find(upstreamtest.Posted(`"slow"`))), 1)
		})
	}
}

// A 410 to a GET that resumes a stream is about its event: the session goes on.
func TestGoneEventIsNoForgottenSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := upstreamtest.Open(t, upstreamtest.Streamable(upstreamtest.ServeHere(upstreamtest.Session(
			func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch {
				case m != nil:
					upstreamtest.Result(w, m)
				case r.Header.Get("Last-Event-Id") != "":
					w.WriteHeader(http.StatusGone)
				default:
					stream("id: 7\ndata:\n\n")(w)
				}
			}))))
		time.Sleep(time.Minute)
		k.Ping(2)
		_ = k.Conn.Close()
	})
}

// How servers that know older revisions alone refuse an initialize, and the versions that they
// are asked for: the same over a transport that is found out.
func TestMannersOfOlderServers(t *testing.T) {
	one, all := []string{"2025-11-25", "2025-03-26"}, []string{"2025-11-25", "2025-06-18", "2025-03-26"}
	for name, test := range map[string]struct {
		refuse func(w http.ResponseWriter)
		want   []string
	}{
		"400 with a list":            {status(400, "Unsupported protocol version. Supported: 2025-03-26, 2024-11-05"), one},
		"400 with another JSON":      {status(400, `{"error":"Unsupported protocol version"}`), all},
		"400 without a word":         {status(400, ""), all},
		"400 of the TypeScript SDK":  {status(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Unsupported protocol version (supported versions: 2025-03-26, 2024-11-05)"}}`), one},
		"400, -32000 without a list": {status(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Unsupported protocol version"}}`), all},
		"400, -32600":                {status(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid protocol version"}}`), all},
		"-32602 with a list":         {refusing(`{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2024-11-05","2025-03-26"]}}`), one},
		"-32602":                     {refusing(`{"code":-32602,"message":"Invalid params"}`), all},
		"-32000 with a text":         {refusing(`{"code":-32000,"message":"Unsupported protocol VERSION"}`), all},
		"-32602 with a session's id": {func(w http.ResponseWriter) {
			w.Header().Set("Mcp-Session-Id", "refused")
			refusing(`{"code":-32602,"message":"m"}`)(w)
		}, all},
	} {
		for _, transport := range []string{"", remote.TransportStreamable} {
			t.Run(name+" "+transport, func(t *testing.T) {
				s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
					if m != nil && m.Method == "initialize" {
						if id := r.Header.Get("Mcp-Session-Id"); id != "" {
							t.Errorf("initialize came in the session %q", id)
						}
						if version, _ := m.Param("protocolVersion").Text(); version > "2025-03-26" {
							test.refuse(w)
							return
						}
					}
					legacyServer(w, r, m)
				})
				conn := upstreamtest.Dial(t, remote.URL{Address: s.URL + "/mcp", Transport: transport})
				m, _ := jsonrpc.Parse([]byte(upstreamtest.Initialize))
				_, err := handshake.Run(t.Context(), &dialogue{conn: conn}, m.Params())
				ssetest.Must(t, err)
				var asked []string
				for _, v := range s.Find(upstreamtest.Posted(`"initialize"`)) {
					m, _ := jsonrpc.Parse([]byte(v.Body))
					version, _ := m.Param("protocolVersion").Text()
					asked = append(asked, version)
				}
				ssetest.Want(t, "asked for", asked, test.want)
			})
		}
	}
}

// dialogue is a session in which one request is out at a time.
type dialogue struct {
	conn jsonrpc.Conn
	n    int
}

func (d *dialogue) Call(_ context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	d.n++
	if err := d.conn.Send(jsonrpc.NewRequest(jsonrpc.ID(fmt.Sprint(d.n)), method, params)); err != nil {
		return nil, err
	}
	msg, err := d.conn.Recv()
	if err != nil {
		return nil, err
	}
	return jsonrpc.Parse(msg)
}

func (d *dialogue) Notify(method string, params json.RawMessage) error {
	return d.conn.Send(jsonrpc.NewNotification(method, params))
}

// refusing answers with a JSON-RPC error that names no request.
func refusing(fault string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		upstreamtest.AnswerJSON(w, `{"jsonrpc":"2.0","id":null,"error":`+fault+`}`)
	}
}

// The cookies of a load balancer are sent back within the session, and in no other.
func TestCookiesAreOfOneSession(t *testing.T) {
	var sessions atomic.Int32
	s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m != nil && m.Method == "initialize" {
			if _, err := r.Cookie("AWSALB"); err == nil {
				t.Error("initialize has the cookie of another session")
			}
			http.SetCookie(w, &http.Cookie{Name: "AWSALB", Value: fmt.Sprint("node-", sessions.Add(1)), Path: "/"})
		} else if cookie, err := r.Cookie("AWSALB"); m != nil && m.Method == "tools/call" && (err != nil || cookie.Value != fmt.Sprint("node-", sessions.Load())) {
			t.Errorf("%s: the cookie is %v, %v", r.Method, cookie, err)
		}
		upstreamtest.Calls(func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) { upstreamtest.Result(w, m) })(w, r, m)
	})
	up := upstreamtest.Streamable(s)
	for range 2 {
		k := upstreamtest.Open(t, up)
		k.Send(upstreamtest.Call2)
		k.GetsOf("2", answered)
		_ = k.Conn.Close()
	}
}

// A server may answer a POST with 202, or with an empty stream, and send the answer on the
// stream of the GET, also if that opens only then.
func TestAnswersOnTheOtherStream(t *testing.T) {
	for name, head := range map[string]func(http.ResponseWriter){
		"202":                     status(202, ""),
		"202 with a word":         status(202, "Accepted"),
		"202 with JSON":           accepted(`{"status":"accepted"}`),
		"202 with an empty error": accepted(`null`),
		"an empty stream":         stream(""),
		"a stream with a comment": stream(": later\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			calls, called := make(chan *jsonrpc.Message, 10), make(chan struct{})
			call := sync.OnceFunc(func() { close(called) })
			s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch {
				case r.Method == http.MethodGet:
					<-called // a slow GET
					send := upstreamtest.Stream(w)
					for {
						select {
						case m := <-calls:
							send("data: %s", jsonrpc.NewResult(m.ID, []byte("{}")))
						case <-r.Context().Done():
							return
						}
					}
				case m.Method == "tools/call":
					head(w)
					w.(http.Flusher).Flush()
					call()
					calls <- m
				default:
					upstreamtest.Result(w, m)
				}
			}))
			k := upstreamtest.Open(t, upstreamtest.Streamable(s))
			for range 3 { // an id is free when it is answered
				k.Send(upstreamtest.Call2)
				k.GetsOf("2", answered)
			}
			k.Ping(9)
		})
	}
}

func accepted(body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(body))
	}
}

// An empty stream may also come from a proxy whose server has died: then nothing comes on the
// other stream either.
func TestEmptyStreamOfADeadServer(t *testing.T) {
	s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case m == nil:
			upstreamtest.Stream(w)("data: "+upstreamtest.Note, 1)
			<-r.Context().Done()
		case m.Method == "ping":
			w.WriteHeader(http.StatusBadGateway)
		default:
			stream("")(w)
		}
	}))
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	k.Recv() // the stream is open
	k.Send(upstreamtest.Call2)
	ssetest.WantText(t, "the end", k.Ended(), "502 Bad Gateway, also to a ping")
}

// Without that stream the call gets an error at once.
func TestAnswersOnNoStream(t *testing.T) {
	for name, get := range map[string]func(http.ResponseWriter){"405": status(405, ""), "503": status(503, ""), "a page": status(200, "<html>")} {
		s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if m == nil {
				get(w)
				return
			}
			w.WriteHeader(http.StatusAccepted)
		}))
		k := upstreamtest.Open(t, upstreamtest.Streamable(s))
		k.Send(upstreamtest.Call2)
		msg, _ := k.Recv()
		ssetest.WantText(t, name, msg, `"id":2`, "invalid_response", "202 Accepted")
	}
}

// A server that wants to be polled each millisecond is not, and less and less while nothing
// comes.
func TestServerThatWantsToBePolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := upstreamtest.ServeHere(upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			upstreamtest.Stream(w)("retry: 1\ndata:")
		}))
		k := upstreamtest.Open(t, upstreamtest.Streamable(s))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(s.Find(upstreamtest.Method("GET"))); n < 2 || n > 10 {
			t.Errorf("%d GETs in 10 s", n)
		}
		time.Sleep(time.Hour)
		if n := len(s.Find(upstreamtest.Method("GET"))); n > 600 {
			t.Errorf("%d GETs in an hour", n)
		}
		_ = k.Conn.Close()
	})
}

// Why a server cannot be reached is told, and logged, also where the transport is given.
func TestReasonsAreNotLost(t *testing.T) {
	for name, test := range map[string]struct {
		server     upstreamtest.Handler
		transports []string
		want       []string
	}{
		"an endpoint of another origin, behind a 405 with a body": {func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if r.Method == http.MethodGet {
				upstreamtest.Stream(w)("event: endpoint\ndata: https://internal.example:8443/messages")
				return
			}
			w.WriteHeader(http.StatusMethodNotAllowed)
			upstreamtest.AnswerJSON(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Method not allowed."}}`)
		}, []string{""}, []string{"HTTP+SSE", "another origin, https://internal.example:8443"}},
		"a redirect": {func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			http.Redirect(w, r, "https://new.example/mcp?key=secret", http.StatusPermanentRedirect)
		}, []string{"", remote.TransportStreamable, remote.TransportSSE, remote.TransportStateless}, []string{"redirect", "https://new.example/mcp", "308 Permanent Redirect"}},
		"a redirect of the GET alone": {func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if r.Method == http.MethodGet {
				http.Redirect(w, r, "https://new.example/sse?key=secret", http.StatusFound)
				return
			}
			status(405, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Method not allowed."}}`)(w)
		}, []string{"", remote.TransportSSE}, []string{"302 Found (a redirect to https://new.example/sse)"}},
	} {
		for _, transport := range test.transports {
			t.Run(name+" "+transport, func(t *testing.T) {
				said, log := dialed(t, remote.URL{Address: upstreamtest.Serve(t, test.server).URL + "/mcp", Transport: transport})
				ssetest.WantText(t, "what is said", said, test.want...)
				if !strings.Contains(log, ".example") || strings.Contains(said+log, "secret") {
					t.Errorf("said %s, logged %s", said, log)
				}
			})
		}
	}
}

// Within a session the log alone names the target of a redirect: the error of a call is for any
// client.
func TestRedirectWithinASession(t *testing.T) {
	var log ssetest.Output
	up := upstreamtest.Streamable(upstreamtest.Serve(t, upstreamtest.Calls(func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
		http.Redirect(w, r, "https://new.example/mcp?key=secret", http.StatusPermanentRedirect)
	})))
	up.Logger = ssetest.Logger(&log)
	k := upstreamtest.Open(t, up)
	k.Send(upstreamtest.Call2)
	msg, _ := k.Recv()
	ssetest.WantText(t, "the error", msg, "the server redirects elsewhere (308 Permanent Redirect)")
	ssetest.WantText(t, "log", log.String(), "server redirects elsewhere", "to=https://new.example/mcp")
	if strings.Contains(msg, ".example") || strings.Contains(log.String(), "secret") {
		t.Errorf("said %s, logged %s", msg, log.String())
	}
	k.Ping(3)
}

// localhost, 127.0.0.1 and [::1] are one machine: a stream at one may name the other, in any case.
func TestEndpointOfTheSameMachine(t *testing.T) {
	for _, host := range []string{"localhost", "LOCALHOST"} { // the test server does not listen at [::1]: see TestEndpointIsRelativeToTheStreamAndHasItsOrigin
		var address atomic.Pointer[string]
		sse := sseOnly(http.StatusMethodNotAllowed)
		s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			sse(rewriting{w, *address.Load()}, r, m)
		})
		other := strings.Replace(s.URL, "127.0.0.1", host, 1)
		address.Store(&other)
		k := upstreamtest.Open(t, remote.URL{Address: s.URL + "/sse"})
		k.Ping(2)
	}
}

// A redirect to another name of this machine is not followed: another program may listen there,
// which must not get a key.
func TestRedirectToAnotherNameOfTheMachine(t *testing.T) {
	var other atomic.Pointer[string]
	s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if strings.HasPrefix(r.Host, "127.0.0.1") {
			http.Redirect(w, r, *other.Load(), http.StatusPermanentRedirect)
			return
		}
		t.Errorf("%s got the key %q", r.Host, r.Header.Get("X-Key"))
	})
	at := strings.Replace(s.URL, "127.0.0.1", "localhost", 1) + "/mcp"
	other.Store(&at)
	up := upstreamtest.Streamable(s)
	up.Header = http.Header{"X-Key": {"secret"}}
	k := upstreamtest.DialTalk(t, up)
	k.Send(upstreamtest.Initialize)
	k.WantError("1", "redirects")
}

// rewriting puts the address before the path in the endpoint event.
type rewriting struct {
	http.ResponseWriter
	address string
}

func (w rewriting) Write(p []byte) (int, error) {
	_, err := w.ResponseWriter.Write(bytes.Replace(p, []byte("data: /messages"), []byte("data: "+w.address+"/messages"), 1))
	return len(p), err
}

func (w rewriting) Flush() { w.ResponseWriter.(http.Flusher).Flush() }
