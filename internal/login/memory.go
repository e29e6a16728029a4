package login

import (
	"context"
	"log/slog"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// learnTimeout bounds the wait for a process that refreshes the login: what is not learned now is learned at the next
// list.
const learnTimeout = time.Second

// Mark names the login of now, also one that has ended, for Learn. It is empty if nobody has logged in.
func (c Credentials) Mark() string {
	l, err := c.source().current()
	if err != nil || l == nil {
		return ""
	}
	return l.mark()
}

// Recall returns what the server said to such a client, or else what is nearest to that, with the login of now or one
// that has ended; nil if that is unknown. No other login has a part in it.
func (c Credentials) Recall(place string, client remember.Client, log *slog.Logger) *remember.Answers {
	s := c.source()
	l, err := s.look()
	if err != nil || l == nil {
		return nil
	}
	memory := s.store.memoryOf(l, place, log)
	if exact := memory.Answers(client); exact != nil {
		return exact
	}
	return memory.Nearest(client)
}

// Learn keeps what the server has said to such a client with the login of that mark, unless that is not the login of
// now. Lists that the client has not asked for this time stay. It waits for the disk.
func (c Credentials) Learn(mark, place string, client remember.Client, said remember.Answers, log *slog.Logger) {
	s := c.source()
	ctx, cancel := context.WithTimeout(context.Background(), learnTimeout)
	defer cancel()
	l, unlock, err := s.lockNewest(ctx) // nobody logs out meanwhile
	if err != nil || l == nil {
		return
	}
	defer unlock()
	if l.mark() != mark {
		return
	}
	memory := s.store.memoryOf(l, place, log)
	memory.Learn(client, said.With(memory.Answers(client)))
}
