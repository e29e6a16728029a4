package config

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	maxTokensFileBytes = 1 << 20
	// shortToken is the length below which a token can be guessed with effort:
	// 16 characters of base64 are 96 bits.
	shortToken = 16
)

// readTokens reads a file of bearer tokens, one a line: TOKEN or
// PRINCIPAL:TOKEN. It returns all faults, which never show a token.
func readTokens(path string) (tokens map[string]string, warnings, faults []string) {
	data, err := readLimited(path, maxTokensFileBytes)
	if err != nil {
		return nil, nil, []string{err.Error()}
	}
	if readableByAll(path) {
		warnings = append(warnings, fmt.Sprintf("auth tokens file %s can be read by every user of this machine", path))
	}
	tokens = map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxTokensFileBytes+1)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		principal, token, err := splitToken(line)
		if _, twice := tokens[token]; err == nil && twice {
			err = fmt.Errorf("is there twice")
		}
		if err != nil {
			faults = append(faults, fmt.Sprintf("line %d: the token %v", number, err))
			continue
		}
		if len(token) < shortToken {
			warnings = append(warnings, fmt.Sprintf("auth tokens file %s, line %d: a token of under %d characters can be guessed",
				path, number, shortToken))
		}
		tokens[token] = principal
	}
	if len(tokens) == 0 && len(faults) == 0 {
		faults = append(faults, "holds no token, want lines of TOKEN or PRINCIPAL:TOKEN")
	}
	return tokens, warnings, faults
}

// splitToken takes a line apart. A token without a principal is its own: the
// name is made from its hash, so that it stays the same over restarts and two
// such tokens are two principals.
func splitToken(line string) (principal, token string, err error) {
	principal, token, named := strings.Cut(line, ":")
	if !named {
		token = line
		sum := sha256.Sum256([]byte(token))
		principal = "token-" + hex.EncodeToString(sum[:4])
	}
	principal, token = strings.TrimSpace(principal), strings.TrimSpace(token)
	switch {
	case principal == "":
		return "", "", fmt.Errorf("has an empty principal")
	case !isBearerToken(token):
		return "", "", fmt.Errorf("may hold letters, digits and -._~+/ with = at the end (RFC 6750 2.1)")
	}
	return principal, token, nil
}

func isBearerToken(token string) bool {
	body := strings.TrimRight(token, "=")
	return body != "" && strings.IndexFunc(body, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("-._~+/", r)
	}) < 0
}
