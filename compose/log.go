package compose

import (
	"crypto/sha256"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/merge"
)

// maxSaid bounds the lines of which a View remembers that the log has them. Servers choose names, so that there could
// be any number; after that many the log gets no further ones.
const maxSaid = 1000

// maxLogged bounds the names of one line, in bytes.
const maxLogged = 8 << 10

// loggerOf returns the logger of a configuration, whose lines name the view; nil if it has none.
func loggerOf(opts Options) *slog.Logger {
	if opts.Logger == nil || opts.Name == "" {
		return opts.Logger
	}
	return opts.Logger.With("server", opts.Name)
}

// log returns the logger of a session, with mu held: the one of the configuration, else of the gateway in front.
func (s *session) log() *slog.Logger {
	a := asker.FromContext(s.ctx)
	switch {
	case s.setup.log != nil:
		return s.setup.log
	case a != nil && a.Logger != nil:
		return a.Logger
	default:
		return slog.New(slog.DiscardHandler)
	}
}

// logResult logs what people should know of a new result, each line once for all sessions and reloads. No lock is held.
func (v *View) logResult(log *slog.Logger, r *merge.Result) {
	for _, rule := range r.Unmet {
		if v.isNews("rule", rule.Member, rule.Rule) {
			log.Warn("rule meets nothing", "member", rule.Member, "rule", rule.Rule)
		}
	}
	over := make(map[string][]string) // the names that a limit leaves out
	var limits []string
	templates := make(map[string]int) // how many are left out of a member
	for _, left := range r.Left {
		switch {
		case left.Reason == merge.NameTaken && left.Kind <= merge.Prompts:
			if v.isNews("name", left.Member, left.Own, left.By) {
				log.Warn("name taken", "name", left.Name, "by", clip.Long(left.By), "member", left.Member,
					"tool", clip.Long(left.Own))
			}
		case left.Reason == merge.OverLimit && left.Kind == merge.Templates:
			templates[left.Member]++
		case left.Reason == merge.OverLimit:
			if over[left.By] == nil {
				limits = append(limits, left.By)
			}
			over[left.By] = append(over[left.By], left.Name)
		}
	}
	for _, member := range slices.Sorted(maps.Keys(templates)) {
		if v.isNews("templates", member) {
			log.Warn("templates left out", "member", member, "count", templates[member], "limit", merge.MaxTemplates)
		}
	}
	for _, limit := range limits {
		names := strings.Join(over[limit], ", ")
		if v.isNews("limit", limit, names) {
			names = names[:min(maxLogged, len(names))]
			log.Warn("tools left out", "count", len(over[limit]), "limit", limit, "tools", names)
		}
	}
}

// isNews reports whether the log has no line yet that says this, and notes that it has.
func (v *View) isNews(parts ...string) bool {
	key := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.logged[key] || len(v.logged) >= maxSaid {
		return false
	}
	v.logged[key] = true
	return true
}
