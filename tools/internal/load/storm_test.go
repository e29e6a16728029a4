package load_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

func TestStormOpensAStreamForEachFewCalls(t *testing.T) {
	s := (&fakeServer{}).serve(t)
	samples := 0
	opts := quick()
	opts.Sample = func() { samples++ }
	r, err := load.Storm(t.Context(), s.url, opts)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict() != load.Clean || r.Calls != 160 || r.Answered != 160 || r.PerSecond <= 0 || samples != 2 {
		t.Errorf("report = %+v after %d samples, want 160 right answers and 2 samples", r, samples)
	}
	if opened := s.count(); opened != 81 {
		t.Errorf("%d streams were opened, want 80 and the scout's", opened)
	}
}

func TestStormCountsStreamsThatDoNotOpen(t *testing.T) {
	s := (&fakeServer{refuseFrom: 20}).serve(t)
	r, err := load.Storm(t.Context(), s.url, quick())
	if err != nil {
		t.Fatal(err)
	}
	if r.Faults[load.Cut] == 0 || r.Verdict() != load.Faulty {
		t.Errorf("report = %+v, want streams that were cut", r)
	}
}

func TestHold(t *testing.T) {
	s := (&fakeServer{}).serve(t)
	release, err := load.Hold(t.Context(), s.url, load.Options{Clients: 2, Timeout: 20 * time.Second})
	if err != nil || s.openNow() != 2 {
		t.Fatalf("%d streams are open, %v, want 2", s.openNow(), err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	s = (&fakeServer{}).serve(t)
	if release, err = load.Hold(t.Context(), s.url, load.Options{Clients: 2, Timeout: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	s.cutOne()
	if err := release(); err == nil || !strings.Contains(err.Error(), "ping of client") {
		t.Errorf("release = %v, want a client without an answer", err)
	}
	s = (&fakeServer{refuseFrom: 3}).serve(t)
	for url, opts := range map[string]load.Options{s.url: quick(), "ftp://x": quick(), s.url + "?": {Payload: -1}} {
		if _, err := load.Hold(t.Context(), url, opts); err == nil {
			t.Errorf("Hold(%s, %+v) did not fail", url, opts)
		}
	}
}

func TestPayload(t *testing.T) {
	opts := quick()
	opts.Payload = 5000
	short := 0
	s := (&fakeServer{call: func(s *fakeServer, from *link, r request) {
		if s.calls == 20 {
			short++
			s.text(from, r.ID, r.secret()[:100])
			return
		}
		s.echo(from, r)
	}}).serve(t)
	r := mustRun(t, s.url, opts)
	if r.Answered != 159 || r.Faults[load.Unmarked] != 1 || short != 1 {
		t.Errorf("report = %+v, want 159 right answers and one that is too short", r)
	}
}
