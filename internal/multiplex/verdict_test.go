package multiplex

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// TestVerdictsAreTheTableOfThePage compares the table of docs/reference/errors.md with the cases of judge: each case
// has a row, in the same order, that begins with the name of its verdict.
func TestVerdictsAreTheTableOfThePage(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "match.go", nil, parser.SkipObjectResolution)
	ssetest.Must(t, err)
	page, err := os.ReadFile("../../docs/reference/errors.md")
	ssetest.Must(t, err)
	_, section, _ := strings.Cut(string(page), "\n### Answers that do not name their request\n")
	section, _, _ = strings.Cut(section, "\n#")
	var inCode, onPage []string
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == "judge" {
			for n := range ast.Preorder(f.Body) {
				if r, ok := n.(*ast.ReturnStmt); ok {
					inCode = append(inCode, r.Results[0].(*ast.Ident).Name)
				}
			}
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(section, -1) {
		onPage = append(onPage, row[1])
	}
	if len(inCode) == 0 || !slices.Equal(onPage, inCode) {
		t.Errorf("the page has the rows\n%q, judge has the cases\n%q", onPage, inCode)
	}
}

// TestVerdict is the table of docs/reference/errors.md: what becomes of a response, by what
// it says and what the session knows.
func TestVerdict(t *testing.T) {
	one, several := matchState{out: 1}, matchState{out: 3}
	with := func(m matchState, change func(m *matchState)) matchState { change(&m); return m }
	onShared := func(m *matchState) { m.isShared = true }
	noticed := func(m *matchState) { m.notices = 1 }
	gaveUp := func(m *matchState) { m.certainty = someGivenUp }
	named := func(m *matchState) { m.manner = byNumber }
	namesCalls := func(m *matchState) { m.manner = byNumberInCalls }
	spare := func(m *matchState) { m.certainty = oneSpare } // all that are out are nobody's
	says := func(target target, what content) response { return response{target: target, content: what} }
	for _, row := range []struct {
		response     response
		own          matchState // a session of one client
		want         verdict
		wantOnShared verdict
	}{
		{says(namesOut, aResult), several, toNamed, toNamed},
		{says(namesOut, anError), with(several, noticed), toNamed, toNamed},
		{says(relatedOut, aResult), several, toNamed, toNamed},
		{says(relatedOut, anUnreadError), with(several, noticed), toNamed, toNamed},
		{says(relatedOver, aResult), one, dropLate, dropLate},
		{says(relatedOver, anUnreadError), with(several, noticed), dropLate, dropLate},
		{says(namesOtherwise, aResult), several, dropForeign, dropForeign},
		{says(namesOtherwise, anUnreadError), with(one, noticed), dropForeign, dropForeign},
		{says(namesOver, aResult), with(one, named), dropLate, dropLate},
		{says(namesOver, aResult), one, toOldest, toOldest},
		{says(namesOver, aResult), several, toOldest, failAll},
		{says(namesOver, aResult), with(one, gaveUp), endSession, endSession},

		{says(namesNothing, anError), with(one, noticed), dropNotice, dropNotice},
		{says(namesNothing, anEmptyResult), with(one, noticed), dropNotice, dropNotice},
		{says(namesNothing, anUnreadError), with(one, noticed), dropNotice, dropNotice},
		{says(namesNothing, anError), with(matchState{}, noticed), dropNotice, dropNotice},
		{says(namesNothing, aResult), with(one, noticed), toOldest, toOldest},
		{response{namesNothing, anEmptyResult, true}, with(one, noticed), toOldest, toOldest},

		{says(namesNothing, aResult), matchState{}, dropNothing, dropNothing},
		{says(namesNothing, anError), matchState{}, dropNothing, dropNothing},

		{says(namesNothing, anUnreadError), one, toOnly, toOnly},
		{says(namesNothing, anUnreadError), several, dropUnclear, dropUnclear},
		{says(namesNothing, anUnreadError), with(one, gaveUp), toOnly, dropUnclear},

		{says(namesNothing, aResult), one, toOldest, toOldest},
		{says(namesNothing, anEmptyResult), one, toOldest, toOldest},
		{says(namesNothing, anError), one, toOldest, toOldest},
		{says(namesNothing, aResult), with(one, named), toOldest, toOldest},
		{says(namesNothing, aResult), several, toOldest, failAll},
		{says(namesNothing, anError), with(several, named), toOldest, failAll},
		{says(namesNothing, aResult), matchState{out: 3, certainty: oneAtATime}, toOldest, toOldest},
		{says(namesNothing, aResult), with(one, namesCalls), toOldest, dropForeign},
		{says(namesNothing, anError), with(several, namesCalls), toOldest, dropForeign},
		{says(namesNothing, aResult), matchState{out: 3, certainty: oneAtATime, manner: byNumberInCalls}, toOldest, dropForeign},
		{says(namesNothing, anUnreadError), with(one, namesCalls), toOnly, dropForeign},
		{says(namesNothing, aResult), with(one, gaveUp), endSession, endSession},
		{says(namesNothing, anUnreadError), with(several, spare), toOldest, toOldest},
		{says(namesNothing, aResult), with(several, spare), toOldest, toOldest},
	} {
		if got := row.own.judge(row.response); got != row.want {
			t.Errorf("%v on %v: %v, want %v", row.response, row.own, got, row.want)
		}
		if s := with(row.own, onShared); s.judge(row.response) != row.wantOnShared {
			t.Errorf("%v on %v: %v, want %v", row.response, s, s.judge(row.response), row.wantOnShared)
		}
	}
}

// Whatever a session knows, a response that does not name its request never reaches one of
// several clients that may wait for it, and none gets what may be that to a request that was
// given up.
func TestVerdictNeverGuessesBetweenClients(t *testing.T) {
	manners := int(byNumberInCalls) + 1
	certainties := []certainty{certain, someGivenUp, oneAtATime, ambiguous} // in oneSpare no client waits for what is out
	for state := range manners << 3 {
		bits := state / manners
		for out := range 4 {
			for notices := range 2 {
				m := matchState{isShared: true, manner: manner(state % manners), certainty: certainties[bits&3], out: out, notices: notices}
				for i := range 8 {
					c := content(i % 4)
					got := m.judge(response{[]target{namesNothing, namesOver}[i/4], c, bits&4 > 0})
					reaches := got == toOldest || got == toOnly
					if reaches && (out == 0 || m.certainty.hasGivenUp() || out > 1 && !m.certainty.isSerial()) {
						t.Errorf("%v: content %v reaches a client: %v", m, c, got)
					}
				}
			}
		}
	}
}
