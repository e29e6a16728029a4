package streamable

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// eventID names an event of a session. Clients send its text back. A process that knows
// nothing of the stream learns from it what the client waits for. As text it is
//
//	0-7         the seventh event of the session's own stream
//	3-2-rNQ     the second one of the third POST, whose client waits for the answer to the request 5, which may be
//	            run twice
type eventID struct {
	stream  int64 // a session's own is 0, those of its POSTs follow
	number  int64 // in the stream, counted from 1
	awaited awaitedIDs
}

// awaitedIDs are the requests for which the client waits after an event in the stream of a POST, as text:
// r if all of it may be run twice, else n, and the ids; empty for nothing.
type awaitedIDs string

// maxAwaitedIDs bounds the length of all ids in a text. The id of one request is shorter.
const maxAwaitedIDs = jsonrpc.MaxIDBytes

// newAwaitedIDs returns the text for these requests, empty if they are too long.
func newAwaitedIDs(ids []jsonrpc.ID, repeats bool) awaitedIDs {
	var list []byte
	for _, id := range ids {
		list = append(append(list, id...), ',')
	}
	if len(list) == 0 || len(list) > maxAwaitedIDs+1 {
		return ""
	}
	mark := "n"
	if repeats {
		mark = "r"
	}
	return awaitedIDs(mark + base64.RawURLEncoding.EncodeToString(list[:len(list)-1]))
}

// read is the inverse of newAwaitedIDs. It reports false for a text that newAwaitedIDs does not return.
func (t awaitedIDs) read() (ids []jsonrpc.ID, repeats, ok bool) {
	if t == "" {
		return nil, false, true
	}
	list, err := base64.RawURLEncoding.DecodeString(string(t[1:]))
	if err != nil || len(list) > maxAwaitedIDs {
		return nil, false, false
	}
	all, wrong := jsonrpc.Split([]byte("["+string(list)+"]"), maxBatch)
	if wrong != nil {
		return nil, false, false
	}
	for _, raw := range all {
		m, err := jsonrpc.Parse(jsonrpc.NewRequest(jsonrpc.ID(raw), "ping", nil))
		if err != nil {
			return nil, false, false
		}
		ids = append(ids, m.ID)
	}
	repeats = t[0] == 'r'
	return ids, repeats, newAwaitedIDs(ids, repeats) == t
}

// String returns the text of the id.
func (id eventID) String() string {
	text := strconv.FormatInt(id.stream, 10) + "-" + strconv.FormatInt(id.number, 10)
	if id.awaited != "" {
		text += "-" + string(id.awaited)
	}
	return text
}

// parseEventID is the inverse of String.
func parseEventID(text string) (id eventID, ok bool) {
	stream, rest, _ := strings.Cut(text, "-")
	number, more, _ := strings.Cut(rest, "-")
	var errs [2]error
	id.stream, errs[0] = strconv.ParseInt(stream, 10, 64)
	id.number, errs[1] = strconv.ParseInt(number, 10, 64)
	id.awaited = awaitedIDs(more)
	_, _, ok = id.awaited.read()
	return id, ok && errs[0] == nil && errs[1] == nil && id.stream >= 0 && id.number >= 0 && id.String() == text
}
