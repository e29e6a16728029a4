package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

const (
	// peerWait is how long a client waits for one answer, when the server is up.
	peerWait = 10 * time.Second
	// againAfter is the pause of a client that has been refused.
	againAfter = 500 * time.Millisecond
)

// peer is a program between clients and servers, and what happens with it in each situation. A situation that
// the program cannot be in is nil.
type peer struct {
	name                                string
	boots, reconnects, atOnce, restarts situation
}

// situation brings a program into a situation, and says in a few words what happened.
type situation func(context.Context) (string, error)

// situations are the rows of the table.
var situations = []struct {
	name string
	of   func(peer) situation
}{
	{"a server that boots %v: time to the tools", func(p peer) situation { return p.boots }},
	{"a client that opens a cut stream again, without `initialize`", func(p peer) situation { return p.reconnects }},
	{"two clients at once, with the same ids", func(p peer) situation { return p.atOnce }},
	{"a restart between two calls of a session", func(p peer) situation { return p.restarts }},
}

// comparePeers prints what happens with sse-server and with other programs in the same situations, as a table in
// Markdown. Each cell is one run.
func (a *arguments) comparePeers(ctx context.Context, w io.Writer) error {
	if a.Peers == "" {
		return fmt.Errorf("--mode peers needs --peers")
	}
	peers := []peer{
		a.gatewayPeer(a.ours()), a.gatewayPeer(a.supergateway()), a.gatewayPeer(a.mcpProxy()),
		a.bridgePeer("sse-server stdio --url", a.oursOnStdio), a.bridgePeer("mcp-remote", a.mcpRemote),
	}
	var text strings.Builder
	text.WriteString("|")
	for _, p := range peers {
		fmt.Fprintf(&text, " | %s", p.name)
	}
	fmt.Fprintf(&text, " |\n|%s\n", strings.Repeat("---|", len(peers)+1))
	for _, s := range situations {
		name := strings.Replace(s.name, "%v", a.Boot.String(), 1)
		fmt.Fprintf(&text, "| %s", name)
		for _, p := range peers {
			cell, err := "–", error(nil)
			if happens := s.of(p); happens != nil {
				cell, err = happens(ctx)
			}
			if err != nil {
				return fmt.Errorf("%s: %s: %w", p.name, name, err)
			}
			fmt.Fprintf(os.Stderr, "%s: %s: %s\n", p.name, name, cell)
			fmt.Fprintf(&text, " | %s", cell)
		}
		text.WriteString(" |\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// gateway is a program that serves a server on stdio over HTTP.
type gateway struct {
	name string
	// mcp and sse are the commands that serve a server at a port over Streamable HTTP, at /mcp, and over
	// HTTP+SSE, at /sse.
	mcp, sse func(port string, server []string) []string
}

func (a *arguments) ours() gateway {
	serve := func(port string, server []string) []string {
		return append([]string{a.binary("sse-server"), "--addr", "127.0.0.1:" + port, "--"}, server...)
	}
	return gateway{"sse-server", serve, serve}
}

func (a *arguments) supergateway() gateway {
	serve := func(port string, server []string) []string {
		script := a.script("supergateway/dist/index.js")
		return []string{a.Node, script, "--stdio", strings.Join(server, " "), "--port", port}
	}
	return gateway{"supergateway", func(port string, server []string) []string {
		return append(serve(port, server), "--outputTransport", "streamableHttp", "--stateful")
	}, serve}
}

func (a *arguments) mcpProxy() gateway {
	serve := func(port string, server []string) []string {
		return append([]string{
			a.Node, a.script("mcp-proxy/dist/bin/mcp-proxy.mjs"), "--host", "127.0.0.1", "--port", port, "--",
		}, server...)
	}
	return gateway{"mcp-proxy", serve, serve}
}

func (a *arguments) oursOnStdio(url string) []string {
	return []string{a.binary("sse-server"), "stdio", "--url", url}
}

func (a *arguments) mcpRemote(url string) []string {
	return []string{a.Node, a.script("mcp-remote/dist/proxy.js"), url}
}

// script is the path of a program of npm.
func (a *arguments) script(name string) string { return filepath.Join(a.Peers, "node_modules", name) }

// echo is the server behind all gateways, which boots for that long.
func (a *arguments) echo(boot time.Duration) ([]string, error) {
	path, err := filepath.Abs(a.binary("echo"))
	return []string{path, "--boot", boot.String()}, err
}

// gatewayPeer is a gateway in front of the echo, with clients over HTTP.
func (a *arguments) gatewayPeer(g gateway) peer {
	return peer{
		g.name,
		func(ctx context.Context) (string, error) { return a.gatewayBoots(ctx, g) },
		func(ctx context.Context) (string, error) { return a.gatewayReconnects(ctx, g) },
		func(ctx context.Context) (string, error) { return a.gatewayAtOnce(ctx, g) },
		func(ctx context.Context) (string, error) { return a.gatewayRestarts(ctx, g) },
	}
}

// serving passes on how to start a gateway in front of an echo that boots for that long, and its address. The
// gateway has a state directory of its own.
func (a *arguments) serving(command func(port string, server []string) []string, boot time.Duration,
	do func(start func() (*program, error), addr string) (string, error),
) (string, error) {
	server, err := a.echo(boot)
	if err != nil {
		return "", err
	}
	addr, port, state, err := newPlace()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(state)
	return do(func() (*program, error) {
		return startProgram(command(port, server), state)
	}, addr)
}

// newPlace returns a free address, its port, and a state directory, which the caller removes.
func newPlace() (addr, port, state string, err error) {
	if addr, port, err = freeAddr(); err == nil {
		state, err = os.MkdirTemp("", "compare-peer-")
	}
	return addr, port, state, err
}

// serves starts a gateway, and returns when it takes connections.
func (a *arguments) serves(start func() (*program, error), addr string) (*program, error) {
	p, err := start()
	if err != nil {
		return nil, err
	}
	return p.listens(addr, a.Timeout)
}

// gatewayBoots measures how long a client has no tools that comes in the moment in which the gateway starts, then
// the next client, then one that comes when the gateway starts again.
func (a *arguments) gatewayBoots(ctx context.Context, g gateway) (string, error) {
	return a.serving(g.mcp, a.Boot, func(start func() (*program, error), addr string) (string, error) {
		var waits []string
		for _, clients := range []int{2, 1} {
			p, err := start()
			if err != nil {
				return "", err
			}
			for range clients {
				connect := func() client { return newHTTPClient("http://" + addr + "/mcp") }
				waits = append(waits, a.untilTools(ctx, connect))
			}
			p.stop()
		}
		return fmt.Sprintf("%s; the next client %s; after a restart %s", waits[0], waits[1], waits[2]), nil
	})
}

// untilTools says how long a client has no tools that comes again each time it is refused.
func (a *arguments) untilTools(ctx context.Context, connect func() client) string {
	begin, unreached, last := time.Now(), time.Duration(0), error(nil)
	for time.Since(begin) < a.Timeout {
		c := connect()
		err := openAndList(ctx, c, a.Timeout)
		c.close()
		switch {
		case err == nil && last != nil:
			return fmt.Sprintf("%s, refused before that (%s)", seconds(time.Since(begin)), short(last))
		case err == nil && unreached > a.Boot/2:
			return seconds(time.Since(begin)) + ", takes no connection before"
		case err == nil:
			return seconds(time.Since(begin))
		case errors.Is(err, syscall.ECONNREFUSED):
			unreached = time.Since(begin)
			time.Sleep(pollEvery)
		default:
			last = err
			time.Sleep(againAfter)
		}
	}
	return fmt.Sprintf("none in %s: %s", seconds(a.Timeout), short(last))
}

// gatewayReconnects has a client of HTTP+SSE call a tool, lose its stream, open another one and call the tool
// there, without initialize.
func (a *arguments) gatewayReconnects(ctx context.Context, g gateway) (string, error) {
	return a.serving(g.sse, 0, func(start func() (*program, error), addr string) (string, error) {
		p, err := a.serves(start, addr)
		if err != nil {
			return "", err
		}
		defer p.stop()
		url := "http://" + addr + "/sse"
		first, err := newSSEClient(ctx, url, a.Timeout)
		if err != nil {
			return "", err
		}
		err = openAndList(ctx, first, a.Timeout)
		if err == nil {
			err = echoes(ctx, first, a.Timeout)
		}
		first.close()
		if err != nil {
			return "", err
		}
		second, err := newSSEClient(ctx, url, peerWait)
		if err != nil {
			return "no second stream: " + short(err), nil
		}
		defer second.close()
		if err := echoes(ctx, second, peerWait); err != nil {
			return "its call fails: " + short(err), nil
		}
		return "its call is answered", nil
	})
}

// gatewayAtOnce has two clients call at once, with the same ids, and says whether each gets its own answers, over
// both transports.
func (a *arguments) gatewayAtOnce(ctx context.Context, g gateway) (string, error) {
	var texts []string
	for _, t := range []struct {
		name, path string
		command    func(string, []string) []string
		transport  load.Transport
	}{{"HTTP+SSE", "/sse", g.sse, load.SSE}, {"Streamable HTTP", "/mcp", g.mcp, load.Streamable}} {
		text, err := a.serving(t.command, 0, func(start func() (*program, error), addr string) (string, error) {
			p, err := a.serves(start, addr)
			if err != nil {
				return "", err
			}
			defer p.stop()
			r, err := load.Run(ctx, "http://"+addr+t.path, load.Options{
				Transport: t.transport, Clients: 2, Calls: 400, InFlight: 4, Timeout: peerWait, Settle: againAfter,
			})
			switch {
			case err != nil:
				return short(err), nil
			case r.Verdict() == load.Clean:
				return "each gets its own answers", nil
			case r.Faults[load.Crossed] > 0:
				crossed := r.Faults[load.Crossed]
				return fmt.Sprintf("%d answers of %d calls reach the wrong client", crossed, r.Calls), nil
			}
			return fmt.Sprintf("%d of %d calls have no right answer", r.Calls-r.Answered, r.Calls), nil
		})
		if err != nil {
			return "", err
		}
		texts = append(texts, t.name+": "+text)
	}
	if _, first, _ := strings.Cut(texts[0], ": "); strings.HasSuffix(texts[1], ": "+first) {
		return first, nil
	}
	return strings.Join(texts, "; "), nil
}

// gatewayRestarts has a client of Streamable HTTP call a tool, starts the gateway again, and has the client call
// once more in its session.
func (a *arguments) gatewayRestarts(ctx context.Context, g gateway) (string, error) {
	return a.serving(g.mcp, 0, func(start func() (*program, error), addr string) (string, error) {
		p, err := a.serves(start, addr)
		if err != nil {
			return "", err
		}
		c := newHTTPClient("http://" + addr + "/mcp")
		defer c.close()
		if err = openAndList(ctx, c, a.Timeout); err == nil {
			err = echoes(ctx, c, a.Timeout)
		}
		p.stop()
		if err != nil {
			return "", err
		}
		if p, err = a.serves(start, addr); err != nil {
			return "", err
		}
		defer p.stop()
		if err := echoes(ctx, c, peerWait); err != nil {
			return "the next call fails: " + short(err), nil
		}
		return "the next call is answered", nil
	})
}

// bridgePeer is a program that clients start, in front of a remote server of the official Go SDK.
func (a *arguments) bridgePeer(name string, command func(url string) []string) peer {
	return peer{
		name:  name,
		boots: func(ctx context.Context) (string, error) { return a.bridgeBoots(ctx, command) },
		atOnce: func(ctx context.Context) (string, error) {
			return a.bridging(command, func(connect func() client, start func() (*program, error)) (string, error) {
				p, err := start()
				if err != nil {
					return "", err
				}
				defer p.stop()
				return a.bridgesAtOnce(ctx, connect)
			})
		},
		restarts: func(ctx context.Context) (string, error) { return a.bridgeRestarts(ctx, command) },
	}
}

// bridging passes on how to start a client that has started the program, and how to start the remote server.
func (a *arguments) bridging(command func(url string) []string,
	do func(connect func() client, start func() (*program, error)) (string, error),
) (string, error) {
	addr, _, state, err := newPlace()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(state)
	return do(
		func() client { return newStdioClient(command("http://"+addr+"/mcp"), state) },
		func() (*program, error) {
			p, err := startProgram([]string{a.binary("inprocess"), "--kind", "gosdk-stream", "--addr", addr}, state)
			if err != nil {
				return nil, err
			}
			return p.listens(addr, a.Timeout)
		})
}

// bridgeBoots starts the program first, and the remote server later.
func (a *arguments) bridgeBoots(ctx context.Context, command func(url string) []string) (string, error) {
	return a.bridging(command, func(connect func() client, start func() (*program, error)) (string, error) {
		started := make(chan error, 1)
		var remote *program
		go func() { // ends with the start
			time.Sleep(a.Boot)
			var err error
			remote, err = start()
			started <- err
		}()
		text := a.untilTools(ctx, connect)
		if err := <-started; err != nil {
			return "", err
		}
		remote.stop()
		return text, nil
	})
}

// bridgesAtOnce has two clients call at once, each with a program of its own.
func (a *arguments) bridgesAtOnce(ctx context.Context, connect func() client) (string, error) {
	failed := make(chan error, 2)
	for range cap(failed) {
		go func() { // ends with the calls
			c := connect()
			defer c.close()
			err := openAndList(ctx, c, a.Timeout)
			for range 50 {
				if err == nil {
					err = echoes(ctx, c, peerWait)
				}
			}
			failed <- err
		}()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			return "a call fails: " + short(err), nil
		}
	}
	return "each gets its own answers, from a process of its own", nil
}

// bridgeRestarts starts the remote server again between two calls.
func (a *arguments) bridgeRestarts(ctx context.Context, command func(url string) []string) (string, error) {
	return a.bridging(command, func(connect func() client, start func() (*program, error)) (string, error) {
		remote, err := start()
		if err != nil {
			return "", err
		}
		c := connect()
		defer c.close()
		if err = openAndList(ctx, c, a.Timeout); err == nil {
			err = echoes(ctx, c, a.Timeout)
		}
		remote.stop()
		if err != nil {
			return "", err
		}
		if remote, err = start(); err != nil {
			return "", err
		}
		defer remote.stop()
		for calls := range 3 {
			if err = echoes(ctx, c, peerWait); err == nil {
				if calls == 0 {
					return "the next call is answered", nil
				}
				return fmt.Sprintf("answered again after %d lost calls", calls), nil
			}
		}
		return "three calls fail: " + short(err), nil
	})
}

func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// short is an error in a cell of a table.
func short(err error) string {
	text := strings.NewReplacer("\n", " ", "|", "/").Replace(err.Error())
	if runes := []rune(text); len(runes) > 90 {
		text = string(runes[:90]) + "…"
	}
	return text
}

// freeAddr returns an address at which nothing listens, and its port.
func freeAddr() (addr, port string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	addr = l.Addr().String()
	_, port, err = net.SplitHostPort(addr)
	_ = l.Close() // for the program: nobody else gets this port so soon
	return addr, port, err
}
