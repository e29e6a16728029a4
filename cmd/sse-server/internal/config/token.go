package config

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"strings"
)

const (
	maxTokensFileBytes = 1 << 20
	// shortToken is the length below which a token can be guessed with effort:
	// 16 characters of base64 are 96 bits.
	shortToken = 16
)

// readTokens reads the file of bearer tokens, one a line: TOKEN or
// PRINCIPAL:TOKEN. No message shows a token.
func (c *Config) readTokens() {
	path := c.tokensFile
	if path == "" {
		return
	}
	data, err := readLimited(path, maxTokensFileBytes)
	if err != nil {
		c.refuse("auth-tokens-file", "%v", err)
		return
	}
	c.report.warnOfOthers("auth tokens file", path)
	c.Tokens = map[string]string{}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		principal, token, err := splitToken(line)
		if _, twice := c.Tokens[token]; err == nil && twice {
			err = errors.New("is there twice")
		}
		if err != nil {
			c.refuse("auth-tokens-file", "line %d: the token %v", number, err)
		}
		if err == nil && len(token) < shortToken {
			c.report.warn("auth tokens file %s, line %d: a token of under %d characters can be guessed", path, number, shortToken)
		}
		c.Tokens[token] = principal
	}
	if len(c.Tokens) == 0 {
		c.refuse("auth-tokens-file", "holds no token, want lines of TOKEN or PRINCIPAL:TOKEN")
	}
}

var bearerToken = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// processKey makes the names of principals useless for finding out their tokens.
var processKey = newKey()

func newKey() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return key
}

// splitToken takes a line apart. A token without a principal is its own: the name
// is made from its hash under a key of this process, so that two such tokens are
// two principals, and a log tells nothing about the token.
func splitToken(line string) (principal, token string, err error) {
	principal, token, named := strings.Cut(line, ":")
	if !named {
		token = line
		sum := hmac.New(sha256.New, processKey)
		sum.Write([]byte(token))
		principal = "token-" + hex.EncodeToString(sum.Sum(nil)[:4])
	}
	principal, token = strings.TrimSpace(principal), strings.TrimSpace(token)
	switch {
	case principal == "":
		return "", "", errors.New("has an empty principal")
	case !bearerToken.MatchString(token):
		return "", "", errors.New("may hold letters, digits and -._~+/ with = at the end (RFC 6750 2.1)")
	}
	return principal, token, nil
}
