package background

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/environ"
	"github.com/mcp-sse/mcp-sse/internal/private"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Shared is the server behind sse-server stdio --connect: an sse-server that other programs of this user
// share. Each session first makes sure that it is there, so it may have ended meanwhile.
//
//	does the socket of this name answer? ── yes ──▶ is it the same? ── yes ──▶ connect
//	     │ no                                            └ no ──▶ an error says what differs
//	take the lock to start one ── ask again ── yes ──▶ …
//	     │ no
//	start sse-server, in a process group of its own ── wait for its answer ──▶ …
type Shared struct {
	// OpenBrowser opens an address in the browser of the person here, without waiting; nil: there is none. It is set
	// before the first session.
	OpenBrowser func(address string) error

	at     *url.URL          // its name
	server remember.Identity // of the server behind it
	config *config.Config
	parts  map[string]string
	args   []string // of the program
	socket string
	client *http.Client // of the socket
	dir    string       // of the log
	log    *slog.Logger
	// newest is a program that has read the file since; empty: none has. All that share the socket have the same.
	newest *atomic.Pointer[Shared]
}

// Connect returns the server at the name of --connect in c, which is an upstream.Upstream. up is the server behind
// it. It connects to nothing yet.
func Connect(c *config.Config, up upstream.Upstream, log *slog.Logger) (*Shared, error) {
	// By the port alone: localhost and 127.0.0.1 are one name.
	socket, err := SocketOf(c)
	if err != nil {
		return nil, err
	}
	var server remember.Identity
	if command, ok := up.(stdio.Command); ok {
		server = command.Identity()
	}
	if c.ConnectsToFile() { // whose servers do not run here
		server = remember.Identity{Server: c.Config}
		if whole, err := filepath.Abs(c.Config); err == nil {
			server.Server = whole
		}
	}
	return &Shared{
		at: c.Connect, server: server, config: c, parts: PartsOf(c, c.DaemonArgs), args: c.DaemonArgs,
		socket: socket, dir: c.StateDir, log: log, newest: new(atomic.Pointer[Shared]),
		client: &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialShared(ctx, socket)
			},
			IdleConnTimeout: idleSocket, MaxIdleConnsPerHost: 64,
		}},
	}, nil
}

// dialShared connects to a socket of this user.
func dialShared(ctx context.Context, socket string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	if err := checkPeer(conn.(*net.UnixConn)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// idleSocket is how long an idle connection to the socket is kept. The other side keeps it for longer.
const idleSocket = 30 * time.Second

// Dial starts the daemon if it is not there, and opens a session with it.
func (s *Shared) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	now, broken := s.renewed()
	who, err := now.ensure(ctx)
	switch {
	case err != nil:
	case slices.Contains(now.config.Parents, environ.Parent(who.PID, now.at.Path)):
		err = errConnectsToItself
	case broken == nil:
		who, err = now.same(ctx, who)
	case who.differenceFrom(now.parts) != nil: // of what the file says now nobody can say whether it differs
		err = broken
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", now.at, err)
	}
	// With a handshake: each window has a session of its own, and sees what the server itself says.
	conn, err := upstream.URL{Address: now.at.String(), Transport: upstream.TransportStreamable, Client: now.client,
		Header: http.Header{instanceHeader: {who.Instance}}}.Dial(ctx)
	session, ok := conn.(jsonrpc.Attributed)
	if err != nil || !ok || now.OpenBrowser == nil || asker.FromContext(ctx) == nil { // a renewal has no person
		return conn, err
	}
	stop, err := now.lend(ctx, who)
	if err != nil { // clients get links
		s.log.Warn("browser not opened", "err", fmt.Errorf("the shared sse-server cannot ask for it: %w", err))
		return conn, nil
	}
	return &lending{session, stop}, nil
}

// renewed returns a program that wants the sse-server of the file as it is now: the window may have started before
// somebody changed the file, and the shared one has read it again since. If the file cannot be read, it returns the
// program of before and the error: the shared one keeps what it has, too. A file that has not changed is not loaded
// again, which runs the programs that print its secrets.
func (s *Shared) renewed() (*Shared, error) {
	if newest := s.newest.Load(); newest != nil {
		s = newest
	}
	if !s.config.ConnectsToFile() || !s.config.HasChanged() {
		return s, nil
	}
	c, err := s.config.Again()
	if err != nil {
		return s, err
	}
	next := *s
	next.at, next.config, next.parts, next.args = c.Connect, c, PartsOf(c, c.DaemonArgs), c.DaemonArgs
	s.newest.Store(&next)
	return &next, nil
}

// same returns the greeting of the sse-server that listens, if it is the one to share. The sse-server of a file reads
// the file again when it has changed: same waits for that.
func (s *Shared) same(ctx context.Context, who *greeting) (*greeting, error) {
	err := who.differenceFrom(s.parts)
	if err == nil || !s.config.ConnectsToFile() {
		return who, err
	}
	ctx, cancel := context.WithTimeout(ctx, reloadTime)
	defer cancel()
	poll := time.NewTicker(10 * daemonPoll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, err
		case <-poll.C:
		}
		next, failed := s.ask(ctx)
		if failed != nil || next == nil {
			return nil, err
		}
		if next.differenceFrom(s.parts) == nil {
			return next, nil
		}
	}
}

