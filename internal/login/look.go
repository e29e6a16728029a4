package login

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
)

// look is the style of the pages of logins, in the pages themselves. Its colors are those of the page of the gateway.
//
//go:embed look.css
var look string

// lookSource is how a Content-Security-Policy names look, the only style that a browser takes.
var lookSource = func() string {
	sum := sha256.Sum256([]byte(look))
	return "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

// noteTemplate is a page that says something. Next is an address to which the browser goes on; empty: it stays.
var noteTemplate = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
{{if .Next}}<meta http-equiv="refresh" content="0;url={{.Next}}">{{end}}
<title>{{.Title}}</title>
<style>` + look + `</style>
<main><h1>{{.Title}}</h1>
{{block "rest" .}}<p>{{.Text}}
{{end}}</main></html>
`))

// showNote shows a page that says something.
func showNote(w http.ResponseWriter, status int, title, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = noteTemplate.Execute(w, pageView{Title: title, Text: text}) // the browser has left
}
