package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/pause"
)

const (
	startLockFile = "start.lock"
	flightKey     = "recovery"
	lookPause     = 10 * time.Millisecond
	lockPause     = 20 * time.Millisecond
	maxStarts     = 5 // of daemons that are killed before they are healthy
)

// find returns the daemon to send a request to: the known one, or one that a recovery
// brings back. The recovery goes on when ctx ends: the next call needs it too.
func (c *Client) find(ctx context.Context) (discovery.Record, error) {
	record, ok := c.running()
	if known := c.known.Load(); ok && known != nil && known.Same(record) {
		return record, nil
	}
	result := c.flight.DoChan(flightKey, func() (any, error) { return c.recover() })
	select {
	case r := <-result:
		record, _ = r.Val.(discovery.Record)
		return record, r.Err
	case <-ctx.Done():
		return record, context.Cause(ctx)
	}
}

// recover brings a healthy daemon up. It holds the start lock meanwhile, so that one
// process at a time looks, kills and starts.
func (c *Client) recover() (record discovery.Record, err error) {
	ctx, cancel := context.WithTimeout(c.life, 4*(c.opts.StartTimeout+c.opts.HangTimeout))
	defer cancel()
	defer func() {
		if c.life.Err() != nil {
			err = errClosed
		}
	}()
	if c.opts.NoStart {
		return c.findRunning(ctx)
	}
	if ctx.Err() != nil {
		return record, errClosed
	}
	if err := discovery.MakeDir(c.opts.StateDir); err != nil {
		return record, stateError(c.opts.StateDir, err)
	}
	lock := flock.New(filepath.Join(c.opts.StateDir, startLockFile),
		flock.SetFlag(os.O_CREATE|os.O_RDWR|discovery.NoFollow))
	switch _, err := lock.TryLockContext(ctx, lockPause); {
	case err != nil && ctx.Err() != nil:
		return record, &DownError{Reason: "another process has been starting it for too long",
			Advice: "end that process, which holds " + lock.Path(), Err: err}
	case err != nil:
		return record, stateError(c.opts.StateDir, err)
	}
	defer func() { _ = lock.Close() }() // it cannot fail in a way that matters: the file is only a lock
	if c.child != nil && c.child.exited() {
		c.child = nil // else it needed more time than the recovery before gave it
	}
	r := &recovery{Client: c, deadline: time.Now().Add(c.opts.StartTimeout)}
	for {
		seen := r.look(ctx)
		if seen.state == stateHealthy {
			if log, _, err := openLog(c.logPath()); err == nil { // which may have become long
				_ = log.Close()
			}
			c.child = nil
			c.known.Store(&seen.record)
			return seen.record, nil
		}
		if err := r.step(seen); err != nil {
			return record, err
		}
		if !pause.For(ctx, lookPause) {
			return record, &DownError{Reason: "it did not become healthy in time", Advice: "look into " + r.logPath(),
				Err: context.Cause(ctx)}
		}
	}
}

func (c *Client) findRunning(ctx context.Context) (record discovery.Record, err error) {
	switch seen := c.look(ctx); seen.state {
	case stateHealthy:
		c.known.Store(&seen.record)
		return seen.record, nil
	case stateFailed:
		return record, seen.err
	case stateAbsent:
		return record, &DownError{Reason: "no daemon runs", Advice: `start one with "docsearch daemon"`}
	default:
		return record, &DownError{Reason: seen.err.Error(),
			Advice: "the next search replaces it; docsearch stop ends it", Err: seen.err}
	}
}

// recovery is one run of recover, under the start lock.
type recovery struct {
	*Client
	starts   int       // how many daemons it started
	deadline time.Time // for the present daemon to become healthy or end
}

// step acts on what was seen of a daemon that is not healthy.
func (r *recovery) step(seen sight) error {
	switch {
	case seen.state == stateFailed:
		return seen.err
	case seen.state == stateAbsent && (r.child == nil || r.child.exited()):
		return r.startNext() // else it is about to take the lock
	case seen.state == stateHangs && (r.child == nil || r.child.age() > r.opts.StartTimeout):
		r.kill(seen.record)
	}
	if time.Now().Before(r.deadline) {
		return nil
	}
	if r.child != nil {
		return r.child.giveUp(r.opts.StartTimeout)
	}
	if r.kill(seen.record) { // it was there before: the next step starts another
		r.deadline = time.Now().Add(r.opts.StartTimeout)
		return nil
	}
	return &DownError{
		Reason: fmt.Sprintf("a process holds %s, but no healthy daemon answers: %v",
			filepath.Join(r.opts.StateDir, "daemon.lock"), seen.err),
		Advice: "end the docsearch processes and try again", Err: seen.err}
}

// startNext starts a daemon. It fails if the one before gave up. One that was killed is
// started again, some times.
func (r *recovery) startNext() error {
	if r.child != nil && (!r.child.killed() || r.starts == maxStarts) {
		return r.child.failure()
	}
	child, err := r.start()
	if err != nil {
		return err
	}
	r.log.Info("daemon started", "pid", child.pid())
	r.child, r.deadline = child, time.Now().Add(r.opts.StartTimeout)
	r.starts++
	return nil
}

// kill ends the process of the record, if that still is the daemon that wrote it.
func (r *recovery) kill(record discovery.Record) bool {
	process, err := os.FindProcess(record.PID) // on Linux a handle of this very process
	if err != nil {
		return false
	}
	defer func() { _ = process.Release() }()
	if !record.Alive() || process.Kill() != nil {
		return false
	}
	r.log.Warn("killed a daemon that did not answer", "pid", record.PID)
	return true
}

// state is what a look at the state directory and the daemon finds.
type state int

const (
	stateAbsent  state = iota // no one holds the lock
	stateBusy                 // someone holds the lock and starts, stops or answers wrongly
	stateHangs                // the daemon says nothing
	stateHealthy              // the daemon answers
	stateFailed               // there is an error that waiting does not help
)

// sight is a state with its details.
type sight struct {
	state  state
	record discovery.Record // zero if there is none
	err    error            // why the daemon is not healthy
}

// look finds out what is with the daemon. Nothing but its lock shows that it runs: a
// record without a lock is stale, and what listens at its address is another program.
func (c *Client) look(ctx context.Context) sight {
	held, err := discovery.Held(c.opts.StateDir)
	if err != nil {
		return sight{state: stateFailed, err: stateError(c.opts.StateDir, err)}
	}
	if !held {
		return sight{state: stateAbsent}
	}
	record, err := discovery.Read(c.opts.StateDir)
	if err != nil {
		return sight{state: stateBusy, err: err}
	}
	if record.APIVersion != api.Version {
		return sight{stateFailed, record, &DownError{
			Reason: fmt.Sprintf("the daemon %s (pid %d) speaks version %d of the API, and this program version %d",
				record.Version, record.PID, record.APIVersion, api.Version),
			Advice: "end that daemon, or use the same version of docsearch everywhere"}}
	}
	health, err := c.health(ctx, record)
	says, no := errors.AsType[*APIError](err)
	switch {
	case errors.Is(err, errHangs):
		return sight{stateHangs, record, err}
	case no && !transient(says.Status):
		return sight{stateFailed, record, says}
	case err == nil && health.PID != record.PID:
		return sight{stateBusy, record, fmt.Errorf("another program answers at %s", record.Address)}
	case err != nil:
		return sight{stateBusy, record, err}
	}
	return sight{stateHealthy, record, nil}
}
