package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// windows is how many clients come at once.
const windows = 10

// windowsPeer is a way to reach a server that wants a login.
type windowsPeer struct {
	bridge

	gateway bool // one program has all clients, over HTTP
}

// compareWindows prints how long ten clients wait for the tools of a server at which somebody is logged in, and how
// much memory their programs have then, as a table in Markdown.
func (a *arguments) compareWindows(ctx context.Context, w io.Writer) error {
	if a.Peers == "" {
		return errors.New("--mode windows needs --peers")
	}
	undo, err := actAsBrowser()
	if err != nil {
		return err
	}
	defer undo()
	peers := []windowsPeer{
		{bridge{"sse-server stdio --url", a.oursOnStdio}, false},
		{bridge{"sse-server stdio --connect", a.oursShared}, false},
		{bridge{"sse-server --url", a.oursOnStdio}, true},
		{bridge{"mcp-remote", a.mcpRemote}, false},
	}
	var text strings.Builder
	fmt.Fprintf(&text, "| %d clients of a server with a login | median s | last s | MB |\n|---|---|---|---|\n", windows)
	for _, p := range peers {
		var middle, last, memory []float64
		for range a.Rounds {
			_, err := a.atDesk(ctx, p.bridge, func(ctx context.Context, d *desk) (string, error) {
				waits, size, err := a.openWindows(ctx, d, p.gateway)
				if err == nil {
					middle, last = append(middle, median(waits)), append(last, waits[len(waits)-1])
					memory = append(memory, float64(size)/1e6)
				}
				return "", err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
		fmt.Fprintf(&text, "| %s | %.2f | %.2f | %.0f |\n", p.name, median(middle), median(last), median(memory))
	}
	_, err = io.WriteString(w, text.String())
	return err
}

// oursShared is the command of a client that shares one sse-server with others.
func (a *arguments) oursShared(url string) []string {
	return []string{a.binary("sse-server"), "stdio", "--connect", "http://127.0.0.1:8080/mcp", "--url", url}
}

// openWindows logs in, starts ten clients at once, and returns the seconds until each has its tools, in their order,
// and the bytes of memory of all programs.
func (a *arguments) openWindows(ctx context.Context, d *desk, isGateway bool) (waits []float64, size int, err error) {
	defer d.endAll()
	first := newStdioClient(a.loginCommand(d), d.home)
	err = hasTools(ctx, first, hasTime)
	first.close()
	if err != nil {
		return nil, 0, err
	}
	connect := d.start
	if isGateway {
		addr, port, err := freeAddr()
		if err != nil {
			return nil, 0, err
		}
		command := []string{a.binary("sse-server"), "--addr", "127.0.0.1:" + port, "--url", d.issuer.URL + "/mcp"}
		p, err := startProgram(command, d.home)
		if err == nil {
			p, err = p.listens(addr, a.Timeout)
		}
		if err != nil {
			return nil, 0, err
		}
		defer p.stop()
		connect = func() client { return newHTTPClient("http://" + addr + "/mcp") }
	}
	type got struct {
		seconds float64
		c       client
		err     error
	}
	all, begin := make(chan got, windows), time.Now()
	for range windows {
		go func() { // ends with the list
			c := connect()
			err := hasTools(ctx, c, hasTime)
			all <- got{time.Since(begin).Seconds(), c, err}
		}()
	}
	for range windows {
		one := <-all
		defer one.c.close()
		waits, err = append(waits, one.seconds), errors.Join(err, one.err)
	}
	time.Sleep(a.Rest)
	size, badRead := d.memory()
	return waits, size, errors.Join(err, badRead)
}

// loginCommand is the command with which the person logs in: the shared sse-server opens no browser.
func (a *arguments) loginCommand(d *desk) []string {
	if d.name == "mcp-remote" {
		return a.mcpRemote(d.issuer.URL + "/mcp")
	}
	return a.oursOnStdio(d.issuer.URL + "/mcp")
}

// processes returns the ids of all programs with this home: also of those that were started in the background.
func (d *desk) processes() (ids []int) {
	entries, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, entry := range entries {
		environ, err := os.ReadFile(entry)
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00HOME="+d.home+"\x00")) {
			continue
		}
		if id, err := strconv.Atoi(filepath.Base(filepath.Dir(entry))); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// memory returns the bytes of all programs. Pages that several of them share are counted once.
func (d *desk) memory() (sum int, err error) {
	for _, id := range d.processes() {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", id))
		if err != nil {
			return 0, err
		}
		for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
			if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == "Pss:" {
				kilobytes, err := strconv.Atoi(fields[1])
				if err != nil {
					return 0, err
				}
				sum += kilobytes << 10
			}
		}
	}
	return sum, nil
}

// endAll ends what was started in the background.
func (d *desk) endAll() {
	for _, id := range d.processes() {
		_ = syscall.Kill(id, syscall.SIGTERM) // it may have ended
	}
	for end := time.Now().Add(killAfter); len(d.processes()) > 0 && time.Now().Before(end); {
		time.Sleep(pollEvery)
	}
}
