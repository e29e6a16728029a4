package merge

import (
	"context"
	"encoding/json"
)

// Views are functions of a *compose.View that are no part of its public API. Package compose, which is above this one,
// sets [OfViews] when it is initialized. A view of another type is an error of the programmer: they panic.
type Views struct {
	// Input returns what the results of a view depend on, without the lists: a program builds from it what the view
	// would list.
	Input func(view any) Input
	// Listed returns the tools that a view lists with a result: those of the result, or three of its own that find
	// and call them.
	Listed func(view any, result *Result) []json.RawMessage
	// Offers returns what a view would list for the client of ctx, as far as the lists of its members are known. It
	// opens nothing.
	Offers func(ctx context.Context, view any, known KnownLists) Offers
	// Upstreams returns how the members of a view are reached, in their order.
	Upstreams func(view any) []any
}

// OfViews are the functions that package compose has set.
var OfViews Views

// Offers is what a view would list for a client, and of which servers.
type Offers struct {
	Members  []OfferingMember // that the client may use, in their order
	Tools    []Entry          // by their final names, in the order of the list
	Warnings []string         // about the rules for these members, as of Result.Warnings
}

// OfferingMember is a member of Offers.
type OfferingMember struct {
	Name     string
	Upstream any
	Tools    int // how many of its tools the view lists; -1: its list is not known
}

// KnownLists returns the lists of a member, without asking its server; nil for each that is not known.
type KnownLists func(upstream any) [Kinds][]json.RawMessage
