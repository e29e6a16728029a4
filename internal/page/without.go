package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"sync"
)

// without is what a browser gets that gets no page. It has its style inside: whoever gets no page gets no file of it.
var without = sync.OnceValue(func() struct {
	policy       string
	short, whole []byte // without and with the reason
} {
	style := read("without.css")
	sum := sha256.Sum256(append([]byte("\n"), style...)) // the text of the element, with its first line end
	build := func(isHere bool) []byte {
		var body bytes.Buffer
		// The template has no data that it could fail with.
		_ = templates().ExecuteTemplate(&body, "without.html", isHere)
		styled := slices.Concat([]byte("<style>\n"), style, []byte("</style>"))
		return bytes.Replace(body.Bytes(), []byte("<style></style>"), styled, 1)
	}
	return struct {
		policy       string
		short, whole []byte
	}{
		"default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
		build(false), build(true),
	}
})

// ServeWithout tells a browser that there is no page for it. isHere says that this is because the page is for this
// machine alone where nothing protects the server: then it also says what gives the page to others.
func ServeWithout(w http.ResponseWriter, isHere bool) {
	made, header := without(), w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", made.policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	body := made.short
	if isHere {
		body = made.whole
	}
	_, _ = w.Write(body) // an error means that the browser is gone
}
