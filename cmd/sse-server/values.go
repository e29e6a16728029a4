package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// setting is one option of the daemon. Its Decode, which kong calls for every
// source, never fails: it notes what is wrong, so that all faults of all
// options can be reported together.
type setting interface {
	kong.MapperValue
	// fault returns the value as it was given and what is allowed instead, or
	// want "" for a value that is fine.
	fault() (given, want string)
	// String returns the effective value as the configuration file takes it.
	String() string
}

// raw is what every setting shares: the text that came and what was wrong.
type raw struct {
	given, want string
}

func (r *raw) fault() (given, want string) { return r.given, r.want }

func (r *raw) refuse(given, want string) { r.given, r.want = given, want }

// next takes the value of the option that kong is about to decode: text from
// the command line or the environment, or a node of the configuration file.
// Without one it notes the fault and returns false.
func (r *raw) next(ctx *kong.DecodeContext) (fileValue, bool) {
	if !ctx.Scan.Peek().IsValue() {
		r.refuse("", "needs a value")
		return fileValue{}, false
	}
	switch v := ctx.Scan.Pop().Value.(type) {
	case fileValue:
		return v, true
	default:
		return fileValue{kind: scalarValue, text: fmt.Sprint(v)}, true
	}
}

// scalar is next for options that take one value.
func (r *raw) scalar(ctx *kong.DecodeContext) (string, bool) {
	v, ok := r.next(ctx)
	if ok && v.kind != scalarValue {
		r.refuse(v.String(), "want one value, not a list or a mapping")
		return "", false
	}
	r.given = v.text
	return v.text, ok
}

// text is an option of free or enumerated text. Its tag allowed lists the
// values, separated by "|"; check, if set, names a function of checks.go.
type text struct {
	raw
	value string
}

// Decode implements [kong.MapperValue].
func (t *text) Decode(ctx *kong.DecodeContext) error {
	given, ok := t.scalar(ctx)
	if !ok {
		return nil
	}
	*t = text{raw: raw{given: given}, value: given}
	tag := ctx.Value.Tag
	if tag.Has("allowed") {
		allowed := strings.Split(tag.Get("allowed"), "|")
		for _, a := range allowed {
			if given == a {
				return nil
			}
		}
		t.want = "want one of " + strings.Join(quoteEmpty(allowed), ", ")
		return nil
	}
	t.want = checkText(tag.Get("check"), given)
	return nil
}

// String implements [setting].
func (t *text) String() string { return yamlText(t.value) }

func quoteEmpty(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s
		if s == "" {
			out[i] = `""`
		}
	}
	return out
}

// toggle is an option that is on or off.
type toggle struct {
	raw
	value bool
}

// IsBool implements [kong.BoolMapperValue]: the flag needs no value.
func (*toggle) IsBool() bool { return true }

// Decode implements [kong.MapperValue].
func (t *toggle) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		*t = toggle{value: true}
		return nil
	}
	given, ok := t.scalar(ctx)
	if !ok {
		return nil
	}
	*t = toggle{raw: raw{given: given}}
	switch strings.ToLower(given) {
	case "true", "yes", "on", "1":
		t.value = true
	case "false", "no", "off", "0":
	default:
		t.want = "want true or false"
	}
	return nil
}

// String implements [setting].
func (t *toggle) String() string { return strconv.FormatBool(t.value) }

// list is an option of several texts: from a flag or a variable separated by
// commas, the flag may be repeated; in the file a list.
type list struct {
	raw
	values []string
}

// Decode implements [kong.MapperValue].
func (l *list) Decode(ctx *kong.DecodeContext) error {
	v, ok := l.next(ctx)
	if !ok {
		return nil
	}
	entries := v.list
	switch v.kind {
	case mappingValue:
		l.refuse(v.String(), "want a list")
		return nil
	case scalarValue:
		entries = strings.Split(v.text, ",")
	}
	for _, entry := range entries {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		if want := checkText(ctx.Value.Tag.Get("check"), entry); want != "" {
			if l.given != "" {
				entry = l.given + ", " + entry
			}
			l.refuse(entry, want)
			continue
		}
		l.values = append(l.values, entry)
	}
	return nil
}

// String implements [setting].
func (l *list) String() string { return yamlList(l.values) }

// pairs is the option of environment variables: KEY=VALUE, repeatable; one a
// line in a variable, since values may hold commas; in the file a mapping.
type pairs struct {
	raw
	values []string
}

// Decode implements [kong.MapperValue].
func (p *pairs) Decode(ctx *kong.DecodeContext) error {
	v, ok := p.next(ctx)
	if !ok {
		return nil
	}
	var entries []string
	switch {
	case v.line == 0:
		entries = strings.Split(strings.Trim(v.text, "\n"), "\n")
	case v.kind != mappingValue || v.nested: // not shown: it may hold secrets
		p.refuse("", "want a mapping of names to plain values, such as {NODE_ENV: production}")
		return nil
	default:
		for _, pair := range v.pairs {
			entries = append(entries, pair[0]+"="+pair[1])
		}
	}
	for _, entry := range entries {
		key, value, found := strings.Cut(entry, "=")
		if !found || key == "" || strings.ContainsRune(entry, 0) {
			// The text may be a secret whose name was forgotten: not shown.
			p.refuse("", "want KEY=VALUE")
			continue
		}
		p.values = append(p.values, key+"="+value)
	}
	return nil
}

// String implements [setting]. The values may be secrets and are left out.
func (p *pairs) String() string {
	out := make([]string, len(p.values))
	for i, entry := range p.values {
		key, _, _ := strings.Cut(entry, "=")
		out[i] = yamlText(key) + `: "***"`
	}
	return "{" + strings.Join(out, ", ") + "}"
}
