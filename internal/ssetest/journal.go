package ssetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience is how long a test waits for what must happen. It is long because a machine may have much
// else to do; no test waits it out when all is well.
const Patience = 5 * time.Minute

// Journal holds what the clients and servers of a test saw. It is safe for concurrent use.
type Journal struct {
	t     testing.TB
	mu    sync.Mutex
	lines []string      // guarded by mu
	added chan struct{} // guarded by mu; closed when there is another line
}

// NewJournal returns an empty journal.
func NewJournal(t testing.TB) *Journal { return &Journal{t: t} }

// Add notes what someone saw.
func (j *Journal) Add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
	if j.added != nil {
		close(j.added)
		j.added = nil
	}
}

// Await waits for n lines that have this text.
func (j *Journal) Await(n int, text string) {
	j.t.Helper()
	late := time.After(Patience)
	for {
		j.mu.Lock()
		if j.added == nil {
			j.added = make(chan struct{})
		}
		added, found := j.added, len(slices.DeleteFunc(slices.Clone(j.lines),
			func(line string) bool { return !strings.Contains(line, text) }))
		j.mu.Unlock()
		if found >= n {
			return
		}
		select {
		case <-added:
		case <-late:
			j.t.Errorf("no %d × %q among\n%s", n, text, strings.Join(j.Lines(), "\n"))
			return
		}
	}
}

// Lines returns all lines, sorted: an order that does not depend on time.
func (j *Journal) Lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Sorted(slices.Values(j.lines))
}

// WantLines checks that two have seen the same, each line as often.
func WantLines(t testing.TB, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got alone\n%s\n\nwant alone\n%s", without(got, want), without(want, got))
	}
}

// without returns the lines of a without those of b.
func without(a, b []string) string {
	left := slices.Clone(a)
	for _, line := range b {
		if i := slices.Index(left, line); i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
	}
	return strings.Join(left, "\n")
}
