package page_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/page"
)

// The modules are joined to one script, so none may take a name that another has, and no import is left.
func TestScriptIsOneModule(t *testing.T) {
	script := string(page.Script())
	if line := regexp.MustCompile(`(?m)^(import .* from '\.|export ).*`).FindString(script); line != "" {
		t.Errorf("the script has %q: an import has a line of its own and is from './NAME.js', and export stands before a declaration", line)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(?:async )?(?:function\*?|class|const|let|var) (\w+)`).FindAllStringSubmatch(script, -1) {
		if names[m[1]] && !inLibrary(script, m[1]) {
			t.Errorf("two modules have %s at their top", m[1])
		}
		names[m[1]] = true
	}
	if len(names) < 100 {
		t.Errorf("found %d names", len(names))
	}
}

// inLibrary reports whether a name is one of the library for schemas, whose modules are inside a function
// although they are not indented.
func inLibrary(script, name string) bool {
	_, library, _ := strings.Cut(script, "// jsonschema.js\n")
	library, _, _ = strings.Cut(library, "// schema.js\n")
	return regexp.MustCompile(`(?m)^(?:function|const|class) ` + name + `\b`).MatchString(library)
}

// Nothing in the script makes markup, code or a function of a text.
func TestScriptMakesNoMarkup(t *testing.T) {
	for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval(", "new Function", "createContextualFragment", "srcdoc", "setHTML", "javascript:"} {
		if strings.Contains(string(page.Script()), word) {
			t.Errorf("the script has %s", word)
		}
	}
	if n := strings.Count(string(page.Script()), "createPolicy("); n != 1 {
		t.Errorf("the script makes %d policies for Trusted Types, and that of the worker is enough", n)
	}
}

// The page has all data about its server in one block, which no name can end.
func TestNamesStayData(t *testing.T) {
	const name = `</script><img src=x onerror=alert(1)>`
	p, err := page.New(page.Options{Name: name, Transports: []string{"sse"}})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/mcp", nil))
	body := w.Body.String()
	if strings.Contains(body, "<img") || strings.Count(body, "</script>") != 2 {
		t.Errorf("the name is markup: %s", body)
	}
	_, block, _ := strings.Cut(body, `id="about">`)
	block, _, _ = strings.Cut(block, "</script>")
	var about struct{ Name string }
	if err := json.Unmarshal([]byte(block), &about); err != nil || about.Name != name {
		t.Errorf("the block has the name %q, error %v", about.Name, err)
	}
	w = httptest.NewRecorder()
	page.ServeList(w, httptest.NewRequest(http.MethodGet, "/", nil), []page.Link{{Name: name, Path: "/a/mcp"}})
	if body := w.Body.String(); strings.Contains(body, "<img") {
		t.Errorf("the name is markup: %s", body)
	}
}

// The heading of the list has servers and views apart, as the banner has.
func TestHeadingOfTheList(t *testing.T) {
	server, view := page.Link{Name: "a", Path: "/a/mcp"}, page.Link{Name: "v", Path: "/mcp", IsView: true}
	for want, links := range map[string][]page.Link{
		"The MCP server": {server}, "2 MCP servers": {server, server}, "2 MCP servers, 1 view": {view, server, server},
		"1 MCP server, 2 views": {view, view, server}, "2 views": {view, view},
	} {
		w := httptest.NewRecorder()
		page.ServeList(w, httptest.NewRequest(http.MethodGet, "/", nil), links)
		if body := w.Body.String(); !strings.Contains(body, "<h1>"+want+"</h1>") {
			t.Errorf("want the heading %q in %s", want, body)
		}
	}
}

// A page to which another site has led says so: its script waits for a click. An address that people have
// typed, bookmarked or opened from a terminal connects by itself.
func TestPageOfALink(t *testing.T) {
	p, err := page.New(page.Options{Transports: []string{"sse"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		site, referer string
		want          bool
	}{
		{"none", "", false},
		{"same-origin", "http://gateway.example/", false},
		{"cross-site", "", true},
		{"same-site", "", true},
		{"", "", false}, // a browser over plain HTTP says nothing of the site
		{"", "http://gateway.example/mcp", false},
		{"", "http://elsewhere.example/", true},
		{"", "http://gateway.example:81/", true},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://gateway.example/mcp", nil)
		for name, value := range map[string]string{"Sec-Fetch-Site": c.site, "Referer": c.referer} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if got := strings.Contains(w.Body.String(), " data-linked>"); got != c.want {
			t.Errorf("Sec-Fetch-Site %q, Referer %q: linked %t, want %t", c.site, c.referer, got, c.want)
		}
	}
}

// With a login the page may also send to the issuer, and to nobody else.
func TestPolicyAllowsTheIssuer(t *testing.T) {
	for issuer, want := range map[string]string{
		"":                                     "connect-src 'self';",
		"https://login.example.com:8443/realm": "connect-src 'self' https://login.example.com:8443;",
		"https://login.example.com;script-src": "",
		"https://a b":                          "",
		"no URL":                               "",
	} {
		opts := page.Options{Transports: []string{"sse"}}
		if issuer != "" {
			opts.Login = &page.Login{Issuer: issuer, ClientID: "page"}
		}
		p, err := page.New(opts)
		if err != nil {
			if want != "" {
				t.Errorf("%s: %v", issuer, err)
			}
			continue
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/mcp", nil))
		if policy := w.Header().Get("Content-Security-Policy"); want == "" || !strings.Contains(policy, want) {
			t.Errorf("%s: the policy is %s", issuer, policy)
		}
	}
}

// The script fills in the texts that people paste: it finds the places. A request of curl needs a session
// where the gateway does not initialize.
func TestPagePastes(t *testing.T) {
	for transport, auto := range map[string]bool{"sse": true, "streamable": false} {
		p, err := page.New(page.Options{Transports: []string{transport}, AutoInitialize: auto})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/mcp", nil))
		_, block, _ := strings.Cut(w.Body.String(), `id="about">`)
		block, _, _ = strings.Cut(block, "</script>")
		var about struct {
			Pastes []struct {
				Title, Lack string
				Open, Token struct{ Text string }
			}
		}
		if err := json.Unmarshal([]byte(block), &about); err != nil {
			t.Fatal(err)
		}
		hasCurl := false
		for _, one := range about.Pastes {
			if one.Lack != "" && one.Title == "curl" && one.Open.Text+one.Token.Text == "" {
				continue
			}
			hasCurl = hasCurl || one.Title == "curl"
			if !strings.Contains(one.Open.Text, "@URL@") || strings.Contains(one.Open.Text, "'@URL@'") || strings.Contains(one.Open.Text, "TOKEN") || !strings.Contains(strings.ToUpper(one.Token.Text), "TOKEN") {
				t.Errorf("%s: got %s and %s", one.Title, one.Open.Text, one.Token.Text)
			}
			if transport == "sse" && strings.Contains(one.Open.Text, "treamable") {
				t.Errorf("%s: only HTTP+SSE is served, but got %s", one.Title, one.Open.Text)
			}
		}
		if len(about.Pastes) < 15 || hasCurl != auto {
			t.Errorf("got %d clients, a command of curl among them: %t", len(about.Pastes), hasCurl)
		}
	}
}

// A state has a bounded number of warnings, and the list of all servers fewer of each. Both say how many more there are.
func TestWarningsAreBounded(t *testing.T) {
	var s page.State
	for range 25 {
		s.AddWarning(strings.Repeat("é", 1000))
	}
	if len(s.Warnings) != 20 || s.OmittedWarnings != 5 || len([]rune(s.Warnings[0])) != 301 {
		t.Errorf("got %d warnings of %d characters, and %d more", len(s.Warnings), len([]rune(s.Warnings[0])), s.OmittedWarnings)
	}
	w, all := httptest.NewRecorder(), page.Landing{Servers: []page.State{s}}
	page.ServeLanding(w, httptest.NewRequest(http.MethodGet, "/?page=state.json", nil), &all, nil)
	var told page.Landing
	if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil {
		t.Fatal(err)
	}
	if one := told.Servers[0]; len(one.Warnings) != 3 || one.OmittedWarnings != 22 {
		t.Errorf("in the list: got %d warnings, and %d more", len(one.Warnings), one.OmittedWarnings)
	}
}
