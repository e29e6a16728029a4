package background

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/private"
	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
)

const (
	// learnerAfter is how long a client waits before a process stands by: memory answers sooner, and so do
	// servers that boot fast.
	learnerAfter = 100 * time.Millisecond
	// lastLook bounds how long the session of a client that has left in order is waited for: clients that see no end
	// of the program send it a signal after 2 s.
	lastLook = 1500 * time.Millisecond
	// learnerLives bounds how long it waits until nobody uses the server, once its client has left: a later client
	// tells if it is still not known what the server says in an empty folder.
	learnerLives = 24 * time.Hour
	// learnerStays bounds how long it stands by once the client has that answer: what some servers say is not
	// remembered, and on a busy machine others take long to list all they have.
	learnerStays = time.Minute
)

// ErrInOrder is why a client is served no more that has ended its input, and has its answers.
var ErrInOrder = errors.New("the client has left in order")

// StandBy lets a process stand by while the client waits for the answer to its initialize, until what the server
// says is remembered, and beyond that while it is not known what the server says in an empty folder. It returns what
// keeps the process waiting, which the end of this one closes; nil if none waits. args are those of this program, and
// the log of the process is in dir.
func StandBy(ctx context.Context, client *Introduction, gw forprogram.Gateway, args []string, dir string,
	log *slog.Logger) io.Closer {
	var params json.RawMessage
	select {
	case params = <-client.asked:
	case <-ctx.Done():
		return nil
	}
	start := func() io.WriteCloser {
		learner, err := startLearner(args, params, dir)
		if err != nil {
			log.Warn("what the server says could not be learned", "err", err)
			return nil
		}
		return learner
	}
	var learner io.WriteCloser
	select {
	case <-client.answered: // soon: it will be remembered as soon
	case <-time.After(learnerAfter):
		learner = start()
	case <-ctx.Done():
		learner = start()
	}
	isOver := awaitLearned(ctx, client, gw, params)
	wants := gw.RemembersFor(params) && gw.WantsAnyFolder()
	switch {
	case learner == nil && !wants:
		return nil
	case learner == nil:
		if learner = start(); learner == nil {
			return nil
		}
	case !isOver:
		return learner
	}
	if !wants {
		_, _ = learner.Write([]byte("\n"))
		_ = learner.Close()
		return nil
	}
	_, _ = learner.Write([]byte(knownHere + "\n"))
	return learner
}

// awaitLearned waits until no process has to stand by. It reports false if ctx ended before, whose end may be
// that of this process. Once the client has left in order, its session still says what it has.
func awaitLearned(ctx context.Context, client *Introduction, gw forprogram.Gateway, params json.RawMessage) bool {
	select {
	case <-client.answered:
	case <-ctx.Done():
	}
	var last <-chan time.Time
	left, enough := ctx.Done(), time.After(learnerStays)
	tick := time.NewTicker(learnerAfter / 10)
	defer tick.Stop()
	for !gw.RemembersFor(params) {
		select {
		case <-tick.C:
		case <-enough:
			return true
		case <-left:
			if !errors.Is(context.Cause(ctx), ErrInOrder) {
				return false
			}
			left, last = nil, time.After(lastLook)
		case <-last:
			return client.isAnswered()
		}
	}
	return true
}

// learnerStart bounds how long anybody waits for the start of a process: the disk may hang.
const learnerStart = time.Second

// startLearner is runLearner, but does not wait for long.
func startLearner(args []string, params json.RawMessage, dir string) (io.WriteCloser, error) {
	type result struct {
		learner io.WriteCloser
		err     error
	}
	started, late := make(chan result), make(chan struct{})
	go func() { // ends with the disk
		learner, err := runLearner(args, params, dir)
		select {
		case started <- result{learner, err}:
		case <-late:
			if err == nil {
				_ = learner.Close() // this process may have ended by now, so it learns what is not known
			}
		}
	}()
	select {
	case r := <-started:
		return r.learner, r.err
	case <-time.After(learnerStart):
		close(late)
		return nil, fmt.Errorf("no process could be started within %v: the disk of %s does not answer", learnerStart,
			dir)
	}
}

// knownHere tells the process that stands by that its client has its answers from memory next time, so that it is only
// needed for the empty folder. An empty line tells it that it is not needed for that either.
const knownHere = "known here"

// runLearner starts a process that learns what the server says to clients with these params of initialize once the
// returned pipe is closed, and then what the server says in an empty folder. Lines that are written into it before say
// what is known. Its log is learn.log in a directory.
func runLearner(args []string, params json.RawMessage, dir string) (io.WriteCloser, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	at := slices.Index(args, "--")
	if at < 0 {
		at = len(args)
	}
	cmd := exec.Command(self, slices.Insert(slices.Clone(args), at, "--learn")...)
	cmd.SysProcAttr = detached()
	file, err := private.OpenFile(filepath.Join(dir, "learn.log"), os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd.Stderr = file
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd.Stdin = r
	_, err = w.Write(append(params, '\n')) // before the start: this process may be killed right after it
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	go func() { _ = cmd.Wait() }() // ends with the learner, or with this process
	return w, nil
}

// Learn waits for the end of stdin, and then has the server say what it says to a client with the params in the first
// line there, if that is not remembered, and then what may be told in any folder. It ends when an empty line comes, or
// with ctx, but it may wait for stdin and the disk for longer.
func Learn(ctx context.Context, stdin io.Reader, c *config.Config, s *config.Server, gw forprogram.Gateway) error {
	input := bufio.NewReader(stdin)
	params, err := input.ReadBytes('\n')
	if err != nil || c.StateDir == "" { // no process waits for its client
		return nil
	}
	line, err := input.ReadString('\n')
	isKnown := err == nil // else the client has left before its server has said all
	if line == "\n" {
		return nil
	}
	release, ok := gw.ReserveAnyFolder()
	if ok {
		defer release()
	}
	if isKnown && !ok { // another process stands by for the empty folder
		return nil
	}
	_, _ = io.Copy(io.Discard, input) // until the client has left
	one := flock.New(filepath.Join(c.StateDir, "learn-"+commandHash(c, s)+".lock"), flock.SetPermissions(0o600))
	err = alone(one, func() error { return gw.Learn(ctx, bytes.TrimSpace(params)) })
	if err != nil || !ok || !gw.WantsAnyFolder() {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, learnerLives)
	defer cancel()
	for isUsed := true; isUsed && err == nil && gw.AwaitUnused(ctx, time.Duration(c.Stdio.LearnAfter)) == nil; {
		err = alone(one, func() error { isUsed = gw.LearnInAnyFolder(ctx); return nil })
	}
	return err
}

// alone has a server started, whose timeouts bound that, unless another process does it: what else is to be learned of
// the server meanwhile is not.
func alone(one *flock.Flock, start func() error) error {
	if locked, err := one.TryLock(); !locked {
		return err
	}
	defer one.Close() // the file stays: whoever has opened it may hold it next
	return start()
}

// commandHash names the command of a server, whatever its folder and its variables, in the name of a file, of which
// there are 65,536: of two that share one, one may not be learned.
func commandHash(c *config.Config, s *config.Server) string {
	name := c.Title(s)
	if command, ok := s.Upstream().(stdio.Command); ok {
		name = command.Identity().Command
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:2])
}
