package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// program is a Main that runs in this process.
type program struct {
	t          *testing.T
	url, admin string
	signals    chan os.Signal // that stop it
	hangup     chan os.Signal // SIGHUP
	code       chan int
	ended      chan struct{} // closed after code has been sent
	out, log   output
}

// start runs the program until it is ready. The cleanup stops it.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith is start with environment variables.
func startWith(t *testing.T, env map[string]string, args ...string) *program {
	t.Helper()
	p := launchWith(t, env, args...)
	if p.url == "" {
		t.Fatalf("ended with %d before it was ready:\n%s", <-p.code, p.log.String())
	}
	t.Cleanup(p.stop)
	return p
}

// stop ends the program, if the test has not sent its signals itself.
func (p *program) stop() {
	select {
	case p.signals <- syscall.SIGTERM: // waits until the program does
		<-p.ended
	case <-p.ended:
	}
}

// wantExit checks the exit code of the program, once that has ended.
func (p *program) wantExit(want int) {
	p.t.Helper()
	if code := <-p.code; code != want {
		p.t.Errorf("got exit code %d, want %d\n%s", code, want, p.log.String())
	}
}

// launch runs the program until it is ready or has ended.
func launch(t *testing.T, args ...string) *program {
	t.Helper()
	return launchWith(t, nil, args...)
}

func launchWith(t *testing.T, env map[string]string, args ...string) *program {
	t.Helper()
	return launchMain(t, &Main{Args: args, LookupEnv: clitest.Environment(env)})
}

// launchMain is launch of a Main, whose other fields it sets.
func launchMain(t *testing.T, m *Main) *program {
	t.Helper()
	p := &program{t: t, signals: make(chan os.Signal), hangup: make(chan os.Signal), code: make(chan int, 1), ended: make(chan struct{})}
	ready := make(chan struct{})
	m.Stdout, m.Stderr, m.Notify = &p.out, &p.log, p.notify
	m.Ready = func(url, admin string) {
		p.url, p.admin = url, admin
		close(ready)
	}
	go func() {
		p.code <- m.Run()
		close(p.ended)
	}()
	select {
	case <-ready:
	case <-p.ended:
	}
	return p
}

func (p *program) notify(catch ...os.Signal) <-chan os.Signal {
	if catch[0] == syscall.SIGHUP {
		return p.hangup
	}
	return p.signals
}

// base is the URL without /mcp.
func (p *program) base() string { return strings.TrimSuffix(p.url, "/mcp") }

// output is what the program writes while the test reads.
type output struct{ ssetest.Output }

// await waits until the output has n lines with text, and returns the last one.
func (o *output) await(t *testing.T, n int, text string) string {
	t.Helper()
	tick, deadline := time.NewTicker(5*time.Millisecond), time.After(2*time.Minute)
	defer tick.Stop()
	for {
		var found []string
		for line := range strings.Lines(o.String()) {
			if strings.Contains(line, text) {
				found = append(found, line)
			}
		}
		if len(found) >= n {
			return found[n-1]
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d lines with %q, want %d", len(found), text, n)
		}
	}
}
