package merge

import (
	"context"
	"encoding/json"
)

// Offers is what a view would list for a client, and of which servers.
type Offers struct {
	Members []OfferingMember // that the client may use, in their order
	Tools   []Entry          // by their final names, in the order of the list
}

// OfferingMember is a member of Offers.
type OfferingMember struct {
	Name     string
	Upstream any
	Tools    int // how many of its tools the view lists; -1: its list is not known
}

// KnownTools returns the list of tools of a member, without asking its server. It reports false if that is not known.
type KnownTools func(upstream any) (tools []json.RawMessage, ok bool)

// offersOf is the function that package compose provides.
var offersOf func(ctx context.Context, view any, known KnownTools) Offers

// ProvideOffers sets the function of OffersOf. Package compose, which is above this one, calls it when it is
// initialized.
func ProvideOffers(of func(ctx context.Context, view any, known KnownTools) Offers) { offersOf = of }

// OffersOf returns what a *compose.View would list for the client of ctx, as far as the lists of its members are known.
// It opens nothing. Another type is an error of the programmer: it panics.
func OffersOf(ctx context.Context, view any, known KnownTools) Offers {
	return offersOf(ctx, view, known)
}
