package sse_test

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend stands behind the connections of a test. It answers each request with its params.
type backend struct {
	accepted chan whole
	closed   chan connstate.Reason // reasons
	// receive, if it is not nil, gets the messages. It is set before the first connection.
	receive func(c *connstate.Connection, m *jsonrpc.Message)
}

func (b *backend) Accept(c *connstate.Connection) connstate.Handler {
	b.accepted <- wholeOf(c)
	return &peer{b, c}
}

type peer struct {
	b *backend
	c *connstate.Connection
}

func (p *peer) Receive(m *jsonrpc.Message) {
	if p.b.receive != nil {
		p.b.receive(p.c, m)
	} else if m.Kind == jsonrpc.Request {
		p.c.RespondNow("", jsonrpc.NewResult(m.ID, []byte(cmp.Or(string(m.Params()), "{}"))))
	}
}

func (p *peer) Refused(*connstate.Request, error) {}
func (p *peer) Drained()                          {}
func (p *peer) Closed()                           { p.b.closed <- p.c.Reason() }
func (p *peer) OnMemory() bool                    { return false }

// fixture is a Handler with all that a test looks at.
type fixture struct {
	*sse.Handler
	backend  *backend
	registry *connstate.Registry
	prom     *prometheus.Registry
}

// config is what a test may set.
type config struct {
	sse  sse.Options
	conn connstate.Options
	log  *slog.Logger
}

func newFixture(t testing.TB, cfg config) *fixture {
	t.Helper()
	prom := metrics.NewRegistry()
	m := metrics.New(prom)
	cfg.sse.Metrics, cfg.conn.Metrics = m, m
	if cfg.conn.Budget == nil {
		cfg.conn.Budget = budget.New(-1, m)
	}
	cfg.sse.Logger, cfg.conn.Logger = cfg.log, cfg.log
	b := &backend{accepted: make(chan whole, 4096), closed: make(chan connstate.Reason, 4096)}
	registry := connstate.NewRegistry(connstate.Limits{}, cfg.conn)
	h, err := sse.New(b, registry, cfg.sse)
	ssetest.Must(t, err)
	return &fixture{h, b, registry, prom}
}

// count returns the value of a counter or gauge, over all labels or of one reason.
func (f *fixture) count(t testing.TB, name string, reason ...string) float64 {
	t.Helper()
	return ssetest.Sum(t, f.prom, name, reason...)
}

// start serves h, wrapped by each of wraps, on a socket until the test ends.
func start(t testing.TB, h http.Handler, wraps ...func(http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	for _, wrap := range wraps {
		h = wrap(h)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

// whole is a connection with the methods for its transport and for its handler.
type whole struct {
	*connstate.Connection
	connstate.ForTransport
	connstate.ForHandler
}

func wholeOf(c *connstate.Connection) whole {
	return whole{c, connstate.ForTransport{Connection: c}, connstate.ForHandler{Connection: c}}
}
