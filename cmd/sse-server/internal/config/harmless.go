package config

import (
	"regexp"
	"slices"
	"strings"
)

// The table has all that init leaves in the file that it makes. All else of a command and a URL is kept in the
// env-file: no list of secrets is complete, and to keep more does no harm.
//
//	word     letters, at most 4 digits after them (python3), or at most 8 digits; or short, as k8s and neo4j are
//	words    words with - _ . or , between them
//	tag      words that begin as a version does, or one of channels: 1.2.3, v2, latest
//	path     words with / or \ between them, each with @ before it or @tag after it: /srv/x.js, ~/x, @scope/name@1.2
//	place    a path, and tags, ports or paths after colons: host:8080/mcp, image:latest, /a:/b:ro, C:\x
//	URL      scheme://place without a user; of a query only names whose values are references
//	package  words[words]==tag
//	number   at most 10 digits
//	option   -x, --words, and --words=VALUE if VALUE is one of these and no secret follows such an option
//	text     several of these with blanks between them: only as the program, and for a shell or ssh
//
// An argument after a word that secretFollows matches is none of these.
var (
	word = regexp.MustCompile(
		`^(?:[a-z]*(?:[A-Z]{1,5}[a-z]+){0,4}[A-Z]{0,3}\d{0,4}|[A-Z]+\d{0,4}|[A-Za-z]{1,3}\d{1,2}[A-Za-z]|\d{1,8})$`)
	// random matches what no word has: too many letters, or consonants in a row.
	random       = regexp.MustCompile(`(?i)[a-z]{25}|[bcdfghjklmnpqrstvwxz]{6}`)
	versionStart = regexp.MustCompile(`^v?\d`)
	channels     = []string{"latest", "next", "stable", "lts", "alpha", "beta", "rc", "canary", "nightly", "dev",
		"main", "master", "ro", "rw"}
	number        = regexp.MustCompile(`^[+-]?\d{1,10}(?:\.\d{1,8})?$`)
	packageInPyPI = regexp.MustCompile(`^([^\[\]=<>~!]+)(?:\[([^\[\]]*)\])?(?:(?:[=<>~!]=|[<>])(.+))?$`)
	shortOption   = regexp.MustCompile(`^-(?:[A-Za-z0-9]|it|jar)?$`)
	shellPrograms = regexp.MustCompile(`^(?:.*[/\\])?(?:sh|bash|dash|zsh|fish|ksh|cmd|powershell|pwsh|ssh)(?:\.exe)?$`)
)

// secretFollows matches an option whose value may be secret, and what else comes before a secret.
var secretFollows = regexp.MustCompile(strings.Join([]string{
	`^(?:--?|/)(?i:[a-z0-9_.-]*(?:token|key|secret|pass|pwd|auth|cred|cookie|session|signature|bearer|basic|jwt|dsn|header|conn|webhook|` +
		`user|login|account|licen[cs]e|private|mnemonic|seed|salt|(?:database|db|sql|mongo|redis|postgres|amqp)[a-z]*[_.-]?ur[il])[a-z0-9_.-]*)$`,
	// --ghpat and --pinCode, not --path
	`^(?:--?|/)[A-Za-z0-9_.-]*(?i:pat|pw|pin|otp|sid|psk)(?:[A-Z0-9_.-][A-Za-z0-9_.-]*)?$`,
	`^-[AaHKkPpTtUuWw]$`,
	`^(?i:basic|bearer|digest|token)$`, // --auth basic SECRET
	`[:=]$`,                            // --header X-Key: SECRET
}, "|"))

// isHarmless reports whether an argument or a URL, without its references, is known to be no secret.
func isHarmless(arg string) bool {
	if arg == "" || number.MatchString(arg) {
		return true
	}
	if arg[0] == '-' {
		option, value, _ := strings.Cut(arg, "=")
		long, isLong := strings.CutPrefix(option, "--")
		return (isLong && isWords(long) || shortOption.MatchString(option)) &&
			(value == "" || !secretFollows.MatchString(option) && isHarmless(value))
	}
	if scheme, rest, isURL := strings.Cut(arg, "://"); isURL {
		at, query, _ := strings.Cut(rest, "?")
		host, _, _ := strings.Cut(at, "/")
		return isWords(strings.ReplaceAll(scheme, "+", "-")) && !strings.Contains(host, "@") && isPlace(at) &&
			hasNoValues(query)
	}
	if p := packageInPyPI.FindStringSubmatch(arg); p != nil && isWords(p[1]) && isWords(p[2]) &&
		(p[3] == "" || isTag(p[3])) {
		return true
	}
	return isPlace(arg)
}

// isHarmlessText reports the same of a text for a shell.
func isHarmlessText(text string) bool {
	all := strings.Fields(text)
	for i, arg := range all {
		if !isHarmless(arg) || i > 0 && secretFollows.MatchString(all[i-1]) {
			return false
		}
	}
	return true
}

// isWords reports whether a text is words with - _ . or , between them, or nothing.
func isWords(text string) bool {
	for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("-_.,", r) }) {
		if !word.MatchString(one) || random.MatchString(one) {
			return false
		}
	}
	return true
}

func isTag(text string) bool {
	return slices.Contains(channels, text) || versionStart.MatchString(text) && isWords(text)
}

func isPath(text string) bool {
	for one := range strings.FieldsFuncSeq(strings.TrimPrefix(text, "~"),
		func(r rune) bool { return r == '/' || r == '\\' }) {
		name, tag, hasTag := strings.Cut(strings.TrimPrefix(one, "@"), "@")
		if !isWords(name) || hasTag && !isTag(tag) {
			return false
		}
	}
	return true
}

func isPlace(text string) bool {
	all := strings.Split(text, ":")
	if !isPath(all[0]) || len(all) > 1 && secretFollows.MatchString("--"+all[0]) {
		return false
	}
	for _, after := range all[1:] {
		end := strings.IndexAny(after+"/", `/\`)
		if end > 0 && !isTag(after[:end]) || !isPath(after[end:]) {
			return false
		}
	}
	return true
}

// hasNoValues reports whether a query, without its references, has names only.
func hasNoValues(query string) bool {
	for one := range strings.SplitSeq(query, "&") {
		if name, isName := strings.CutSuffix(one, "="); one != "" && (!isName || !isWords(name)) {
			return false
		}
	}
	return true
}
