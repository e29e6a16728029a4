package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/sse"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// maxTokenBytes bounds the file of the bearer token for a remote server.
const maxTokenBytes = 64 << 10

// headers is the option of headers for a remote server: 'Name: value',
// repeatable; one a line in a variable; in the file a mapping. The values are
// secrets and are in no message.
type headers struct {
	raw
	names, values []string
}

// Decode implements [kong.MapperValue].
func (h *headers) Decode(ctx *kong.DecodeContext) error {
	v, ok := h.next(ctx)
	if !ok {
		return nil
	}
	var entries [][2]string
	switch {
	case v.line == 0:
		for line := range strings.SplitSeq(strings.Trim(v.text, "\n"), "\n") {
			name, value, found := strings.Cut(line, ":")
			if !found {
				h.refuse("", "want 'NAME: VALUE', such as 'Authorization: Bearer ${TOKEN}'")
				return nil
			}
			entries = append(entries, [2]string{name, value})
		}
	case v.kind != mappingValue || v.nested:
		h.refuse("", "want a mapping of names to plain values, such as {Authorization: \"Bearer ${TOKEN}\"}")
		return nil
	default:
		entries = v.pairs
	}
	for _, entry := range entries {
		name := strings.TrimSpace(entry[0])
		if want := checkHeader(name); want != "" {
			h.refuse("", want) // the text may be a value without its name: not shown
			return nil
		}
		h.names, h.values = append(h.names, name), append(h.values, strings.TrimSpace(entry[1]))
	}
	return nil
}

// String implements [setting]. The values are left out.
func (h *headers) String() string {
	out := make([]string, len(h.names))
	for i, name := range h.names {
		out[i] = yamlText(name) + `: "***"`
	}
	return "{" + strings.Join(out, ", ") + "}"
}

func checkHeader(name string) string {
	if err := gateway.CheckHeaderName(name); err != nil {
		return "want the name of a header that is free to set: " + err.Error()
	}
	return ""
}

var reference = regexp.MustCompile(`\$\{[^}]*\}?`)

// expand puts environment variables in the place of ${NAME}. Blanks at the ends
// are cut off: many a secret ends with a newline.
func (l *loaded) expand(text string) (string, error) {
	var wrong error
	expanded := reference.ReplaceAllStringFunc(text, func(found string) string {
		name, closed := strings.CutSuffix(strings.TrimPrefix(found, "${"), "}")
		value, ok := l.lookupEnv(name)
		switch {
		case !closed || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || name == "":
			wrong = fmt.Errorf("want ${NAME} with the name of an environment variable, of letters, digits and _")
		case !ok || value == "":
			wrong = fmt.Errorf("the environment variable %s is not set", name)
		}
		return value
	})
	return strings.TrimSpace(expanded), wrong
}

// checkRemote takes together how a remote server is reached.
func (l *loaded) checkRemote(add addFault) {
	var err error
	if l.address, err = l.expand(l.URL.value); err != nil {
		add("%s: %v", l.name("url"), err)
		return
	}
	l.header = http.Header{}
	for i, name := range l.Header.names {
		value, err := l.expand(l.Header.values[i])
		if err != nil {
			add("%s: %s: %v", l.name("header"), name, err)
		}
		l.header.Add(name, value)
	}
	l.readBearerToken(add)
	at, err := url.Parse(l.address)
	if err != nil { // whose text would have a part of it
		add("%s: want a URL, such as https://example.com/mcp, with what is special in a password escaped", l.name("url"))
		return
	}
	if err := l.remote().Check(); err != nil && l.URLTransport.want == "" {
		add("%s: %v", l.name("url"), err)
	}
	if at.Scheme == "http" && !sse.IsLoopback(at.Host) && (len(l.header) > 0 || at.User != nil) {
		l.warnings = append(l.warnings, fmt.Sprintf("%s %s: what is in the headers goes over the network in plain text", l.name("url"), l.place()))
	}
	for _, name := range l.ForwardHeader.values {
		if strings.EqualFold(name, "Authorization") && l.AuthTokensFile.value != "" {
			add("%s: Authorization: the remote server would get the tokens of %s, which are for this one", l.name("forward-header"), l.name("auth-tokens-file"))
		}
	}
}

// readBearerToken reads the file of the token for the remote server.
func (l *loaded) readBearerToken(add addFault) {
	path := l.BearerTokenFile.value
	if path == "" {
		return
	}
	if l.header.Get("Authorization") != "" {
		add("%s and an Authorization in %s: want one of them", l.name("bearer-token-file"), l.name("header"))
	}
	data, err := readLimited(path, maxTokenBytes)
	if err != nil {
		add("%s %q: %v", l.name("bearer-token-file"), path, err)
		return
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) >= 0 {
		add("%s %q: want the token alone on one line", l.name("bearer-token-file"), path)
		return
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		l.warnings = append(l.warnings, fmt.Sprintf("bearer token file %s can be read by every user of this machine", path))
	}
	l.header.Set("Authorization", "Bearer "+token)
}

// remote is the remote server as an upstream.
func (l *loaded) remote() upstream.URL {
	transport := l.URLTransport.value
	if transport == "auto" {
		transport = ""
	}
	return upstream.URL{Address: l.address, Header: l.header, Transport: transport, MaxMessageBytes: int(l.MaxLineBytes.value)}
}

// place is the address of the remote server without what may be secret in it.
func (l *loaded) place() string { return upstream.URL{Address: l.address}.Place() }
