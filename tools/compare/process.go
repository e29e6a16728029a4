package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// printedURL is the line on which a server says where it is.
var printedURL = regexp.MustCompile(`^ +(https?://\S+)/(?:mcp|sse)$`)

// killAfter is how long a server has to end by itself.
const killAfter = 15 * time.Second

// process is a server under test.
type process struct {
	name, url string // url is that of the stream
	cmd       *exec.Cmd
	wg        sync.WaitGroup
	// Of the end, read after wg: its stderr, and how it ended.
	errors bytes.Buffer
	err    error
}

// endpoint is the URL of a transport.
func (p *process) endpoint(transport string) string {
	if transport == streamable {
		return strings.TrimSuffix(p.url, "/sse") + "/mcp"
	}
	return p.url
}

// launch starts a server, and sends the URL that it prints, if it does.
func launch(name string, command []string) (p *process, found <-chan string, err error) {
	p = &process{name: name, cmd: exec.Command(command[0], command[1:]...)}
	lines, stdout := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = stdout, &p.errors, time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("start %s: %w", name, err)
	}
	urls := make(chan string, 1)
	p.wg.Go(func() { // ends with the process, which stop ends
		p.err = p.cmd.Wait()
		_ = stdout.Close()
	})
	p.wg.Go(func() { findURL(lines, urls) }) // ends with the pipe
	return p, urls, nil
}

// start starts a server and returns when it has printed its URL.
func start(name string, command []string, timeout time.Duration) (*process, error) {
	p, found, err := launch(name, command)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case p.url = <-found:
	case <-timer.C:
	}
	if p.url == "" {
		return nil, errors.Join(fmt.Errorf("%s did not say where it is", name), p.stop())
	}
	return p, nil
}

// startAt starts a server that does not say where it is, on a free port, and returns when
// it takes connections.
func startAt(name string, command func(port string) []string, timeout time.Duration) (*process, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().(*net.TCPAddr)
	_ = l.Close() // for the server: nobody else gets this port so soon
	p, ended, err := launch(name, command(strconv.Itoa(addr.Port)))
	if err != nil {
		return nil, err
	}
	p.url = "http://" + addr.String() + "/sse"
	for end := time.Now().Add(timeout); time.Now().Before(end); {
		if conn, err := net.DialTimeout("tcp", addr.String(), time.Second); err == nil {
			return p, conn.Close()
		}
		select {
		case _, open := <-ended:
			if open {
				continue // it has printed its URL, which is none of ours
			}
			return nil, errors.Join(fmt.Errorf("%s has ended", name), p.stop())
		case <-time.After(pollEvery):
		}
	}
	return nil, errors.Join(fmt.Errorf("%s takes no connections", name), p.stop())
}

// stop ends the server and waits for it. It fails when the server does not end
// well.
func (p *process) stop() error {
	killer := time.AfterFunc(killAfter, func() { _ = p.cmd.Process.Kill() })
	defer killer.Stop()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // if it has ended before, Wait says how
	p.wg.Wait()
	if p.err != nil {
		return fmt.Errorf("end of %s: %w: %s", p.name, p.err, &p.errors)
	}
	return nil
}

// cpu returns the CPU time of a process that has ended, and of its children.
func (p *process) cpu() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// findURL sends the first URL that is printed, that of its stream, or closes found without it, and reads on
// to the end: a server must not wait for its stdout.
func findURL(stdout io.Reader, found chan<- string) {
	defer close(found)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if m := printedURL.FindStringSubmatch(lines.Text()); m != nil {
			found <- m[1] + "/sse"
			break
		}
	}
	_, _ = io.Copy(io.Discard, stdout) // its end is the process's
}

// stopAll stops all processes.
func stopAll(all []*process) error {
	var faults []error
	for _, p := range all {
		faults = append(faults, p.stop())
	}
	return errors.Join(faults...)
}
