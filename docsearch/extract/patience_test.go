package extract

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/pdftest"
)

func TestTimeoutDependsOnTheSize(t *testing.T) {
	p := patience{least: leastTimeout, most: 30 * time.Second}
	for size, want := range map[int]time.Duration{0: 10 * time.Second, 1 << 20: 15 * time.Second, 4 << 20: 30 * time.Second, 1 << 30: 30 * time.Second} {
		if got := p.timeout(size, time.Now()); got != want {
			t.Errorf("%d bytes: got %v, want %v", size, got, want)
		}
	}
}

func TestTimeoutsInARow(t *testing.T) {
	p := patience{least: leastTimeout, most: 30 * time.Second}
	now := time.Now()
	wantTimeout := func(want time.Duration) {
		t.Helper()
		if got := p.timeout(0, now); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	const full, brief = leastTimeout, briefTimeout
	for range rowTimeouts {
		wantTimeout(full)
		p.note(true, now)
	}
	wantTimeout(brief)
	now = now.Add(briefPeriod / 2)
	p.note(true, now) // does not prolong it
	now = now.Add(briefPeriod / 2)
	wantTimeout(full)
	p.note(true, now)
	wantTimeout(brief)
	p.note(false, now)
	wantTimeout(full)
}

func TestThousandHostilePDFsEndSoon(t *testing.T) {
	p := patience{least: leastTimeout, most: 30 * time.Second}
	start := time.Now()
	now := start
	for range 1000 {
		now = now.Add(p.timeout(16<<20, now))
		p.note(true, now)
	}
	if took := now.Sub(start); took > time.Hour {
		t.Errorf("they take %v, want an hour at most", took)
	}
}

func TestExtractorHasPatience(t *testing.T) {
	t.Parallel()
	e := withWorker(t, "stays", Options{})
	e.patience.row, e.patience.until = rowTimeouts-1, time.Now().Add(time.Hour)
	_, err := e.Extract(t.Context(), "a.pdf", pdftest.OnePage(""))
	if wantReason(t, err, ReasonTimeout); err != nil && !strings.Contains(err.Error(), "longer than "+briefTimeout.String()) {
		t.Errorf("got %v, want a timeout of %v", err, briefTimeout)
	}
	if e.patience.row != rowTimeouts {
		t.Errorf("%d timeouts in a row, want %d", e.patience.row, rowTimeouts)
	}
}
