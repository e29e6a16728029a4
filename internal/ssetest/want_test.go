package ssetest_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// faults counts what would fail a test.
type faults struct {
	testing.TB
	n int
}

func (f *faults) Helper()               {}
func (f *faults) Errorf(string, ...any) { f.n++ }

func TestWant(t *testing.T) {
	wrapped := fmt.Errorf("read: %w", io.EOF)
	good, bad := &faults{TB: t}, &faults{TB: t}
	for f, want := range map[*faults]any{good: 1.0, bad: 2} {
		ssetest.Want(f, "", 1, want)
	}
	ssetest.Want(bad, "", []string{"a b"}, []string{"a", "b"})
	ssetest.Want(bad, "", []string{"a b", "c"}, []string{"a", "b c"})
	ssetest.Want(bad, "", (*faults)(nil), nil)
	ssetest.Want(good, "", []any{1, "a"}, []any{1.0, "a"})
	ssetest.WantText(good, "", wrapped, "read", "EOF")
	ssetest.WantText(bad, "", error(nil), "read", "EOF")
	ssetest.WantError(good, "", wrapped, io.EOF)
	ssetest.WantError(bad, "", nil, io.EOF)
	j := ssetest.NewJournal(t)
	go j.Add("b %d", 1)
	j.Await(1, "b")
	j.Add("a")
	ssetest.WantLines(good, j.Lines(), []string{"a", "b 1"})
	ssetest.WantLines(bad, j.Lines(), []string{"a", "a", "b 1"})
	if good.n != 0 || bad.n != 8 {
		t.Errorf("%d faults of what is wanted, %d of what is not", good.n, bad.n)
	}
}
