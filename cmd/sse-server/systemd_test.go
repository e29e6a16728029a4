package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
)

// passed returns sockets that listen as systemd passes them, under these names, and their
// URLs.
func passed(t *testing.T, addr string, names ...string) (sockets []*os.File, urls []string) {
	t.Helper()
	for _, name := range names {
		network := "tcp"
		if filepath.IsAbs(addr) {
			network = "unix"
		}
		listener := clitest.Must(net.Listen(network, addr))
		file, err := listener.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		fd := clitest.Must(syscall.Dup(int(file.Fd())))
		file.Close()
		listener.Close()
		sockets, urls = append(sockets, os.NewFile(uintptr(fd), name)), append(urls, "http://"+listener.Addr().String())
	}
	return sockets, urls
}

// A socket that systemd passes replaces an address: that of its name, else the next.
func TestSocketsOfSystemd(t *testing.T) {
	const unnamed = "sse-server.socket" // what systemd calls a socket without FileDescriptorName=
	for _, test := range []struct {
		names       []string
		main, admin int // the socket that serves it; -1: none
	}{
		{[]string{unnamed}, 0, -1},
		{[]string{"addr"}, 0, -1},
		{[]string{"admin-addr"}, -1, 0},
		{[]string{unnamed, unnamed}, 0, 1},
		{[]string{"admin-addr", unnamed}, 1, 0},
	} {
		sockets, urls := passed(t, "127.0.0.1:0", test.names...)
		p := launchMain(t, &Main{Args: []string{"--addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0"}, LookupEnv: clitest.Environment(nil), Sockets: sockets})
		if p.url == "" {
			t.Fatalf("%q: ended with %d:\n%s", test.names, <-p.code, p.log.String())
		}
		for got, want := range map[string]int{p.base(): test.main, p.admin: test.admin} {
			for i, url := range urls {
				if (got == url) != (i == want) {
					t.Errorf("%q: socket %d is %s, and an address %s", test.names, i, url, got)
				}
			}
		}
		p.stop()
		if got := strings.Count(p.log.String(), "replaces an address"); got != len(urls) {
			t.Errorf("%q: got %d lines in the log:\n%s", test.names, got, p.log.String())
		}
	}
}

// Sockets that fit no address, or would open the server to others, are faults of the
// configuration.
func TestSocketsThatAreRefused(t *testing.T) {
	for want, test := range map[string]struct {
		addr  string
		names []string
	}{
		"a socket named b":                                            {"127.0.0.1:0", []string{"a", "b"}},
		"a socket named admin-addr":                                   {"127.0.0.1:0", []string{"admin-addr"}},
		"a socket named addr":                                         {"127.0.0.1:0", []string{"addr", "addr"}},
		"--addr: other machines may reach [::]":                       {"[::]:0", []string{"addr"}},
		"socket addr of systemd: want a TCP address in ListenStream=": {filepath.Join(t.TempDir(), "socket"), []string{"addr"}},
	} {
		sockets, _ := passed(t, test.addr, test.names...)
		p := launchMain(t, &Main{LookupEnv: clitest.Environment(nil), Sockets: sockets})
		if p.url != "" {
			p.stop()
			t.Errorf("%q at %s: served", test.names, test.addr)
		} else if code := <-p.code; code != exit.Config || !strings.Contains(p.log.String(), want) {
			t.Errorf("%q at %s: exit code %d, want the error %q:\n%s", test.names, test.addr, code, want, p.log.String())
		}
	}
}

// A unit with Type=notify is started when the addresses are served, and stopping from the
// signal on.
func TestSystemdIsNotified(t *testing.T) {
	at := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	listener := clitest.Must(net.ListenUnixgram(at.Net, at))
	defer listener.Close()
	t.Setenv("NOTIFY_SOCKET", at.Name)
	said := make([]byte, 64)
	await := func(want string) {
		t.Helper()
		if n, err := listener.Read(said); err != nil || string(said[:n]) != want {
			t.Errorf("got %q, %v, want %q", said[:n], err, want)
		}
	}
	p := start(t, "--addr=127.0.0.1:0")
	await("READY=1")
	p.stop()
	await("STOPPING=1")
}
