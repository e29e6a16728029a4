package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/daemon"
)

func TestOpenAPIDocumentIsValid(t *testing.T) {
	document, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := document.Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

// Every path of the API answers as the OpenAPI document says; request checks that.
func TestAPI(t *testing.T) {
	r := start(t, daemon.Options{Version: "v1"})
	r.indexed()

	var health api.Health
	r.get("GET", "/health", nil, &health)
	if health.Status != api.StatusHealthy || health.PID != os.Getpid() || health.APIVersion != api.Version || health.Percent != 100 {
		t.Errorf("health = %+v", health)
	}
	var info api.ServerInfo
	r.get("GET", "/api/v1/server/info", nil, &info)
	if info.Version != "v1" || info.Folders != 1 || info.Documents != 2 || info.TextBytes == 0 || info.IndexBytes == 0 {
		t.Errorf("info = %+v", info)
	}
	var folders api.Folders
	r.get("GET", "/api/v1/folders", nil, &folders)
	if len(folders.Folders) != 1 || folders.Folders[0].Path != r.docs || folders.Folders[0].Documents != 2 || folders.Folders[0].IndexedAt.IsZero() {
		t.Errorf("folders = %+v", folders)
	}
	for _, path := range []string{"/api/v1/search", folderPath(r.docs, "/search")} {
		var found api.SearchResponse
		r.get("POST", path, api.SearchRequest{Query: "hippopotamus", IncludeContent: true}, &found)
		if len(found.Results) != 1 || found.Results[0].Path != filepath.Join(r.docs, "river.md") ||
			found.Performance.ModelUsed != api.ModelLexical || !strings.Contains(found.Results[0].Content, "bathes") {
			t.Errorf("%s: %+v", path, found)
		}
	}
	for _, path := range []string{"/api/v1/search_content", folderPath(r.docs, "/search_content")} {
		var found api.SearchResponse
		r.get("POST", path, api.SearchContentRequest{ExactTerms: []string{"stands on the hill"}}, &found)
		if len(found.Results) != 1 || found.Results[0].Path != filepath.Join(r.docs, "hill.txt") {
			t.Errorf("%s: %+v", path, found)
		}
	}
	var list api.Documents
	r.get("GET", folderPath(r.docs, "/documents?limit=1"), nil, &list)
	if len(list.Documents) != 1 || list.NextCursor == "" {
		t.Fatalf("documents = %+v", list)
	}
	var rest api.Documents
	r.get("GET", folderPath(r.docs, "/documents?cursor="+list.NextCursor), nil, &rest)
	if len(rest.Documents) != 1 || rest.Documents[0].ID == list.Documents[0].ID || rest.NextCursor != "" {
		t.Errorf("the rest of the documents = %+v", rest)
	}
	if age := time.Since(list.Documents[0].Modified); age < 0 || age > time.Hour {
		t.Errorf("modified = %v", list.Documents[0].Modified)
	}
	id := list.Documents[0].ID
	for _, path := range []string{"/api/v1/documents/" + id, folderPath(r.docs, "/documents/"+id)} {
		var document api.Document
		r.get("GET", path+"?offset=2&limit=4", nil, &document)
		if document.Text != "goat" || document.Offset != 2 || document.NextOffset != 6 {
			t.Errorf("%s: %+v", path, document)
		}
	}
	if response, _ := r.request("GET", "/openapi.yaml", nil); response.StatusCode != http.StatusOK {
		t.Errorf("openapi.yaml: %d", response.StatusCode)
	}
	r.get("DELETE", folderPath(r.docs, ""), nil, &struct{}{})
	if got := r.search("hippopotamus"); len(got) > 0 {
		t.Errorf("after the folder was removed %v is found", got)
	}
}

// A search finds the sections of a document that have the word, each with its heading and
// in plain text. The limit counts documents, not passages.
func TestSectionsOfADocumentAreFound(t *testing.T) {
	r := start(t, daemon.Options{})
	var handbook strings.Builder
	handbook.WriteString("# Handbook\n\n")
	for n := range 40 {
		fmt.Fprintf(&handbook, "## Chapter %d\n\nSome sentence of this chapter.\n", n)
		if n%8 == 3 {
			handbook.WriteString("Here the okapi is explained.\n")
		}
	}
	r.write("handbook.md", handbook.String())
	r.write("other.md", "# Other\n\nOnce there was an okapi, far from any handbook, of which little is known.\n")
	r.eventually("both documents are found", func() bool { return len(r.search("okapi")) == 2 })
	for passages, want := range map[int]string{
		0: "[Chapter 3 Chapter 11 Chapter 19 Chapter 27 Chapter 35]",
		2: "[Chapter 3 Chapter 11]",
	} {
		for path, body := range map[string]any{
			"/api/v1/search":         api.SearchRequest{Query: "okapi explained", Limit: 1, Passages: passages},
			"/api/v1/search_content": api.SearchContentRequest{ExactTerms: []string{"okapi", "explained"}, Limit: 1, Passages: passages},
		} {
			_, raw := r.request("POST", path, body)
			var found api.SearchResponse
			if err := json.Unmarshal(raw, &found); err != nil || len(found.Results) != 1 {
				t.Fatalf("%s: %v, %s", path, err, raw)
			}
			var headings []string
			for _, p := range append([]api.Passage{found.Results[0].Passage}, found.Results[0].MorePassages...) {
				headings = append(headings, p.Location.Heading)
			}
			if got := fmt.Sprint(headings); got != want {
				t.Errorf("%s: at most %d passages: got %s, want %s", path, passages, got, want)
			}
			if strings.ContainsAny(string(raw), "\ue000\ue001") {
				t.Errorf("%s: marks in %s", path, raw)
			}
		}
	}
}

// A fault of a request is told with a status and a code.
func TestBadRequests(t *testing.T) {
	r := start(t, daemon.Options{})
	r.indexed()
	file := filepath.Join(r.docs, "hill.txt")
	for _, tc := range []struct {
		method, path string
		body         any
		header       []string
		want         string
	}{
		{"GET", "/", nil, nil, "404 not_found"},
		{"GET", "/api/v2/search", nil, nil, "404 not_found"},
		{"GET", "/api/v1/search", nil, nil, "405 method_not_allowed"},
		{"PUT", "/health", nil, nil, "405 method_not_allowed"},
		{"POST", "/api/v1/search", "{", nil, "400 bad_request"},
		{"POST", "/api/v1/search", `{"query":"a"}{}`, nil, "400 bad_request"},
		{"POST", "/api/v1/search", `{"quary":"a"}`, nil, "400 bad_request"},
		{"POST", "/api/v1/search", `{"query":7}`, nil, "400 bad_request"},
		{"POST", "/api/v1/search", `{"query":"a","limit":101}`, nil, "400 bad_request"},
		{"POST", "/api/v1/search", `{"query":"a","limit":-1}`, nil, "400 bad_request"},
		{"POST", "/api/v1/search", `{"query":"a","threshold":1.5}`, nil, "400 bad_request"},
		{"POST", "/api/v1/search", `{"query":"a","folders":["/nowhere"]}`, nil, "404 folder_not_found"},
		{"POST", "/api/v1/search", `{"query":"` + strings.Repeat("a ", 1<<20) + `"}`, nil, "413 too_large"},
		{"POST", "/api/v1/search", `{"query":"a"}`, []string{"Content-Type", "text/plain"}, "415 unsupported_media_type"},
		{"POST", "/api/v1/search", `{"query":"a","folders":["a"` + strings.Repeat(`,"a"`, 100) + `]}`, nil, "400 bad_request"},
		{"POST", "/api/v1/search_content", `{"exact_terms":["a"` + strings.Repeat(`,"a"`, 100) + `]}`, nil, "400 bad_request"},
		{"POST", "/api/v1/search_content", `{}`, nil, "400 bad_request"},
		{"POST", "/api/v1/search_content", `{"exact_terms":["a"],"cursor":"x"}`, nil, "400 bad_request"},
		{"POST", folderPath(r.docs, "/search"), `{"query":"a","folders":["/nowhere"]}`, nil, "400 bad_request"},
		{"POST", folderPath("/nowhere", "/search"), `{"query":"a"}`, nil, "404 folder_not_found"},
		{"POST", "/api/v1/folders", `{"path":"docs"}`, nil, "400 bad_request"},
		{"POST", "/api/v1/folders", `{"path":"/nowhere"}`, nil, "404 folder_not_found"},
		{"POST", "/api/v1/folders", `{"path":"/no\u0000where"}`, nil, "404 folder_not_found"},
		{"POST", "/api/v1/folders", api.AddFolder{Path: file}, nil, "400 bad_request"},
		{"POST", "/api/v1/folders", api.AddFolder{Path: r.state}, nil, "400 bad_request"},
		{"DELETE", folderPath("/nowhere", ""), nil, nil, "404 folder_not_found"},
		{"GET", folderPath(r.docs, "/documents?limit=0"), nil, nil, "400 bad_request"},
		{"GET", folderPath(r.docs, "/documents?cursor=x"), nil, nil, "400 bad_request"},
		{"GET", "/api/v1/documents/0123456789abcdef", nil, nil, "404 document_not_found"},
		{"GET", "/api/v1/documents/0123456789abcdef?offset=-1", nil, nil, "400 bad_request"},
		{"GET", "/api/v1/documents/..%2F..%2Fetc%2Fpasswd", nil, nil, "404 document_not_found"},
		{"GET", "/api/v1/folders", nil, []string{"Host", "evil.example"}, "403 forbidden"},
		{"GET", "/api/v1/folders", nil, []string{"Host", "127.0.0.1.evil.example:3002"}, "403 forbidden"},
		{"GET", "/health", nil, []string{"Origin", "https://evil.example"}, "403 forbidden"},
		{"GET", "/health", nil, []string{"Origin", "null"}, "403 forbidden"},
		{"GET", "/health", nil, []string{"Origin", "http://localhost:3000"}, "403 forbidden"},
		{"GET", "/health", nil, []string{"Sec-Fetch-Site", "cross-site"}, "403 forbidden"},
		{"GET", "/health", nil, []string{"Sec-Fetch-Site", "same-site"}, "403 forbidden"},
	} {
		if got := r.refused(tc.method, tc.path, tc.body, tc.header...); got != tc.want {
			body, _ := tc.body.(string)
			t.Errorf("%s %s %.60s %v: %s, want %s", tc.method, tc.path, body, tc.header, got, tc.want)
		}
	}
	for _, host := range []string{"localhost:3002", "127.0.0.1", "[::1]:3002", "LOCALHOST"} {
		if response, body := r.request("GET", "/health", nil, "Host", host); response.StatusCode != http.StatusOK {
			t.Errorf("Host %s: %d %s", host, response.StatusCode, body)
		}
	}
}

func TestTokenIsAskedFor(t *testing.T) {
	r := start(t, daemon.Options{Token: "sesame-sesame"})
	r.indexed()
	for _, header := range []string{"", "Bearer", "Bearer sesame", "Basic sesame-sesame", "sesame-sesame"} {
		if got := r.refused("GET", "/api/v1/folders", nil, "Authorization", header); got != "401 unauthorized" {
			t.Errorf("%q: %s", header, got)
		}
	}
	if got := r.search("goat"); len(got) != 1 {
		t.Errorf("with the token %v is found", got)
	}
	if err := os.Rename(r.docs, r.docs+".away"); err != nil {
		t.Fatal(err)
	}
	r.eventually("the folder is missing", func() bool {
		var health api.Health
		r.get("GET", "/health", nil, &health)
		return health.Status == api.StatusDegraded
	})
	// Others ask for the health without a token.
	if _, body := r.request("GET", "/health", nil, "Authorization", ""); strings.Contains(string(body), "docs") {
		t.Errorf("the health tells those without a token %s", body)
	}
}
