package exchange

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// secrets are the texts that a request has told a server and that nobody else may read, the longest
// first. A server may quote what it refuses.
type secrets []string

// minSecret is the length from which on a text counts as a secret, in bytes: shorter ones are in any
// sentence.
const minSecret = 4

// notSecret are the headers that transports set themselves, which say nothing about a user.
var notSecret = []string{
	"Accept", "Accept-Encoding", "Cache-Control", "Content-Type", "Idempotency-Key", "Last-Event-Id", "User-Agent",
	"Mcp-Method", "Mcp-Name", "Traceparent", "Tracestate", HeaderSession, HeaderVersion,
}

// schemes are the words with which the value of Authorization may begin.
var schemes = []string{"basic", "bearer", "digest", "token", "apikey", "negotiate"}

// secrets returns those of the endpoint, and of the request that got a response: it has the token that
// Authorize has added.
func (e *Endpoint) secrets(resp *http.Response) secrets {
	var all secrets
	all.addHeader(e.Header)
	if at, err := url.Parse(e.URL); err == nil {
		all.addURL(at)
	}
	if resp.Request != nil {
		all.addHeader(resp.Request.Header)
		if resp.Request.URL != nil {
			all.addURL(resp.Request.URL)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

func (s *secrets) add(text string) {
	if len(text) >= minSecret && !slices.Contains(schemes, strings.ToLower(text)) {
		*s = append(*s, text)
	}
}

// addHeader adds each value and its words. A word of the form name=value, as in a cookie, counts by its
// value too, and credentials of Basic by both halves.
func (s *secrets) addHeader(header http.Header) {
	for name, values := range header {
		if slices.Contains(notSecret, http.CanonicalHeaderKey(name)) {
			continue
		}
		for _, value := range values {
			s.add(value)
			scheme, rest, _ := strings.Cut(value, " ")
			s.add(strings.TrimSpace(rest))
			decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest))
			if err == nil && strings.EqualFold(scheme, "Basic") {
				user, password, _ := strings.Cut(string(decoded), ":")
				s.add(string(decoded))
				s.add(user)
				s.add(password)
			}
			isBetween := func(r rune) bool { return strings.ContainsRune(" \t,;", r) }
			for _, word := range strings.FieldsFunc(value, isBetween) {
				s.add(word)
				if _, of, ok := strings.Cut(word, "="); ok {
					s.add(strings.Trim(of, `"`))
				}
			}
		}
	}
}

// addURL adds the values of the query, user and password, and the parts of the path that PublicURL hides.
func (s *secrets) addURL(at *url.URL) {
	s.add(at.RawQuery)
	for _, pair := range strings.Split(at.RawQuery, "&") {
		_, escaped, _ := strings.Cut(pair, "=")
		s.add(escaped)
		if value, err := url.QueryUnescape(escaped); err == nil {
			s.add(value)
		}
	}
	if at.User != nil {
		password, _ := at.User.Password()
		s.add(at.User.Username())
		s.add(password)
		s.add(at.User.String())
	}
	for part := range strings.SplitSeq(at.Path, "/") {
		if len(part) > maxShown {
			s.add(part)
		}
	}
}

// removed returns a text without the secrets.
func (s secrets) removed(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// shown returns a text for an error or the log: without control characters, which could hide a secret or
// steer a terminal, without secrets, and shortened.
func (s secrets) shown(text string) string {
	text = s.removed(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text))
	if len(text) > maxErrorText {
		return strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

// members are the names in a JSON-RPC error.
var members = []string{"jsonrpc", "id", "error", "code", "message", "data"}

// literal matches a string of valid JSON, with the colon after it if it is the name of a member.
var literal = regexp.MustCompile(`"(?:[^"\\]|\\.)*"(\s*:)?`)

// removedFromJSON returns JSON without the secrets in its strings, however they are escaped, and
// otherwise as it is. The names of the members of a JSON-RPC error stay.
func (s secrets) removedFromJSON(text []byte) []byte {
	return literal.ReplaceAllFunc(text, func(quoted []byte) []byte {
		end := bytes.LastIndexByte(quoted, '"') + 1
		var value string
		if json.Unmarshal(quoted[:end], &value) != nil {
			return quoted
		}
		isName := end < len(quoted)
		without := s.removed(value)
		if without == value || isName && slices.Contains(members, value) {
			return quoted
		}
		encoded, _ := json.Marshal(without) // a string can be encoded
		return append(encoded, quoted[end:]...)
	})
}

// removedFrom returns a response without the secrets in it, and with its id; nil if none is left.
func (s secrets) removedFrom(m *jsonrpc.Message) *jsonrpc.Message {
	without, err := jsonrpc.Parse(s.removedFromJSON(m.Raw()))
	if err == nil && without.ID != m.ID {
		without, err = withID(without, m.ID)
	}
	if err != nil {
		return nil
	}
	return without
}
