// Command inprocess is one server over HTTP with an echo in the same process, of a kind
// that is compared with others: the gateway over a server, or that server's own
// handler. See ../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// startTimeout bounds the head of a request.
const startTimeout = 30 * time.Second

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "`HOST:PORT` to serve on")
	kind := flag.String("kind", "raw", "what serves: "+strings.Join(kinds(), ", "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *kind); err != nil {
		fmt.Fprintln(os.Stderr, "inprocess:", err)
		stop()
		os.Exit(1)
	}
}

// run serves until ctx ends, and prints the URL of the stream when it is ready.
func run(ctx context.Context, addr, kind string) error {
	h, err := newHandler(kind)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: withStats(h), ReadHeaderTimeout: startTimeout}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }() // ends with Close
	fmt.Printf("    http://%s/sse\n", listener.Addr())
	select {
	case err := <-failed:
		return errors.Join(err, h.stop())
	case <-ctx.Done():
	}
	err = errors.Join(h.stop(), srv.Close()) // Close cuts the streams: Shutdown would wait for them
	<-failed
	return err
}

// withStats serves /stats and /debug/pprof/ beside h. It is no ServeMux: that would
// take its part of each call.
func withStats(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/stats":
			serveStats(w, r)
		case r.URL.Path == "/debug/pprof/profile":
			pprof.Profile(w, r)
		case strings.HasPrefix(r.URL.Path, "/debug/pprof/"):
			pprof.Index(w, r)
		default:
			h.ServeHTTP(w, r)
		}
	})
}
