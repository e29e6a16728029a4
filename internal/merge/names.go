package merge

import (
	"crypto/sha256"
	"encoding/base32"
	"regexp"
	"strings"
)

// The longest name that all models take, and what stays of a longer one before its hash.
const (
	maxName  = 64
	cutName  = 55
	hashName = 8
)

// The bounds of a view.
const (
	MaxMembers = 64
	MaxPrefix  = 40 // characters, so that the hash of a long name leaves the prefix readable
)

// MayMeet reports whether names behind the default prefix of a member, its name and "__", could also be those of
// another member. Such a member of several needs another prefix.
func MayMeet(member string) bool {
	return strings.Contains(member, "__") || strings.HasSuffix(member, "_")
}

// IsNewName reports whether a tool may be renamed to this.
func IsNewName(name string) bool { return newName.MatchString(name) }

var newName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

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
