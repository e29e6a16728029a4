package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// A gateway that has served one connection exports the series of its events, those
// that alerts need at zero, and those of the process; no series for events that did
// not happen.
func TestOneConnectionMakesFewSeries(t *testing.T) {
	const most = 300
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.wantState(connstate.Ready)
		p.post(request("1", "tools/list"))
		p.want(answered("1", 1, "tools/list"))
		time.Sleep(time.Minute)
		p.c.Close(metrics.ClosedClient)
		g.Registry().Remove(p.c)
		w := httptest.NewRecorder()
		g.Admin().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		series := 0
		for line := range strings.Lines(w.Body.String()) {
			if !strings.HasPrefix(line, "#") {
				series++
			}
		}
		if series > most || w.Code != http.StatusOK {
			t.Errorf("%d series, status %d, want at most %d", series, w.Code, most)
		}
		t.Logf("%d series", series)
	})
}
