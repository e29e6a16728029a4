package clients

import (
	"slices"
	"strings"
)

// byName has the clients by each name that means them, without what people write in different ways.
var byName = func() map[string]Client {
	all := map[string]Client{}
	for _, c := range All {
		for _, name := range append([]string{c.Name, strings.TrimSuffix(c.Name, "-cli"), c.Title}, c.Calls...) {
			all[folded(name)] = c
		}
	}
	return all
}()

var separators = strings.NewReplacer("-", "", "_", "", " ", "")

func folded(name string) string { return separators.Replace(strings.ToLower(name)) }

// Named returns the client that text means: its Name, also without -cli, its Title, or one of the names by
// which it calls itself, whatever their case, -, _ and blanks.
func Named(text string) (Client, bool) {
	c, known := byName[folded(text)]
	return c, known
}

// Texts returns all texts that the client of a name in clientInfo says of itself there, but its version; nil if it is
// not known.
func Texts(name string) []string {
	for _, c := range All {
		if slices.Contains(c.Calls, name) {
			return append(append([]string{c.Title}, c.Calls...), c.Says...)
		}
	}
	return nil
}

// Product returns the first product of a User-Agent, without its version.
func Product(userAgent string) string {
	product, _, _ := strings.Cut(userAgent, " ")
	product, _, _ = strings.Cut(product, "/")
	return product
}

// WithEntry returns the clients that have an entry.
func WithEntry() (all []Client) {
	for _, c := range All {
		if c.Entry != nil {
			all = append(all, c)
		}
	}
	return all
}

// Names returns the names of clients.
func Names(of []Client) (names []string) {
	for _, c := range of {
		names = append(names, c.Name)
	}
	return names
}