// reloadTime bounds the wait until the sse-server of a file has read it again.
const reloadTime = 3 * time.Second

// errConnectsToItself reports that the sse-server of a name has started this one, as its own server at that path. It
// would start another one for each session. Levels alone do not tell: all of these have the same.
var errConnectsToItself = errors.New("the sse-server of this name has started this one: " + config.NameTheServer +
	", or unset " + environ.ParentsVariable + " if this one only runs in a terminal that it has opened")

// ensure returns once the daemon says who it is.
func (s *Shared) ensure(ctx context.Context) (*greeting, error) {
	if who, err := s.ask(ctx); who != nil || err != nil {
		return who, err
	}
	ctx, cancel := context.WithTimeout(ctx, daemonStart)
	defer cancel()
	lock := flock.New(s.socket+".start", flock.SetPermissions(0o600))
	if locked, err := lock.TryLockContext(ctx, daemonPoll); !locked {
		return nil, fmt.Errorf("another program is starting it: %w", err)
	}
	defer lock.Close()
	if who, err := s.ask(ctx); who != nil || err != nil {
		return who, err
	}
	who, err := s.start(ctx)
	if errors.Is(err, errKilled) { // as by a script that ends all that are there: once more
		who, err = s.start(ctx)
	}
	return who, err
}

// errKilled reports that a signal has ended a shared sse-server before it answered.
var errKilled = errors.New("sse-server was killed at its start")

// ask returns who listens at the socket; nil if nobody does.
func (s *Shared) ask(ctx context.Context) (*greeting, error) {
	ctx, cancel := context.WithTimeout(ctx, greetingTime)
	defer cancel()
	if err := private.CheckClosed(filepath.Dir(s.socket)); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.at.Host+greetingPath, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(r)
	switch {
	case errors.Is(err, errOtherUser):
		return nil, fmt.Errorf("%s: %w", s.socket, errOtherUser)
	case err != nil && ctx.Err() != nil:
		return nil, errors.New("the sse-server of this name does not answer")
	case err != nil: // also if it ends just now: the locks keep two from being there
		return nil, nil
	}
	defer response.Body.Close()
	var who greeting
	if err := json.NewDecoder(io.LimitReader(response.Body, maxGreeting)).Decode(&who); err != nil ||
		who.Instance == "" {
		return nil, fmt.Errorf("the sse-server of this name gives no sensible answer (%s): stop it, "+
			"or give --connect another port", response.Status)
	}
	return &who, nil
}

const (
	// greetingTime bounds the wait for who listens, and maxGreeting the bytes of the answer.
	greetingTime = 5 * time.Second
	maxGreeting  = 8 << 20
)

// start starts the daemon, which outlives this process, and waits until it answers.
func (s *Shared) start(ctx context.Context) (*greeting, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	logFile := filepath.Join(s.dir, "daemon-"+s.at.Port()+".log")
	output, err := private.OpenFile(logFile, os.O_APPEND)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	before, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{"--shared=" + s.socket}, s.args...)...)
	cmd.Env = append(inheritable(s.config, os.Environ()),
		environ.ParentsVariable+"="+strings.Join(s.config.Parents, ","))
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = output, output, detached()
	if s.config.ConnectsToFile() {
		cmd.Dir = s.config.DirOfFile()
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.log.Info("shared sse-server started", "name", s.at.String(), "socket", s.socket, "pid", cmd.Process.Pid, "log",
		logFile)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the daemon, or with this process
	poll := time.NewTicker(daemonPoll)
	defer poll.Stop()
	for {
		if who, err := s.ask(ctx); who != nil || err != nil {
			return who, err
		}
		select {
		case <-poll.C:
		case err := <-ended:
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && !exit.Exited() {
				return nil, fmt.Errorf("%w (%w): %s", errKilled, err, whyEnded(logFile, before))
			}
			return nil, fmt.Errorf("sse-server ended at once: %w: %s", errors.Join(err), whyEnded(logFile, before))
		case <-ctx.Done():
			return nil, fmt.Errorf("sse-server did not answer in %v: see %s", daemonStart, logFile)
		}
	}
}

// whyEnded returns the last line with which sse-server itself has ended, in what its log has after an offset. Others
// are not told: they may be those of a server, or of an earlier sse-server with other secrets.
func whyEnded(logFile string, offset int64) string {
	data, _ := os.ReadFile(logFile) // bounded by maxDaemonLog
	why := "see " + logFile
	for line := range bytes.Lines(data[min(offset, int64(len(data))):]) {
		if own, is := bytes.CutPrefix(line, []byte("sse-server: ")); is {
			why = string(bytes.TrimSpace(own))
		}
	}
	return why
}

// Identity is that of the server behind the daemon, of this name.
func (s *Shared) Identity() remember.Identity {
	return remember.Identity{Server: s.at.String() + " " + s.server.Server, Place: s.server.Place}
}
