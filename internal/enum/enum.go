// Package enum writes and reads the values of types that have a few named ones, such as gateway.Sessions.
//
// Such a type is an integer, so that a Go program that writes a wrong word into an option does not compile. Its
// zero value is an option that is not set: its word is empty. The other values count from 1, in the order of their
// words, which configuration, logs and errors have:
//
//	const (
//		SessionsPerConnection Sessions = iota + 1 // "per-connection"
//		SessionsShared                            // "shared"
//	)
//
//	var sessionsWords = enum.Words[Sessions]{"per-connection", "shared"}
package enum

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Words are the words of the values of T: the first is that of the value 1. The value 0 has the empty word.
type Words[T ~uint8] []string

// String returns the word of a value, as in "shared". A value without a word, which only a conversion of a number
// makes, becomes "value 7".
func (w Words[T]) String(value T) string {
	switch n := int(value); {
	case n == 0:
		return ""
	case n <= len(w):
		return w[n-1]
	default:
		return fmt.Sprintf("value %d", n)
	}
}

// Marshal returns the word of a value, for an encoding.TextMarshaler. It fails where there is none.
func (w Words[T]) Marshal(value T) ([]byte, error) {
	if int(value) > len(w) {
		return nil, w.unknown()
	}
	return []byte(w.String(value)), nil
}

// Unmarshal sets a value to that of a word, for an encoding.TextUnmarshaler. The empty word is the value 0. An unknown
// word changes nothing: the error lists the words, as in "want auto, full or safe".
func (w Words[T]) Unmarshal(word []byte, value *T) error {
	at := slices.Index(w, string(word))
	if at < 0 && len(word) > 0 {
		return w.unknown()
	}
	*value = T(at + 1)
	return nil
}

// unknown returns the error for a value or a word that is none of w.
func (w Words[T]) unknown() error {
	last := len(w) - 1
	return errors.New("want " + strings.Join(w[:last], ", ") + " or " + w[last])
}
