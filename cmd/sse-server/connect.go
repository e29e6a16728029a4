package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// sharedDaemon is the server behind sse-server stdio --connect: an sse-server that other programs
// connect to as well. Each session first makes sure that it is there, so it may have ended meanwhile.
//
//	is there an answer at the URL? ── yes ──▶ connect
//	     │ no
//	take the lock of this address ── ask again ── yes ──▶ connect
//	     │ no
//	start sse-server, in a process group of its own ── wait for its answer ──▶ connect
type sharedDaemon struct {
	at     *url.URL
	server string   // the identity of the server behind it
	args   []string // of the program
	dir    string   // of the lock and the log
	log    *slog.Logger
}

// connectedGateway returns the gateway of sse-server stdio --connect. What is remembered of the server
// answers the client also before the daemon is there.
func connectedGateway(c *config.Config, s *config.Server, shared gateway.Options) (*gateway.Gateway, error) {
	up, options := served(c, s, shared)
	daemon := &sharedDaemon{at: c.Connect, args: c.DaemonArgs, dir: c.StateDir, log: shared.Logger}
	if command, ok := up.(upstream.Command); ok {
		daemon.server = command.Identity()
	}
	// These are for the daemon.
	options.Warm, options.Sessions, options.MaxInFlight, options.ForwardHeaders = 0, gateway.SessionsPerConnection, 0, nil
	return gateway.New(daemon, options)
}

const (
	// daemonStart bounds the start of the program. Its servers start later.
	daemonStart = 20 * time.Second
	// daemonPoll is the time between two questions whether it is there.
	daemonPoll = 10 * time.Millisecond
)

// Dial starts the daemon if it is not there, and opens a session with it.
func (s *sharedDaemon) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	err := s.ensure(ctx)
	if err == nil {
		err = s.checkIdentity()
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", s.at, err)
	}
	// With a handshake: each window has a session of its own, and sees what the server itself says.
	return upstream.URL{Address: s.at.String(), Transport: upstream.TransportStreamable}.Dial(ctx)
}

// ensure returns once the daemon answers.
func (s *sharedDaemon) ensure(ctx context.Context) error {
	if there, err := s.answers(ctx); there || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, daemonStart)
	defer cancel()
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	name := s.file("")
	lock := flock.New(name+".lock", flock.SetPermissions(0o600))
	if locked, err := lock.TryLockContext(ctx, daemonPoll); !locked {
		return fmt.Errorf("another program is starting it: %w", err)
	}
	defer lock.Close()
	if there, err := s.answers(ctx); there || err != nil {
		return err
	}
	return s.start(ctx, name+".log")
}

// file returns the path of a file about this address. It may have several names, and has one port.
func (s *sharedDaemon) file(ending string) string { return sharedFile(s.dir, s.at.Port(), ending) }

func sharedFile(dir, port, ending string) string { return filepath.Join(dir, "daemon-"+port+ending) }

// noteShared keeps the identity and the pid of a shared sse-server that listens at the port now, where those who connect
// find it, until the returned function is called. Any other sse-server removes what an earlier one has left.
func noteShared(dir, port, identity string) (forget func()) {
	file := sharedFile(dir, port, ".identity")
	forget = func() { _ = os.Remove(file) }
	if dir == "" || identity == "" || os.WriteFile(file, fmt.Appendf(nil, "%s %d", identity, os.Getpid()), 0o600) != nil {
		forget()
	}
	return forget
}

// identity is what the file about the address says of the server that was started there.
func (s *sharedDaemon) identity() string {
	sum := sha256.Sum256([]byte(s.server + "\x00" + strings.Join(s.args, "\x00")))
	return hex.EncodeToString(sum[:])
}

// checkIdentity returns an error if another program has started the sse-server at the address with
// another command, environment or directory: its client would get the secrets of that one. About an
// sse-server that a person has started there is no such file, and everyone may use it.
func (s *sharedDaemon) checkIdentity() error {
	data, err := os.ReadFile(s.file(".identity"))
	started, pid, _ := strings.Cut(string(data), " ")
	if err != nil || started == s.identity() {
		return nil
	}
	stop := "stop it"
	if pid != "" {
		stop += " (kill " + pid + ")"
	}
	return fmt.Errorf("the sse-server there was started with another command, options, environment or directory, or the program has changed since: %s, or give --connect another port", stop)
}

// answers reports whether an sse-server is at the address. It fails if another HTTP server is.
func (s *sharedDaemon) answers(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.at.Host+"/healthz", nil)
	if err != nil {
		return false, err
	}
	response, err := http.DefaultClient.Do(r)
	switch {
	case err != nil && ctx.Err() != nil:
		return false, errors.New("the program there does not answer")
	case err != nil:
		return false, nil
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	var health struct{ Status string }
	isOK := response.StatusCode == http.StatusOK && json.Unmarshal(body, &health) == nil && health.Status == "ok"
	if !isOK && !bytes.Contains(body, []byte(isOnAdmin)) { // an sse-server has it there or here
		return false, fmt.Errorf("another program answers there (%s): use another port", response.Status)
	}
	return true, nil
}

// maxDaemonLog bounds the log of a shared sse-server, in bytes.
const maxDaemonLog = 8 << 20

// boundLog empties the log file of a shared sse-server that has grown too large.
func boundLog(to io.Writer, log *slog.Logger) {
	file, ok := to.(*os.File)
	if !ok {
		return
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > maxDaemonLog && file.Truncate(0) == nil {
		log.Info("log file emptied: it had grown too large", "bytes", info.Size())
	}
}

// start starts the daemon, which outlives this process, and waits until it answers.
func (s *sharedDaemon) start(ctx context.Context, logFile string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	output, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	cmd := exec.Command(self, append([]string{"--shared-identity=" + s.identity()}, s.args...)...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = output, output, detached()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.log.Info("shared sse-server started", "url", s.at.String(), "pid", cmd.Process.Pid, "log", logFile)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the daemon, or with this process
	poll := time.NewTicker(daemonPoll)
	defer poll.Stop()
	for {
		if there, err := s.answers(ctx); there || err != nil {
			return err
		}
		select {
		case <-poll.C:
		case err := <-ended:
			return fmt.Errorf("sse-server ended at once: %w: %s", errors.Join(err), lastLine(logFile))
		case <-ctx.Done():
			return fmt.Errorf("sse-server did not answer in %v: see %s", daemonStart, logFile)
		}
	}
}

// lastLine returns the last line of a file.
func lastLine(file string) string {
	data, _ := os.ReadFile(file) // bounded by maxDaemonLog
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	return string(lines[len(lines)-1])
}

// awaitUnused waits until nobody has been connected for a while. connections returns how many clients
// are.
func awaitUnused(ctx context.Context, limit time.Duration, connections func() int) {
	tick := time.NewTicker(min(limit, time.Minute) / 4)
	defer tick.Stop()
	for last := time.Now(); time.Since(last) < limit; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if connections() > 0 {
			last = time.Now()
		}
	}
}

// Identity is that of the server behind the daemon, at this address.
func (s *sharedDaemon) Identity() string { return s.at.String() + " " + s.server }
