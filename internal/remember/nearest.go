package remember

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Where nothing is remembered of a server for a client like this one, here, the nearest memory is what the same
// server said to another kind of client, or in another place. It answers initialize and tools/list, so that the
// client has tools, while its server starts, and what differs becomes list_changed. Its limits:
//
//	limit                                            | because
//	-------------------------------------------------|------------------------------------------------------
//	the same Identity.Server                         | anything else is another server
//	the same protocol version, asked for or answered | results have other members in each
//	who asked is the client itself, or the gateway   | nobody chooses what others are told
//	another place only if both are portable          | a cloned folder must not teach others
//	the server declares tools.listChanged            | else the client would never learn what differs
//	nothing names the client that asked              | it is for that client alone

// toldMembers are the members of the result of initialize that others may be told.
var toldMembers = []string{"protocolVersion", "capabilities", "serverInfo", "instructions"}

// Nearest returns what the server said that is nearest to what it will say to a client, nil if there is nothing.
func (s *Server) Nearest(c Client) *Answers {
	meant := func(k key, e entry) bool {
		return e.general && e.isAt(k, c.version) && slices.Contains(c.listensTo(), k.client.who)
	}
	if nearest := s.toldHere(meant); nearest != nil {
		return nearest.partial()
	}
	return nil
}

// partial returns what is told of the answers to others.
func (a *Answers) partial() *Answers {
	var members []string
	for _, name := range toldMembers {
		if value, ok := jsonrpc.Member(json.RawMessage(a.Initialize), name); ok {
			members = append(members, `"`+name+`":`+string(value))
		}
	}
	return &Answers{
		Initialize: "{" + strings.Join(members, ",") + "}", Stateless: a.Stateless, Learned: a.Learned, Partial: true,
		Pages: map[string]map[string]string{mcp.MethodListTools: a.Pages[mcp.MethodListTools]},
	}
}

// maxWord is how much of a text of a client has to stand in an answer for that to name it, in bytes: some servers
// cut it off.
const maxWord = 16

// isGeneral reports whether what a server said to a client may be told to other kinds of clients.
func isGeneral(c Client, a *Answers) bool {
	if !mcp.Declares(json.RawMessage(a.Initialize), "capabilities", "tools", "listChanged") || a.Pages[mcp.MethodListTools] == nil {
		return false
	}
	said := []string{a.Initialize}
	for _, page := range a.Pages[mcp.MethodListTools] {
		said = append(said, page)
	}
	for _, raw := range said {
		var value any
		_ = json.Unmarshal([]byte(raw), &value) // it is valid
		for _, text := range texts(value) {
			if slices.ContainsFunc(c.words, func(word string) bool { return names(text, word) }) {
				return false
			}
		}
	}
	return true
}

// names reports whether a text has a word in it, or its beginning if it is long.
func names(text, word string) bool {
	text, word = strings.ToLower(text), strings.ToLower(strings.TrimSpace(word))
	if word == "" {
		return false
	}
	long := len(word) > maxWord
	if long {
		word = strings.ToValidUTF8(word[:maxWord], "")
	}
	for at := strings.Index(text, word); at >= 0; {
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(word):])
		if long || !isLetter(before) && !isLetter(after) {
			return true
		}
		next := strings.Index(text[at+1:], word)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return false
}

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// portable asks whether a server is portable now. It reads the disk, which may hang.
type portable struct {
	asks job

	mu sync.Mutex // guards what follows
	is bool
}

func newPortable(ask func() bool) *portable {
	p := &portable{}
	if ask != nil {
		p.asks.does = func() {
			is := ask()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.is = is
		}
	}
	return p
}

func (p *portable) now() bool {
	if p.asks.does == nil || !p.asks.do(readWait) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.is
}

// job does the same thing again and again, one at a time, in the background: it may hang for as long as a disk
// does. The zero value with does is ready. It is safe for concurrent use.
type job struct {
	does func()

	mu    sync.Mutex // guards what follows
	runs  bool
	began time.Time     // when the running one did
	next  chan struct{} // closed at the end of the next one; nil: nobody waits for it
}

// do has it done from now on, and reports whether that was so in the given time. While one hangs for longer than
// that, nobody waits.
func (j *job) do(wait time.Duration) (done bool) {
	j.mu.Lock()
	if !j.runs {
		j.runs, j.began = true, time.Now()
		go j.run() // ends when nobody waits for another one, or with the disk
	}
	if j.next == nil {
		j.next = make(chan struct{})
	}
	next, left := j.next, wait-time.Since(j.began)
	j.mu.Unlock()
	if left <= 0 {
		return false
	}
	late := time.NewTimer(left)
	defer late.Stop()
	select {
	case <-next:
		return true
	case <-late.C:
		return false
	}
}

func (j *job) run() {
	for {
		j.mu.Lock()
		next := j.next
		if j.next, j.began = nil, time.Now(); next == nil {
			j.runs = false
			j.mu.Unlock()
			return
		}
		j.mu.Unlock()
		j.does()
		close(next)
	}
}
