package remember

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Where nothing is remembered of a server for a client like this one, here, the nearest memory is what the same
// server said to another kind of client, or in another place. It answers initialize and tools/list, so that the
// client has tools, while its server starts, and what differs becomes list_changed. Its limits:
//
//	limit                                             | because
//	--------------------------------------------------|---------------------------------------------------
//	the same Identity.Server                          | anything else is another server
//	the same protocol version, asked for or answered  | results have other members in each
//	who asked is the client itself, or the gateway    | nobody chooses what others are told
//	of another place: what it says in an empty folder | a cloned folder must not teach others
//	the server declares tools.listChanged             | else the client would never learn what differs
//	nothing names the client that asked               | it is for that client alone
//	nothing names the empty folder                    | it is nowhere else, and soon gone

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

// isGeneral reports whether what a server said to a client with these names may be told to other kinds of clients, and in
// other places. folder is the name of the empty folder in which it runs; empty: it runs in none.
func isGeneral(names names, folder string, a *Answers) bool {
	return mcp.Declares(json.RawMessage(a.Initialize), "capabilities", "tools", "listChanged") && a.Pages[mcp.MethodListTools] != nil &&
		!a.partial().hasText(func(text string) bool { return names.areIn(text) || namesFolder(text, folder) })
}

// hasText reports whether a text in the answers is one that is meant, as it is or before the server escaped it, or may be one,
// because it is escaped too often.
func (a *Answers) hasText(meant func(string) bool) bool {
	all := []string{a.Initialize}
	for _, pages := range a.Pages {
		all = slices.AppendSeq(all, maps.Values(pages))
	}
	return slices.ContainsFunc(all, func(raw string) bool {
		var value any
		_ = json.Unmarshal([]byte(raw), &value) // it is valid
		return slices.ContainsFunc(texts(value), func(text string) bool {
			plain, whole := unescaped(text)
			return !whole || meant(text) || meant(plain)
		})
	})
}

// folderPart is how many letters in a row of the name of an empty folder name it: servers write its point and dash as something
// else, or leave them out, and cut names off.
const folderPart = 8

// namesFolder reports whether a text has a part of the name of an empty folder in it.
func namesFolder(text, folder string) bool {
	name, _ := lettersOf(folder)
	letters, _ := lettersOf(text)
	for at := 0; at+folderPart <= len(name); at++ {
		if bytes.Contains(letters, name[at:at+folderPart]) {
			return true
		}
	}
	return false
}

// maxName is how much of a text of a client has to stand in an answer for that to name it, in bytes: some servers
// cut it off.
const maxName = 12

// names are texts of a client, to be found in what a server says in another form: Claude Code is claude-code. They
// have only letters, in lower case, and what is like a letter.
type names struct {
	whole      map[string]bool // up to maxName bytes: found as whole words
	beginnings map[string]bool // of longer ones, maxName bytes: found anywhere
	anything   bool            // one is escaped too often to be known: it may be in any text
}

func namesOf(words []string) names {
	n := names{whole: map[string]bool{}, beginnings: map[string]bool{}}
	for _, word := range words {
		plain, whole := unescaped(word) // both sides are compared in this form, too: a name may have an escape in it
		n.anything = n.anything || !whole
		for _, form := range []string{word, plain} {
			if letters, _ := lettersOf(form); len(letters) > maxName {
				n.beginnings[string(letters[:maxName])] = true
			} else if len(letters) > 0 {
				n.whole[string(letters)] = true
			}
		}
	}
	return n
}

// areIn reports whether a text has one of the names in it. How long that takes does not depend on how many there are.
func (n names) areIn(text string) bool {
	if n.anything {
		return true
	}
	letters, isEdge := lettersOf(text)
	for at := range letters {
		for end := at + 1; isEdge[at] && end <= min(at+maxName, len(letters)); end++ {
			if isEdge[end] && n.whole[string(letters[at:end])] {
				return true
			}
		}
		if at+maxName <= len(letters) && n.beginnings[string(letters[at:at+maxName])] {
			return true
		}
	}
	return false
}

// lettersOf returns the letters of a text, in lower case, and before which of them a word begins or ends.
func lettersOf(text string) (letters []byte, isEdge []bool) {
	letters, isEdge = make([]byte, 0, len(text)), make([]bool, 1, len(text)+1)
	isEdge[0] = true
	var last rune
	for _, r := range text {
		if unicode.IsLower(last) && unicode.IsUpper(r) { // as in evilSearch
			isEdge[len(letters)] = true
		}
		last = r
		switch {
		case isLetter(r):
			before := len(letters)
			letters = utf8.AppendRune(letters, unicode.ToLower(r))
			isEdge = append(isEdge, make([]bool, len(letters)-before)...)
		case unicode.IsGraphic(r) || unicode.IsControl(r): // not what is invisible within a word
			isEdge[len(letters)] = true
		}
	}
	isEdge[len(letters)] = true
	return letters, isEdge
}

// isLetter reports whether a character is a letter or digit, or is as telling, as emoji are.
func isLetter(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r > unicode.MaxASCII && unicode.IsGraphic(r) && !unicode.IsPunct(r) && !unicode.IsSpace(r)
}
