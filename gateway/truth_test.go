package gateway_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// told counts what the log says, by line and attributes.
type told struct {
	log    bytes.Buffer // what read has not read
	counts map[string]float64
	states map[string]string // of the connections, by id
}

func (l *told) read(t *testing.T) {
	count, states := l.counts, l.states
	for text := range strings.Lines(l.log.String()) {
		var at struct {
			Msg, ConnectionID, Transport, Reason, To, Method string
			Failures, Requests, Errors                       float64
		}
		must(t, json.Unmarshal([]byte(text), &at))
		switch at.Msg {
		case "connection opened":
			count["opened "+at.Transport]++
			states[at.ConnectionID] = cmp.Or(states[at.ConnectionID], "initializing")
		case "connection closed":
			count["closed "+at.Transport+" "+at.Reason]++
			count["failures"] += at.Failures
			count["requests"] += at.Requests
			count["errors"] += at.Errors
		case "connection state":
			if states[at.ConnectionID] = at.To; at.To == "closed" {
				delete(states, at.ConnectionID)
			}
		case "mcp POST start":
			count["in flight"]++
		case "mcp POST ok", "mcp POST failed", "mcp POST slow":
			count["in flight"]--
			if !slices.Contains([]string{"tools/call", "tools/list", "ping", "initialize"}, at.Method) {
				at.Method = "_other" // as the label of the metrics
			}
			count["done "+at.Method+" "+at.Reason]++
		case "session started":
			count["started"]++
		}
	}
	l.log.Reset()
}

// account is what log, /metrics and /connections say alike. Each adds its part.
type account struct {
	log, metrics, rows map[string]float64
}

// accountOf reads all three at a moment in which nothing happens.
func accountOf(t *testing.T, g *gateway.Gateway, l *told) account {
	synctest.Wait()
	s := account{map[string]float64{}, map[string]float64{}, map[string]float64{}}
	l.read(t)
	maps.Copy(s.log, l.counts)
	for _, state := range l.states {
		s.log["state "+state]++
	}
	s.readMetrics(t, g)
	s.readRows(t, g)
	for _, transport := range []string{"sse", "streamable"} {
		s.log["open "+transport] = s.log["opened "+transport]
		for key, n := range s.log {
			if strings.HasPrefix(key, "closed "+transport+" ") {
				s.log["open "+transport] -= n
			}
		}
	}
	return s
}

func (s account) readMetrics(t *testing.T, g *gateway.Gateway) {
	_, page := ask(g.Admin(), "/metrics")
	for line := range strings.Lines(page) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, rest, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		labels := map[string]string{}
		for _, label := range strings.Split(rest, ",") {
			key, value, _ := strings.Cut(label, "=")
			labels[key] = strings.Trim(value, `"`)
		}
		n, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "mcp_sse_connections":
			s.metrics["open "+labels["transport"]] += n
		case "mcp_sse_connections_opened_total":
			s.metrics["opened "+labels["transport"]] += n
		case "mcp_sse_connections_closed_total":
			s.metrics["closed "+labels["transport"]+" "+labels["reason"]] += n
		case "mcp_sse_connection_state":
			s.metrics["state "+labels["state"]] += n
		case "mcp_sse_requests_in_flight":
			s.metrics["in flight"] += n
		case "mcp_server_operation_duration_seconds_count":
			s.metrics["done "+labels["mcp_method_name"]+" "+labels["error_type"]] += n
			if labels["error_type"] != "closed" { // nobody is answered any more
				s.metrics["requests"] += n
			}
			if labels["error_type"] != "closed" && labels["error_type"] != "" {
				s.metrics["errors"] += n
			}
		case "mcp_sse_handshakes_total":
			switch labels["result"] {
			case "ok":
				s.metrics["started"] += n
			case "error":
				s.metrics["failures"] += n
			}
		}
	}
}

func (s account) readRows(t *testing.T, g *gateway.Gateway) {
	var body struct {
		Connections []struct {
			State                                  string
			Transport                              string
			InFlight, RequestsDone, RequestsFailed float64
			HandshakeFailures                      map[string]float64
		}
	}
	_, page := ask(g.Admin(), "/connections")
	must(t, json.Unmarshal([]byte(page), &body))
	for _, row := range body.Connections {
		s.rows["state "+row.State]++
		s.rows["open "+row.Transport]++
		s.rows["in flight"] += row.InFlight
		s.log["requests"] += row.RequestsDone // the log has those of connections that are closed
		s.log["errors"] += row.RequestsFailed
		for _, n := range row.HandshakeFailures {
			s.log["failures"] += n
		}
	}
}

