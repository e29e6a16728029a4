package diagnosis

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
)

// maxShown is about how much of a text is shown, in bytes.
const maxShown = 500

// shown returns what a step may show of a text.
func (r *run) shown(text string) string { return cut(r.withoutSecrets(text), maxShown) }

// cut returns the beginning of a text. Secrets in it must be hidden before, or a part of one would stay.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// withoutSecrets returns a text with the place of each URL in it, and without what the user has given:
// servers repeat what they refuse.
func (r *run) withoutSecrets(text string) string {
	return r.secrets.Replace(urls.ReplaceAllStringFunc(text, func(found string) string {
		at := strings.TrimRight(found, ".,;:)]}")
		return publicURL(at) + found[len(at):]
	}))
}

// secretName finds names of headers, cookies and parameters that hold secrets.
var secretName = regexp.MustCompile(
	`(?i)auth|cookie|token|key|secret|pass|pwd|\bpin\b|cred|private|session|signature|^sig$|jwt|^code$`)

// publicNames are headers that hold none, however long they are.
var publicNames = []string{"Host", "Accept", "Accept-Language", "Accept-Encoding", "Cache-Control", "Content-Type",
	"User-Agent", "Origin", "Referer", "Mcp-Protocol-Version"}

// switches are values that say how something is done, also in the words of the report.
var switches = []string{"true", "false", "none", "null"}

// isSecret reports whether the value of a name can be a secret: the name says so, or the value is long, or is no
// word because a digit is in it. One with fewer than four characters is in many words.
func isSecret(name, value string) bool {
	switch {
	case len(value) < 4 || slices.Contains(switches, strings.ToLower(value)):
		return false
	case name == "" || secretName.MatchString(name) || len(value) >= 16:
		return true
	}
	return len(value) >= 8 && strings.ContainsAny(value, "0123456789")
}

// hiding replaces what can be a secret among the values of headers, without their scheme, too, and of cookies,
// and among those of the query, and the password of a URL.
func hiding(at *url.URL, header http.Header) *strings.Replacer {
	var secrets []string
	add := func(name string, values ...string) {
		for _, value := range values {
			if value = strings.TrimSpace(value); isSecret(name, value) {
				secrets = append(secrets, value)
			}
		}
	}
	for name, values := range header {
		if slices.Contains(publicNames, name) {
			continue
		}
		for _, value := range values {
			_, credentials, _ := strings.Cut(value, " ")
			add(name, value, credentials)
			if decoded, err := base64.StdEncoding.DecodeString(credentials); err == nil { // user:password
				_, password, _ := strings.Cut(string(decoded), ":")
				add(name, password)
			}
			if name != "Cookie" {
				continue
			}
			for part := range strings.SplitSeq(value, ";") {
				_, cookie, _ := strings.Cut(part, "=")
				add(name, cookie)
			}
		}
	}
	if at != nil {
		for part := range strings.SplitSeq(at.RawQuery, "&") {
			name, value, hasName := strings.Cut(part, "=")
			if !hasName {
				name, value = "", name
			}
			decoded, _ := url.QueryUnescape(value) // empty if it is none
			add(name, value, decoded)
		}
		if password, _ := at.User.Password(); password != "" {
			sent := base64.StdEncoding.EncodeToString([]byte(at.User.Username() + ":" + password)) // by net/http
			add("password", password, url.QueryEscape(password), url.PathEscape(password), sent)
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // the first that fits is replaced
	var pairs []string
	for _, secret := range secrets {
		pairs = append(pairs, secret, "…")
	}
	return strings.NewReplacer(pairs...)
}

// urls finds URLs in texts.
var urls = regexp.MustCompile(`https?://[^\s"'<>|]+`)

// publicPath finds the paths of metadata. Their words are long, as keys in paths are, and no secret.
var publicPath = regexp.MustCompile(
	`^(.*)(/\.well-known/(?:oauth-protected-resource|oauth-authorization-server|openid-configuration))(/.*)?$`)

// publicURL returns a URL without what may be secret in it.
func publicURL(at string) string {
	parts := publicPath.FindStringSubmatch(at)
	if parts == nil {
		return remote.URL{Address: at}.Place()
	}
	const host = "http://host"
	return publicURL(parts[1]) + parts[2] + strings.TrimPrefix(publicURL(host+parts[3]), host)
}
