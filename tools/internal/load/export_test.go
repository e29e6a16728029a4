package load

import "io"

// Events returns the names and data of the events of a stream, and how it ended.
func Events(r io.Reader, limit int) (all [][2]string, err error) {
	events := newEventReader(r, limit)
	for {
		e, err := events.next()
		if err != nil {
			return all, err
		}
		all = append(all, [2]string{e.name, string(e.data)})
	}
}

// Secrets returns the secrets in a text.
func Secrets(text []byte) (all []string) {
	for secret := range secrets(text) {
		all = append(all, string(secret))
	}
	return all
}

var (
	NewSecret       = newSecret
	ErrEventTooLong = errEventTooLong
)
