// Package clients has what is known of the programs that connect: how they call themselves, how long
// they wait, and what they drop or cut. docs/clients.md says the same to people, with where each fact
// comes from. table.go has the facts, losses.go what follows from them for a server.
package clients

import (
	"slices"
	"strings"
	"time"
)

// Client is what is known of one client program. A field that is zero is unknown: it says neither that
// the client has a limit nor that it has none.
type Client struct {
	// Name is what check --for and the log call it, and Title what people do: the row of docs/clients.md
	// begins with it.
	Name, Title string
	// Calls are the names by which it is recognised: that in its clientInfo, or the product in its
	// User-Agent.
	Calls []string

	// Patience is how long it waits for a server's tools before it goes on without them, and Longer what
	// in its own configuration makes it wait longer.
	Patience time.Duration
	Longer   string
	// Call is how long it waits for the answer to a call.
	Call time.Duration

	// Tools and Descriptions bound the number of tools, and the characters of their descriptions, over all
	// servers of the client. Over is what it does with more.
	Tools, Descriptions int
	Over                string
	// Description bounds the characters of the description of one tool. It cuts longer ones.
	Description int
	// NameLength bounds the characters of the name of a tool behind Front, and LongNames is what it does
	// with longer ones.
	NameLength int
	Front      string // the client puts the name of the server in the place of %s
	LongNames  string
	// Keywords are those that it does not take at the top of a tool's input schema, and Schemas is what it
	// does with a tool that has one.
	Keywords []string
	Schemas  string
	// Result bounds a result, in tokens or characters, and LongResults is what it does with a longer one.
	Result      int
	ResultUnit  string
	LongResults string

	// Quiet says that over HTTP+SSE it ends at events that are not in the standard.
	Quiet bool
}

// Named returns the client that text means, whatever its case: its Name, its Title, or one of the names
// by which it calls itself.
func Named(text string) (Client, bool) {
	means := func(name string) bool { return strings.EqualFold(name, text) }
	i := slices.IndexFunc(All, func(c Client) bool {
		return means(c.Name) || means(c.Title) || slices.ContainsFunc(c.Calls, means)
	})
	if i < 0 {
		return Client{}, false
	}
	return All[i], true
}

// Product returns the first product of a User-Agent, without its version.
func Product(userAgent string) string {
	product, _, _ := strings.Cut(userAgent, " ")
	product, _, _ = strings.Cut(product, "/")
	return product
}

// Names returns the names of all clients.
func Names() (names []string) {
	for _, c := range All {
		names = append(names, c.Name)
	}
	return names
}

// Nearest returns the name that somebody means who has written text: one of which it is the beginning,
// or with at most two letters wrong; "" if there is none.
func Nearest(text string) (name string) {
	text = strings.ToLower(text)
	least := 3
	for _, c := range All {
		far := distance(text, c.Name)
		if len(text) > 2 && strings.HasPrefix(c.Name, text) {
			far = 0
		}
		if far < least && far < len(text) {
			name, least = c.Name, far
		}
	}
	return name
}

// distance returns how many letters must be put in, taken out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // row[j] is the distance from the part of a so far to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
