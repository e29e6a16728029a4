package gateway

import (
	"encoding/json"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/mcp-sse/mcp-sse/metrics"
)

// Admin returns the routes for operators: GET /healthz (the process answers),
// /readyz (sessions can be started), /metrics, and /connections with a snapshot
// of each. Host and Origin are checked as for the transport. They are not
// authenticated, and not part of ServeHTTP.
func (g *Gateway) Admin() http.Handler {
	routes := mux.NewRouter()
	routes.Methods(http.MethodGet, http.MethodHead).Path("/healthz").HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, status{Status: "ok"})
	})
	routes.Methods(http.MethodGet, http.MethodHead).Path("/readyz").HandlerFunc(g.serveReady)
	routes.Methods(http.MethodGet, http.MethodHead).Path("/metrics").Handler(metrics.Handler(g.promReg))
	routes.Methods(http.MethodGet, http.MethodHead).Path("/connections").HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"connections": g.Snapshot()})
	})
	return g.transport.Guard(routes)
}

type status struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

func (g *Gateway) serveReady(w http.ResponseWriter, r *http.Request) {
	if err := g.Ready(r.Context()); err != nil {
		writeJSON(w, http.StatusServiceUnavailable, status{"not ready", err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, status{Status: "ready"})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // a client that is gone needs no answer
}
