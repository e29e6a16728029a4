package sse_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/sse"
)

// The table of what the library does stands in engine.go, which alone knows the library, and each row names its test.
func TestEachTrapHasATest(t *testing.T) {
	files, err := filepath.Glob("*.go")
	ssetest.Must(t, err)
	var engine, tests string
	for _, name := range files {
		data, err := os.ReadFile(name)
		ssetest.Must(t, err)
		switch text := string(data); {
		case strings.HasSuffix(name, "_test.go"):
			tests += text
		case name == "engine.go":
			engine = text
		case strings.Contains(text, `"github.com/r3labs/sse`):
			t.Errorf("%s imports the library: engine.go alone does", name)
		}
	}
	comment, _, _ := strings.Cut(engine, "\ntype engine struct")
	rows := strings.Split(comment, "\n//   - ")[1:]
	if len(rows) < 15 {
		t.Errorf("engine.go has %d rows", len(rows))
	}
	for _, row := range rows {
		row, _, _ = strings.Cut(row, "\n//\n")
		test := regexp.MustCompile(`Test\w+$`).FindString(row)
		if test == "" || !strings.Contains(tests, "\nfunc "+test+"(t *testing.T)") {
			t.Errorf("the test %q is not there, of the row %q", test, row)
		}
	}
}

// A write that fails is the last one, although the library goes on.
func TestFirstWriteErrorEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{})
		g := f.open(t, "/sse")
		synctest.Wait()
		g.stall() // so that more events wait in the library
		for i := range 5 {
			ssetest.Must(t, g.c.Push(connstate.Event{Name: "message", Data: fmt.Appendf(nil, `{"n":%d}`, i)}))
			synctest.Wait()
		}
		written := g.text()
		g.fail(errGone)
		<-g.done
		ssetest.Want(t, "reason", <-f.backend.closed, connstate.ClosedWriteError)
		ssetest.Want(t, "written after the error", strings.TrimPrefix(g.text(), written), "")
		g.cancel()
	})
}

// The library keeps no event that has been written, and has room for few that have not.
func TestLibraryHoldsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{})
		library := f.Library()
		ssetest.Want(t, "places", library.BufferSize, sse.EngineBuffer)
		ssetest.Want(t, "makes streams on its own", library.AutoStream, false)
		g := f.open(t, "/sse")
		for range 100 {
			ssetest.Must(t, g.c.Send("", []byte(`{}`)))
		}
		synctest.Wait()
		ssetest.Want(t, "events that it keeps", len(library.CreateStream(g.c.ID()).Eventlog), 0)
		g.leave()
	})
}

// A lone event leaves at once. Events that come while it is written leave together.
func TestEventsShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{})
		g := f.open(t, "/sse")
		synctest.Wait()
		g.stall()
		before := g.count()
		for i := range sse.EngineBuffer - 1 {
			ssetest.Must(t, g.c.Push(connstate.Event{Name: "message", Data: fmt.Appendf(nil, `{"n":%d}`, i)}))
			synctest.Wait() // the first one is being written
		}
		g.resume()
		synctest.Wait()
		ssetest.Want(t, "writes", g.count()-before, 2)
		if got := parse(t, g.text()); len(got) != 2+sse.EngineBuffer-1 {
			t.Errorf("got %d events", len(got))
		}
		g.leave()
	})
}
