package gateway

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// errUnknownServer is the answer of /readyz for a name without a server.
var errUnknownServer = errors.New("there is no server of that name")

// Admin returns the routes for operators: GET /healthz (the process answers), /readyz
// (sessions can be started), /metrics, /connections with a snapshot of each
// connection, and /status, a page for people that shows servers and connections. They
// check Host and Origin like the transport. They need no authentication, and ServeHTTP
// does not serve them. /readyz?server=NAME is 404 for any name but Options.Name. /readyz
// gives the category of a failure, and its details as Options.ErrorDetails allows, or to
// an authenticated request.
func (g *Gateway) Admin() http.Handler {
	return operatorRoutes(true, func() []*Gateway { return []*Gateway{g} })
}

// Admin returns the routes of Gateway.Admin for all servers together. /readyz is 200
// if at least one server is ready, and lists the state of each; /readyz?server=NAME
// is the state of one server, or 404. At /connections each connection has a member
// server. The routes check Host and Origin like the first gateway.
func (s *Servers) Admin() http.Handler { return operatorRoutes(false, s.list) }

// operatorRoutes returns the routes of the gateways that all returns, which share a registry.
// alone says that there is only one.
func operatorRoutes(alone bool, all func() []*Gateway) http.Handler {
	routes := mux.NewRouter()
	looks := routes.Methods(http.MethodGet, http.MethodHead).Subrouter()
	looks.Path("/healthz").HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpanswer.WriteValue(w, r, http.StatusOK, status{Status: "ok"})
	})
	looks.Path("/readyz").HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serveReady(w, r, alone, all())
	})
	looks.Path("/metrics").Handler(metrics.Handler(all()[0].promReg))
	looks.Path("/connections").HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := map[string]any{"connections": snapshotsOf(all())}
		if replicas := replicasOf(all()); replicas != nil {
			body["replicas"] = replicas
		}
		httpanswer.WriteValue(w, r, http.StatusOK, body)
	})
	looks.PathPrefix("/status").Handler(statusPage(all))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all()[0].now.Load().checks.Guard(routes).ServeHTTP(w, r)
	})
}

// serveReady serves the state of the server that the query names, of the only one, or of all.
func serveReady(w http.ResponseWriter, r *http.Request, alone bool, all []*Gateway) {
	out := httpanswer.New(w, r, httpanswer.FormJSON, 0) // before the probe, which may take long
	query := r.URL.Query()
	if name, named := query.Get("server"), query.Has("server"); named || alone {
		err := errUnknownServer
		for _, g := range all {
			if !named || name == g.name && name != "" {
				err = g.readiness(r, g.Ready(r.Context()))
			}
		}
		out.Value(codeOf(err), statusOf(err))
		return
	}
	body, code := status{Status: notReady, Servers: map[string]status{}}, http.StatusServiceUnavailable
	for i, err := range readyAll(r.Context(), all) {
		err = all[i].readiness(r, err)
		body.Servers[all[i].name] = statusOf(err)
		if err == nil {
			body.Status, code = isReady, http.StatusOK
		}
	}
	out.Value(code, body)
}

// readiness returns err, the result of Ready, without the details that the sender of
// the request may not see. A server that waits for a login is not ready, although its clients have the tool login.
func (g *Gateway) readiness(r *http.Request, err error) error {
	if command, is := g.now.Load().needsLogin(); is {
		if g.mayReadDetails(r) {
			return fmt.Errorf("%w: run in a terminal: %s", errNeedsLogin, command)
		}
		return errNeedsLogin
	}
	failure, ok := errors.AsType[*handshake.Failure](err)
	if !ok || g.mayReadDetails(r) {
		return err
	}
	return failure.Safe()
}

// errNeedsLogin is the answer of /readyz for a remote server that waits for a login.
var errNeedsLogin = errors.New("the server is waiting for a login")

// mayReadDetails reports whether the sender of a request for operators may see the details of errors.
func (g *Gateway) mayReadDetails(r *http.Request) bool {
	now := g.now.Load()
	if g.detailed(connstate.Client{Local: now.checks.IsLocal(r)}) {
		return true
	}
	if now.opts.Authenticate == nil {
		return false
	}
	_, refused := now.opts.Authenticate(r)
	return refused == nil
}

// The values of status.Status.
const (
	isReady  = "ready"
	notReady = "not ready"
)

// status is the body of /healthz, {"status":"ok"}, and of /readyz, as in
//
//	{"status":"not ready","reason":"the server could not be started or reached"}
//
// With several servers each has its own below servers.
type status struct {
	Status  string            `json:"status"`
	Reason  string            `json:"reason,omitempty"`
	Servers map[string]status `json:"servers,omitempty"`
}

func statusOf(err error) status {
	if err != nil {
		return status{Status: notReady, Reason: err.Error()}
	}
	return status{Status: isReady}
}

// codeOf returns the HTTP status for the error of a readiness check.
func codeOf(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, errUnknownServer):
		return http.StatusNotFound
	}
	return http.StatusServiceUnavailable
}
