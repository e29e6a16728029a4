package selection

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The bounds of rules. A client may bring rules of its own, so that they must be cheap to apply.
const (
	maxGlobs     = 1000
	maxGlobRunes = 256
	// maxSteps bounds the comparisons of characters for one name and one rule: about 20 ms. A thousand globs with an
	// asterisk at the start read a name of a thousand characters in half of them. A client may send a name of
	// megabytes, and then the rule leaves it out.
	maxSteps = 1 << 22
)

// globs are the globs of one rule. Globs without a special character are in exact, so that a rule which names many
// tools costs one look.
type globs struct {
	given    []string // as written, in their order
	exact    map[string]bool
	patterns []string
}

// outcome says whether a name matches.
type outcome uint8

const (
	unmet     outcome = iota // no glob matches
	met                      // a glob does
	undecided                // it would take over maxSteps to say
)

// match returns the glob that matches the name, or the one at which it is undecided.
func (g *globs) match(name string) (o outcome, glob string) {
	steps := maxSteps
	return g.matchWithin(name, &steps)
}

// matchWithin is match with another bound, from which it takes the steps.
func (g *globs) matchWithin(name string, steps *int) (o outcome, glob string) {
	if g.exact[name] {
		return met, name
	}
	for _, pattern := range g.patterns {
		if o := matches(pattern, name, steps); o != unmet {
			return o, pattern
		}
	}
	return unmet, ""
}

// compileGlobs compiles globs that name things of a kind. The errors say which glob cannot be read, and what to write.
func compileGlobs(kind Kind, list []string) (*globs, error) {
	if len(list) > maxGlobs {
		return nil, fmt.Errorf("there are %d globs, and %d are allowed: write fewer with *", len(list), maxGlobs)
	}
	g := &globs{given: list, exact: make(map[string]bool)}
	var wrong []error
	for _, glob := range list {
		if err := check(kind, glob); err != nil {
			wrong = append(wrong, err)
			continue
		}
		if strings.ContainsAny(glob, "*?") {
			g.patterns = append(g.patterns, glob)
		} else {
			g.exact[glob] = true
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return g, nil
}

// check returns an error if a glob cannot be read. Brackets and braces have a meaning in the globs of other programs,
// so a glob with them would silently match nothing. URIs and their templates have them as plain characters.
func check(kind Kind, glob string) error {
	switch {
	case glob == "":
		return errors.New("a glob is empty: write * for everything, and an empty list for nothing")
	case !utf8.ValidString(glob):
		return fmt.Errorf("the glob %q is not UTF-8", glob)
	case utf8.RuneCountInString(glob) > maxGlobRunes:
		return fmt.Errorf("the glob %.40q… has over %d characters: shorten it with *", glob, maxGlobRunes)
	case glob[0] == '!':
		return fmt.Errorf("the glob %q cannot be read: to leave something out, write it without ! under exclude", glob)
	case kind != Resources && strings.ContainsAny(glob, "[]{}"):
		return fmt.Errorf("the glob %q cannot be read: only * and ? are special; write a glob for each choice, "+
			"and ? for a bracket or brace of a name", glob)
	}
	return nil
}

// matches says whether a glob matches all of a name. It goes back to the last asterisk alone: what the ones before it
// have taken can stay, because the shortest text for them is as good as any other. It takes a step for each comparison,
// and is undecided when none is left.
func matches(glob, name string, steps *int) outcome {
	g, n := 0, 0
	afterStar, resume := -1, 0 // where the glob goes on after its last asterisk, and in the name the next try
	for n < len(name) {
		if *steps == 0 {
			return undecided
		}
		*steps--
		r, size := utf8.DecodeRuneInString(name[n:])
		if g < len(glob) {
			special, width := utf8.DecodeRuneInString(glob[g:])
			switch {
			case special == '*':
				g++
				afterStar, resume = g, n
				continue
			case special == '?' || special == r:
				g, n = g+width, n+size
				continue
			}
		}
		if afterStar < 0 {
			return unmet
		}
		_, skipped := utf8.DecodeRuneInString(name[resume:])
		resume += skipped
		g, n = afterStar, resume
	}
	if strings.Trim(glob[g:], "*") != "" {
		return unmet
	}
	return met
}
