package docstest_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/gateway"
)

// Several servers in one program.
func Example_servers() {
	registry := prometheus.NewRegistry() // one for all
	docs := newGateway(gateway.Options{Name: "docs", Prefix: "/docs", Registry: registry})
	search := newGateway(gateway.Options{Name: "search", Prefix: "/search", Registry: registry, MaxConnections: 50})
	servers, err := gateway.NewServers(docs, search)
	if err != nil {
		log.Fatal(err)
	}

	ts := httptest.NewServer(servers)
	defer ts.Close()
	call(ts.URL + "/docs/sse")
	call(ts.URL + "/search/sse")
	for _, target := range []string{"/readyz", "/readyz?server=docs", "/readyz?server=other"} {
		w := httptest.NewRecorder()
		servers.Admin().ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		fmt.Println(w.Code, target)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := servers.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// Hello, Ada
	// Hello, Ada
	// 200 /readyz
	// 200 /readyz?server=docs
	// 404 /readyz?server=other
}
