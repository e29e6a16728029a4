// Package clients has what is known of the programs that connect: how they call themselves, how long
// they wait, what they drop or cut, which files they have, and what people paste into them.
// docs/reference/clients.md says the same to people, with where each fact comes from, and docs/clients.md
// has what they paste. table.go has the facts and forms.go the texts that entries have, losses.go and
// entry.go what follows from them for a server.
package clients

import "time"

// Client is what is known of one client program. A field that is zero is unknown: it says neither that
// the client has a limit nor that it has none.
type Client struct {
	// Name is what check --for, connect and the log call it, and Title what people do: the row of
	// docs/reference/clients.md, and the heading in docs/clients.md, begin with it.
	Name, Title string
	// Entry is what people paste into it; nil where that is not known.
	Entry *Entry
	// Calls are the names by which it is recognised: that in its clientInfo, or the product in its
	// User-Agent. Says are the other texts in its clientInfo, beside Title.
	Calls, Says []string

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
