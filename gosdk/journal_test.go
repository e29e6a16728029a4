package gosdk_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// journal holds what clients and servers saw.
type journal struct {
	t     testing.TB
	mu    sync.Mutex
	added sync.Cond
	lines []string
}

func newJournal(t testing.TB) *journal {
	j := &journal{t: t}
	j.added.L = &j.mu
	return j
}

// add notes what someone saw.
func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
	j.added.Broadcast()
}

// await waits for n lines with that beginning.
func (j *journal) await(n int, beginning string) {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.added.Broadcast()
	})()
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.countLocked(beginning) < n {
		if ctx.Err() != nil {
			j.t.Errorf("no %d × %q among\n%s", n, beginning, strings.Join(j.lines, "\n"))
			return
		}
		j.added.Wait()
	}
}

func (j *journal) countLocked(beginning string) (n int) {
	for _, line := range j.lines {
		if strings.HasPrefix(line, beginning) {
			n++
		}
	}
	return n
}

// without returns the lines of a without those of b.
func without(a, b string) string {
	left := strings.Split(a, "\n")
	for line := range strings.SplitSeq(b, "\n") {
		if i := slices.Index(left, line); i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
	}
	return strings.Join(left, "\n")
}

// sorted returns all lines in an order that does not depend on time.
func (j *journal) sorted() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(slices.Sorted(slices.Values(j.lines)), "\n")
}
