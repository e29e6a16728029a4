package config

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"regexp"
	"strings"
)

// shortToken is the length below which a token can be guessed with effort: 16 characters
// of base64 are 96 bits.
const shortToken = 16

// readTokens reads the file of bearer tokens, one a line: TOKEN or PRINCIPAL:TOKEN. No
// message shows a token.
func (c *Config) readTokens() error {
	path := c.AuthTokensFile
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return c.refuse("auth-tokens-file", "%v", err)
	}
	c.warnOfOthers(path)
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
			return c.refuse("auth-tokens-file", "%s, line %d: the token %v", path, number, err)
		}
		if len(token) < shortToken {
			c.warn("%s, line %d: a token of under %d characters can be guessed", path, number, shortToken)
		}
		c.Tokens[token] = principal
	}
	if len(c.Tokens) == 0 {
		return c.refuse("auth-tokens-file", "%s holds no token, want lines of TOKEN or PRINCIPAL:TOKEN", path)
	}
	return nil
}

// warnOfOthers warns if other users of this machine can read or change a file of secrets.
func (c *Config) warnOfOthers(path string) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if info.Mode().Perm()&0o004 != 0 {
		c.warn("%s can be read by every user of this machine", path)
	}
	if info.Mode().Perm()&0o022 != 0 {
		c.warn("%s can be changed by other users of this machine", path)
	}
}

var bearerToken = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// processKey makes the names of principals useless for finding out their tokens.
var processKey = rand.Text()

// splitToken takes a line apart. A token without a principal is its own: the name
// is made from its hash under a key of this process, so that two such tokens are
// two principals, and a log tells nothing about the token.
func splitToken(line string) (principal, token string, err error) {
	principal, token, named := strings.Cut(line, ":")
	if !named {
		token = line
		sum := sha256.Sum256([]byte(processKey + token))
		principal = "token-" + hex.EncodeToString(sum[:4])
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
