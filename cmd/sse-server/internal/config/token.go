package config

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"

	"github.com/mcp-sse/mcp-sse/auth"
)

// shortToken is the length below which a token can be guessed with effort: 16 characters
// of base64 are 96 bits.
const shortToken = 16

// bearerToken matches a token, or one that is stored as its hash.
var bearerToken = regexp.MustCompile(`^([A-Za-z0-9._~+/-]+=*|sha256:[0-9a-fA-F]{64})$`)

// processKey is used where there is no key of ids.
var processKey = rand.Text()

// readTokens reads the file of bearer tokens, one a line: TOKEN, PRINCIPAL:TOKEN or PRINCIPAL:sha256:HEX. No
// message shows a token. readIDKey comes before.
func (c *Config) readTokens() error {
	path := c.AuthTokensFile
	if path == "" {
		return nil
	}
	data, info, err := c.read(path)
	if err != nil {
		return c.refuse("auth-tokens-file", "%v", err)
	}
	c.warnOfOthers(path, info)
	c.Tokens = map[string]string{}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		principal, token, named := strings.Cut(line, ":")
		principal, token = strings.TrimSpace(principal), strings.TrimSpace(token)
		if !named {
			// Two tokens without a principal are two principals, the same in all processes with
			// one key of ids. Their names are useless for finding out the tokens.
			name := hmac.New(sha256.New, []byte(cmp.Or(string(c.IDKey), processKey)))
			name.Write([]byte("principal of " + line))
			principal, token = "token-"+hex.EncodeToString(name.Sum(nil)[:8]), line
			c.unnamed = append(c.unnamed, fmt.Sprintf("%s:%d", path, i+1))
		}
		wrong := ""
		switch {
		case principal == "sha256":
			wrong = "is a hash without a principal: write PRINCIPAL:sha256:HEX, where HEX is 64 hex digits"
		case principal == "":
			wrong = "has an empty principal"
		case strings.HasPrefix(token, "sha256:") && !bearerToken.MatchString(token):
			wrong = "wants 64 hex digits after sha256:, which printf %s TOKEN | sha256sum prints"
		case !bearerToken.MatchString(token):
			wrong = "may hold letters, digits and -._~+/ with = at the end (RFC 6750 2.1)"
		case c.Tokens[token] != "":
			wrong = "is there twice"
		}
		if wrong != "" {
			return c.refuse("auth-tokens-file", "%s, line %d: the token %s", path, i+1, wrong)
		}
		if len(token) < shortToken { // a hash is longer
			c.warn("%s, line %d: a token of under %d characters can be guessed", path, i+1, shortToken)
		}
		c.Tokens[token] = principal
	}
	if len(c.Tokens) == 0 {
		return c.refuse("auth-tokens-file", "%s holds no token, want lines of TOKEN or PRINCIPAL:TOKEN", path)
	}
	c.Operators, err = auth.BearerTokens(c.Tokens)
	if err != nil {
		return c.refuse("auth-tokens-file", "%s: %v", path, err)
	}
	return nil
}

// warnOfOthers warns if other users of this machine can read or change a file of secrets.
func (c *Config) warnOfOthers(path string, info os.FileInfo) {
	if isForOthers(info) {
		c.warn("%s can be read or changed by other users of this machine: run chmod 600 %s", path,
			asTyped([]string{path}))
	}
}

// isForOthers reports whether other users of this machine can read or change a file, if there
// is one. Windows does not say, and the mode of a directory or device must stay.
func isForOthers(info os.FileInfo) bool {
	return info != nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o026 != 0
}
