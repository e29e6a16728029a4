package remember

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
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
//	no text in its params is one that a client chose  | the same: servers repeat them
//	of another place: what it says in an empty folder | a cloned folder must not teach others
//	the server declares tools.listChanged             | else the client would never learn what differs
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
		if value, ok := rawjson.Member(json.RawMessage(a.Initialize), name); ok {
			members = append(members, `"`+name+`":`+string(value))
		}
	}
	return &Answers{
		Initialize: "{" + strings.Join(members, ",") + "}", Stateless: a.Stateless, Learned: a.Learned, Partial: true,
		Pages: map[string]map[string]string{mcp.MethodListTools: a.Pages[mcp.MethodListTools]},
	}
}

// isGeneral reports whether answers to params without a text of a client's own may be told to other kinds of clients,
// and in other places. folder is the name of the empty folder in which the server runs; empty: it runs in none.
func isGeneral(folder string, a *Answers) bool {
	if !mcp.Declares(json.RawMessage(a.Initialize), "capabilities", "tools", "listChanged") ||
		a.Pages[mcp.MethodListTools] == nil {
		return false
	}
	said := slices.Collect(maps.Values(a.Pages[mcp.MethodListTools]))
	return !slices.ContainsFunc(append(said, a.Initialize), func(text string) bool { return namesFolder(text, folder) })
}

// folderPart is how many letters in a row of the name of an empty folder name it: servers write its point and dash as
// something else, or leave them out, and cut names off.
const folderPart = 8

// namesFolder reports whether a text has a part of the name of an empty folder in it.
func namesFolder(text, folder string) bool {
	name, letters := lettersOf(folder), lettersOf(text)
	for at := 0; at+folderPart <= len(name); at++ {
		if strings.Contains(letters, name[at:at+folderPart]) {
			return true
		}
	}
	return false
}

// lettersOf returns the ASCII letters of a text, of which the name of an empty folder is made, in lower case.
func lettersOf(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return -1
	}, text)
}
