package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// streamURL is the line on which a server says where its stream is.
var streamURL = regexp.MustCompile(`^ +(https?://\S+/sse)$`)

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

// start starts a server and returns when it has printed its URL.
func start(name string, command []string, timeout time.Duration) (*process, error) {
	p := &process{name: name, cmd: exec.Command(command[0], command[1:]...)}
	lines, stdout := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = stdout, &p.errors, time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	found := make(chan string, 1)
	p.wg.Go(func() { // ends with the process, which stop ends
		p.err = p.cmd.Wait()
		_ = stdout.Close()
	})
	p.wg.Go(func() { findURL(lines, found) }) // ends with the pipe
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

// findURL sends the first URL of a stream, or closes found without it, and reads on
// to the end: a server must not wait for its stdout.
func findURL(stdout io.Reader, found chan<- string) {
	defer close(found)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if m := streamURL.FindStringSubmatch(lines.Text()); m != nil {
			found <- m[1]
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
