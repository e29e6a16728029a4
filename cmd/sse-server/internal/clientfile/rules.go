package clientfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// Rule is a text in the settings of a client that names tools of a server, such as a permission.
type Rule struct{ File, Place, Text string }

// notInTool matches what Claude Code has as _ in the names of tools.
var notInTool = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// Rules returns what the settings of a client say of the tools of these servers, as far as it is known how the client
// calls these. file is the file of their entries, which may have rules beside them.
func Rules(c clients.Client, home, file string, servers []string) (all []Rule) {
	if c.Front == "" {
		return nil
	}
	var names []string
	for _, name := range servers {
		front := fmt.Sprintf(c.Front, notInTool.ReplaceAllString(name, "_"))
		names = append(names, regexp.QuoteMeta(strings.TrimRight(front, "_-")))
	}
	_, after, _ := strings.Cut(c.Front, "%s")
	named := regexp.MustCompile(`(?:^|[^A-Za-z0-9_-])(?:` + strings.Join(names, "|") + `)(?:` +
		regexp.QuoteMeta(after) + `|[^A-Za-z0-9_-]|$)`)
	files := []string{file}
	for _, settings := range c.Entry.Settings {
		if isInHome(settings) {
			settings = below(home, settings)
		}
		files = append(files, settings)
	}
	var seen []string
	for _, file := range files {
		whole, _ := filepath.Abs(file)
		if slices.Contains(seen, whole) {
			continue
		}
		seen = append(seen, whole)
		data, err := readFile(file)
		if err != nil {
			continue
		}
		var settings map[string]any
		if c.Entry.Format == clients.TOML {
			_ = toml.Unmarshal(data, &settings)
		} else {
			_ = json.Unmarshal(withoutComments(data), &settings)
		}
		delete(settings, c.Entry.Key) // the entries themselves
		eachText(settings, "", func(place, text string) {
			if named.MatchString(text) {
				all = append(all, Rule{file, place, text})
			}
		})
	}
	return all
}

// maxRule bounds the text of a rule: what is longer is something else, such as what somebody has said.
const maxRule = 200

// eachText calls do with each text of a value, and each name in it, and where it is.
func eachText(value any, place string, do func(place, text string)) {
	switch value := value.(type) {
	case string:
		if len(value) <= maxRule {
			do(place, value)
		}
	case []any:
		for _, one := range value {
			eachText(one, place, do)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if len(name) <= maxRule {
				do(place, name)
			}
			eachText(value[name], strings.TrimPrefix(place+"."+name, "."), do)
		}
	}
}
