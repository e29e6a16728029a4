//go:build deploy

package deploytest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// startWithSocket starts sse-server with a socket, as systemd does for sse-server.socket.
func startWithSocket(t *testing.T, socket *os.File, env []string, args ...string) *process {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `export LISTEN_PID=$$; exec "$@"`, "sh", sseServer(t)}, args...)...)
	cmd.Env = append(append(os.Environ(), "LISTEN_FDS=1", "LISTEN_FDNAMES=addr"), env...)
	cmd.ExtraFiles = []*os.File{socket}
	p := startCmd(t, cmd)
	p.prints("msg=serving")
	return p
}

// While the gateway restarts with the socket unit, somebody connects all the time and is
// never refused, and clients of all transports go on.
func TestRestartWithTheSocketUnit(t *testing.T) {
	t.Parallel()
	config := net.ListenConfig{}
	config.SetMultipathTCP(false) // as systemd
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	defer socket.Close()
	base, env := "http://"+listener.Addr().String(), []string{"XDG_STATE_HOME=" + t.TempDir()}
	gateway := startWithSocket(t, socket, env)
	clients := []*client{connect(t, base+"/sse", "sse", nil), connect(t, base+"/mcp", "streamable", nil)}

	connects := newConnector(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, base+"/healthz", http.StatusOK)
	defer connects.stop()
	for range 3 {
		before := connects.done.Load()
		gateway.signal(syscall.SIGTERM)
		if err := gateway.wait(); err != nil {
			t.Fatalf("the gateway ended: %v", err)
		}
		gateway = startWithSocket(t, socket, env)
		clients[0].step("reconnected")
		for _, c := range clients {
			c.echo("after the restart")
		}
		if connects.done.Load() == before {
			t.Error("nobody connected meanwhile")
		}
	}
	if errs := connects.stop(); len(errs) > 0 {
		t.Errorf("of %d connections %d failed: %v", connects.done.Load(), len(errs), errs[0])
	}
}

// connector asks again and again.
type connector struct {
	end  context.CancelFunc
	wg   sync.WaitGroup
	done atomic.Int64
	errs []error
}

// newConnector returns a connector that wants a status. The client keeps no connections.
func newConnector(client *http.Client, url string, status int) *connector {
	ctx, cancel := context.WithCancel(context.Background())
	c := &connector{end: cancel}
	c.wg.Go(func() { // ends with stop
		for ctx.Err() == nil {
			resp, err := client.Get(url)
			if err == nil {
				resp.Body.Close()
				if resp.StatusCode != status {
					err = errors.New(resp.Status)
				}
			}
			if err != nil {
				c.errs = append(c.errs, err)
				continue
			}
			c.done.Add(1)
		}
	})
	return c
}

// stop ends it and returns what failed.
func (c *connector) stop() []error {
	c.end()
	c.wg.Wait()
	return c.errs
}
