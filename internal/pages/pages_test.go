package pages_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/pages"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A list is read to its end, and no further. Each page here is its nextCursor as JSON; the last one comes again.
func TestEndOfAList(t *testing.T) {
	for name, c := range map[string]struct {
		pages []string
		asked string // the params of each request
		err   string
	}{
		"one page":                {[]string{``}, `[]`, ""},
		"two pages":               {[]string{`"a"`, ``}, `[ {"cursor":"a"}]`, ""},
		"an empty cursor":         {[]string{`"a"`, `""`}, `[ {"cursor":"a"}]`, ""},
		"null":                    {[]string{`null`}, `[]`, ""},
		"a number is no cursor":   {[]string{`1`}, `[]`, ""},
		"the same cursor":         {[]string{`"a"`}, `[ {"cursor":"a"}]`, `the server returns the same nextCursor for each page: "a"`},
		"a circle":                {[]string{`"a"`, `"b"`, `"a"`}, `[ {"cursor":"a"} {"cursor":"b"}]`, `the server returns the same nextCursor for several pages: "a"`},
		"more pages than allowed": {[]string{`"a"`, `"b"`, `"c"`, `"d"`}, `[ {"cursor":"a"} {"cursor":"b"}]`, "there are over 3 pages"},
		"a cursor with a quote":   {[]string{`"\""`, ``}, `[ {"cursor":"\""}]`, ""},
	} {
		var asked []string
		var got error
		last := 0
		for page, err := range pages.Read(3, func(params json.RawMessage) (json.RawMessage, error) {
			asked = append(asked, string(params))
			next := c.pages[min(len(asked), len(c.pages))-1]
			if next == "" {
				return json.RawMessage(`{}`), nil
			}
			return json.RawMessage(`{"nextCursor":` + next + `}`), nil
		}) {
			if page.Last {
				last++
			}
			got = err
		}
		ssetest.Want(t, name+": asked", fmt.Sprint(asked), c.asked)
		if endless := pages.Endless(""); c.err != "" && (!errors.As(got, &endless) || got.Error() != c.err || last != 0) || c.err == "" && (got != nil || last != 1) {
			t.Errorf("%s: got %v with %d last pages, want %q", name, got, last, c.err)
		}
	}
}

func TestErrorEndsAList(t *testing.T) {
	asked := 0
	for page, err := range pages.Read(3, func(json.RawMessage) (json.RawMessage, error) {
		asked++
		return nil, errors.New("ended")
	}) {
		if err == nil || page.Result != nil {
			t.Errorf("got %v, %v", page, err)
		}
	}
	ssetest.Want(t, "asked", asked, 1)
}

// A reader that stops asks for no more pages.
func TestPagesAreAskedForOneByOne(t *testing.T) {
	asked := 0
	for range pages.Read(3, func(json.RawMessage) (json.RawMessage, error) {
		asked++
		return json.RawMessage(`{"nextCursor":"a"}`), nil
	}) {
		break
	}
	ssetest.Want(t, "asked", asked, 1)
}