// compare expects the three to say the same.
func (s account) compare(t *testing.T, when string) {
	t.Helper()
	for key, n := range s.metrics {
		if got := s.log[key]; got != n {
			t.Errorf("%s: %s: the metrics say %v, the log %v", when, key, n, got)
		}
	}
	for key, n := range s.log {
		if got, known := s.metrics[key]; got != n && !known {
			t.Errorf("%s: %s: the log says %v, the metrics nothing", when, key, n)
		}
	}
	for key, n := range s.metrics {
		if strings.HasPrefix(key, "state ") || strings.HasPrefix(key, "open ") || key == "in flight" {
			if got := s.rows[key]; got != n {
				t.Errorf("%s: %s: the metrics say %v, /connections %v", when, key, n, got)
			}
		}
	}
}

// moody answers some requests well, and others with an error, late, or never; it may die.
func moody(draw func(n int) int) *server {
	return &server{
		dial: func(ctx context.Context, _ int) error {
			if draw(12) == 0 {
				return errNoServer
			}
			return slow(time.Duration(draw(300))*time.Millisecond)(ctx, 0)
		},
		handle: func(s *serverSession, m *jsonrpc.Message) bool {
			if m.Method != "tools/call" && m.Method != "tools/list" {
				return false
			}
			switch draw(12) {
			case 0:
			case 1:
				s.die()
			case 2, 3:
				fails(jsonrpc.CodeInvalidParams)(s, m)
			case 4:
				s.say(string(jsonrpc.NewResult(m.ID, []byte(`{"isError":true}`))))
			case 5:
				time.AfterFunc(time.Duration(draw(7000))*time.Millisecond, func() { s.answer(m) })
			default:
				return false
			}
			return true
		},
	}
}

// sseVisitor is a client over HTTP+SSE that reads nothing but its stream.
type sseVisitor struct {
	t testing.TB
	*ssetest.Client
	wg sync.WaitGroup
}

func visitSSE(t testing.TB, srv *pipetest.Server) *sseVisitor {
	c, err := ssetest.Dial(srv.Client, "http://localhost/sse", nil)
	must(t, err)
	v := &sseVisitor{t: t, Client: c}
	v.wg.Go(func() { // ends with the stream
		for err := error(nil); err == nil; {
			_, err = c.Next()
		}
	})
	return v
}

func (v *sseVisitor) post(msgs ...string) {
	for _, msg := range msgs {
		equal(v.t, "error", v.Send(msg), nil)
	}
}

func (v *sseVisitor) leave() {
	v.Close()
	v.wg.Wait()
}

// The log, /metrics and /connections agree (P7) about 1,000 connections over both transports,
// with clients, servers and ends that are drawn at random.
func TestLogMetricsAndConnectionsAgree(t *testing.T) {
	const connections, open = 1000, 12
	rng, mu := rand.New(rand.NewPCG(7, 7)), sync.Mutex{}
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
	log := &told{counts: map[string]float64{}, states: map[string]string{}}
	logger := slog.New(slog.NewJSONHandler(&log.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	opts := gateway.Settings{Options: gateway.Options{Logger: logger, RequestTimeout: 5 * time.Second}, SlowRequest: time.Hour}
	inFakeTime(t, moody(draw), opts, func(t *testing.T, g *gateway.Gateway) {
		srv := pipetest.Serve(g, nil, nil)
		defer srv.Stop()
		var here []interface {
			post(msgs ...string)
			leave()
		}
		for n := range connections {
			if len(here) == open {
				i := draw(open)
				here[i].leave()
				here[i] = here[open-1]
				here = here[:open-1]
			}
			if draw(2) == 0 {
				here = append(here, visitSSE(t, srv))
			} else {
				here = append(here, connectStreamable(t, g, srv, draw))
			}
			for id := range draw(4) {
				who := here[draw(len(here))]
				who.post(request(fmt.Sprintf("%d", n*10+id), []string{"tools/call", "tools/list", "ping", "vendor/x"}[draw(4)]))
			}
			time.Sleep(time.Duration(draw(400)) * time.Millisecond)
			if n%50 == 0 {
				accountOf(t, g, log).compare(t, fmt.Sprintf("after %d connections", n+1))
			}
			if t.Failed() {
				break
			}
		}
		for _, v := range here {
			v.leave()
		}
		time.Sleep(time.Minute)
		s := accountOf(t, g, log)
		s.compare(t, "at the end")
		if s.metrics["opened sse"] < connections/3 || s.metrics["opened streamable"] < connections/3 || s.metrics["failures"] == 0 || s.metrics["errors"] == 0 {
			t.Errorf("too little happened: %v", s.metrics)
		}
	})
}
