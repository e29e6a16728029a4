package merge

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// The longest name that all models take, and what stays of a longer one before its hash.
const (
	maxName  = 64
	cutName  = 55
	hashName = 8
)

// FinalName returns the name of a tool or prompt in a view. base is the server's own name, or the new one that a
// rename gives. It depends on nothing else: neither on other names nor on which members are up. alone says that the
// configuration has one member, without a prefix. Then names stay as they are.
func FinalName(alone bool, prefix, base string) string {
	if alone {
		return base
	}
	name := strings.Map(legal, prefix+base)
	if len(name) <= maxName {
		return name
	}
	hash := sha256.Sum256([]byte(prefix + base))
	text := strings.ToLower(base32.StdEncoding.EncodeToString(hash[:]))
	return name[:cutName] + "_" + text[:hashName]
}

// legal returns a character that models take in a name.
func legal(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
		return r
	default:
		return '_'
	}
}
