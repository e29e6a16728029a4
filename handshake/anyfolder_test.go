package handshake

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// noServer does not start.
type noServer struct{}

func (noServer) Dial(context.Context) (jsonrpc.Conn, error) { return nil, errors.New("there is none") }

// knows has a memory know what the server says in a place: only then anything is learned in an empty folder.
func knows(state string) {
	client, _ := remember.ClientOf(nil, remember.Principal(""))
	remember.Open(state, slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s", Place: "p"}).
		Learn(client, &remember.Answers{Initialize: `{"protocolVersion":"2025-11-25"}`, Learned: time.Now()})
}

// inEmptyFolder returns the memory of a program of what the server says in an empty folder.
func inEmptyFolder(state string) *remember.Server {
	return remember.Open(state, slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s", AnyFolder: "any"}).InAnyFolder()
}

// ofAnother returns the memory of a program of what another server says in an empty folder, which is known.
func ofAnother(state string) *remember.Server {
	of := remember.Open(state, slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "another", AnyFolder: "any"}).InAnyFolder()
	client, _ := remember.ClientOf(nil, remember.Principal(""))
	of.Learn(client, &remember.Answers{Initialize: `{"protocolVersion":"2025-11-25"}`, Learned: time.Now()})
	return of
}

// locksIn returns the locks of a program.
func locksIn(state string) *remember.Locks {
	return remember.NewLocks(state, "c", slog.New(slog.DiscardHandler))
}

// asked returns a supplier whose server does not start, and counts its starts in an empty folder.
func asked(state string, starts *int) *Supplier {
	return NewSupplier(nil, SupplierOptions{
		Params: Synthetic(ClientInfo{}), RememberFor: time.Hour, Locks: locksIn(state), Session: multiplex.Options{Logger: slog.New(slog.DiscardHandler)},
		AnyFolder: &AnyFolder{Memory: inEmptyFolder(state), In: func(string) upstream.Upstream { *starts++; return noServer{} }},
	})
}

// Servers start in empty folders one at a time, whichever programs they belong to.
func TestOneServerAtATimeIsInAnEmptyFolder(t *testing.T) {
	state := ssetest.PrivateDir(t)
	synctest.Test(t, func(t *testing.T) {
		knows(state)
		folder, err := ofAnother(state).EmptyFolder(t.Context(), locksIn(state), time.Hour) // another program has a server in one
		ssetest.Must(t, err)
		starts := 0
		s := asked(state, &starts)
		waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.LearnInAnyFolder(waiting)
		ssetest.Want(t, "starts while another one is there", starts, 0)
		folder.Remove(t.Context())
		time.Sleep(2 * time.Hour) // it is not tried again at once
		s.LearnInAnyFolder(t.Context())
		ssetest.Want(t, "starts then", starts, 1)
		s.Close()
		s.Wait()
	})
}

// Answers that another program has learned meanwhile are not learned again.
func TestWhatAnotherProgramLearnsInAnEmptyFolderIsKnown(t *testing.T) {
	state := ssetest.PrivateDir(t)
	synctest.Test(t, func(t *testing.T) {
		knows(state)
		folder, err := ofAnother(state).EmptyFolder(t.Context(), locksIn(state), time.Hour)
		ssetest.Must(t, err)
		starts := 0
		s := asked(state, &starts)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.LearnInAnyFolder(t.Context())
		}()
		synctest.Wait() // it waits for its turn
		own, _ := remember.ClientOf(nil, remember.Own)
		inEmptyFolder(state).Learn(own, &remember.Answers{Initialize: `{"protocolVersion":"2025-11-25"}`, Learned: time.Now().Add(-time.Second)})
		folder.Remove(t.Context())
		<-done
		ssetest.Want(t, "starts", starts, 0)
		s.Close()
		s.Wait()
	})
}

// abortable starts for ever, and notes Abort.
type abortable struct{ aborted *atomic.Bool }

func (a abortable) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (a abortable) Abort() { a.aborted.Store(true) }

// A program that exits without waiting kills what runs in the empty folder, too.
func TestAbortReachesTheServerInTheEmptyFolder(t *testing.T) {
	state := ssetest.PrivateDir(t)
	synctest.Test(t, func(t *testing.T) {
		knows(state)
		var there atomic.Bool
		s := NewSupplier(abortable{new(atomic.Bool)}, SupplierOptions{
			Params: Synthetic(ClientInfo{}), RememberFor: time.Hour, Locks: locksIn(state), StartTimeout: time.Minute,
			Session:   multiplex.Options{Logger: slog.New(slog.DiscardHandler)},
			AnyFolder: &AnyFolder{Memory: inEmptyFolder(state), In: func(string) upstream.Upstream { return abortable{&there} }},
		})
		go s.LearnInAnyFolder(t.Context())
		time.Sleep(time.Second)
		s.Abort()
		ssetest.Want(t, "the server in the empty folder was aborted", there.Load(), true)
		time.Sleep(5 * time.Minute)
		s.Close()
		s.Wait()
	})
}
