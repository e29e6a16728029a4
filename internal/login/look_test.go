package login

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The policy of a page names the style that the page has: a browser takes no other one.
func TestPolicyNamesTheStyle(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	a, err := Begin(t.Context(), g.w.options(t))
	ssetest.Must(t, err)
	defer a.Close()
	last := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://"+a.host+donePath, nil)
	a.serve(last, r)
	for name, rec := range map[string]*httptest.ResponseRecorder{
		"page of a ticket": g.get(g.ticket("alice", "client")), "page with nothing to do": g.get(ownPage + donePath), "last page": last,
	} {
		_, style, _ := strings.Cut(rec.Body.String(), "<style>")
		style, _, found := strings.Cut(style, "</style>")
		sum := sha256.Sum256([]byte(style))
		ssetest.Want(t, name+" has a style", found && style != "", true)
		ssetest.WantText(t, "policy of the "+name, rec.Header().Get("Content-Security-Policy"),
			"default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"';")
	}
}
