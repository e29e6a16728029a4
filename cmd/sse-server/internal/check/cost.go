package check

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// charactersPerToken is the estimate with which tokens are counted: models have different ones, and none is here.
const charactersPerToken = 4

// cost is what a list of tools takes of the context of a model.
type cost struct {
	Characters   int `json:"characters"` // of the result of tools/list
	Tokens       int `json:"tokens"`
	Descriptions int `json:"descriptions"` // characters of all descriptions
}

// costOf returns the cost of a list of these tools.
func costOf(tools []json.RawMessage, offered clients.Offer) (c cost) {
	c.Characters = len(`{"tools":[]}`) + max(0, len(tools)-1) // commas
	for _, tool := range tools {
		c.Characters += utf8.RuneCount(tool)
	}
	c.Tokens = (c.Characters + charactersPerToken - 1) / charactersPerToken
	for _, tool := range offered.Tools {
		c.Descriptions += utf8.RuneCountInString(tool.Description)
	}
	return c
}

// fit is how an offer and the limits of a client go together.
type fit struct {
	Name   string        `json:"name"`
	Uses   []clients.Use `json:"uses"`
	Losses []string      `json:"losses"`
}

// fitsOf compares an offer with the limits of a client, or of each. A client of whose limits of lists nothing is known
// has neither uses nor losses.
func fitsOf(client string, offered clients.Offer) (fits []fit) {
	offered.Boot = 0 // is no property of a list
	for _, c := range clients.All {
		if slices.Contains([]string{c.Name, config.AllClients, ""}, client) {
			// Lists that are empty are [] in JSON.
			fits = append(fits, fit{c.Name, append([]clients.Use{}, c.Uses(offered)...),
				append([]string{}, c.Losses(offered)...)})
		}
	}
	return fits
}
