package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// value binds an option to the field that keeps it.
type value struct {
	target any    // the address of the field
	unit   string // what --help shows after the flag; "" for a toggle
	// set takes what a source gives. If that is wrong, want says what is allowed,
	// shown is what a message may quote, and the field stays as it is.
	set func(in input) (shown, want string)
	// text is the effective value as the file takes it. With secret it is not
	// complete.
	text   func() string
	secret func() bool // nil: it never is
	// short is the value for messages about other options, "" for none.
	short func() string
	// zero says what 0 means for a number, "" for a value that is none.
	zero string
	// invertible says that the flag --no-NAME exists.
	invertible bool
}

// kind is the form of an input.
type kind int

const (
	scalar kind = iota
	sequence
	mapping
	missing // a flag without its value
)

// input is the value of an option as a source gives it. Scalars are text: YAML
// would turn the version number 1.10 into 1.1.
type input struct {
	kind kind
	from origin
	// texts are the entries of a sequence; of a scalar its one text, or each text
	// that a repeated flag gives.
	texts []string
	pairs [][2]string // of a mapping
	// nested is true if an entry of the sequence or mapping is not a scalar.
	nested bool
	json   []byte // of a sequence or mapping
}

// String returns the value for a message.
func (in input) String() string {
	if in.kind == scalar {
		return in.texts[len(in.texts)-1]
	}
	return string(in.json)
}

// one returns a value of one text, which parse keeps or refuses.
func one(target any, unit string, parse func(given string) (want string), text func() string) value {
	return value{target: target, unit: unit, text: text, short: func() string { return "" },
		set: func(in input) (string, string) {
			if in.kind != scalar {
				return in.String(), "want one value, not a list or a mapping"
			}
			return in.String(), parse(in.String())
		}}
}

// text is a value of free text. Check may be nil; it returns what is allowed.
func text(unit string, p *string, check func(string) string) value {
	v := one(p, unit, func(given string) (want string) {
		if check != nil {
			want = check(given)
		}
		if want == "" {
			*p = given
		}
		return want
	}, func() string { return yamlText(*p) })
	v.short = func() string { return strconv.Quote(*p) }
	return v
}

// choice is a text that must be one of those allowed.
func choice(unit string, p *string, allowed ...string) value {
	v := text(unit, p, func(given string) string {
		if slices.Contains(allowed, given) {
			return ""
		}
		return "want one of " + strings.TrimPrefix(strings.Join(allowed, ", "), ", ")
	})
	v.short = func() string { return *p }
	return v
}

// toggle is on or off.
func toggle(p *bool) value { return switched(p, true) }

// inverted is on or off, and is kept as the opposite. --no-NAME switches it off.
func inverted(p *bool) value { return switched(p, false) }

// switched is on when p is on.
func switched(p *bool, on bool) value {
	show := func() string { return strconv.FormatBool(*p == on) }
	v := one(p, "", func(given string) string {
		switch strings.ToLower(given) {
		case "true", "yes", "on", "1":
			*p = on
		case "false", "no", "off", "0":
			*p = !on
		default:
			return "want true or false"
		}
		return ""
	}, show)
	v.short, v.invertible = show, !on
	return v
}

// list has several entries: in a flag or variable separated by commas, in the file
// a list. Parse returns what is allowed if an entry is wrong.
func list[T any](unit string, p *[]T, parse func(string) (entry T, want string)) value {
	set := func(in input) (string, string) {
		given := in.texts
		if in.kind == scalar {
			given = strings.Split(strings.Join(given, ","), ",")
		}
		if in.kind == mapping || in.nested {
			return in.String(), "want a list"
		}
		var entries []T
		var wrong []string
		allowed := ""
		for _, text := range given {
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			entry, want := parse(text)
			if want != "" {
				wrong, allowed = append(wrong, text), want
			}
			entries = append(entries, entry)
		}
		if allowed == "" {
			*p = entries
		}
		return strings.Join(wrong, ", "), allowed
	}
	text := func() string {
		var texts []string
		for _, entry := range *p {
			texts = append(texts, fmt.Sprint(entry))
		}
		return yamlList(texts)
	}
	return value{target: p, unit: unit, set: set, text: text, short: func() string { return "" }}
}

// pairs are names with values that may be secrets. A flag has one, such as
// KEY=VALUE or 'NAME: VALUE', and a variable one on each line, since values may
// hold commas; in the file they are a mapping. Check returns what is allowed.
func pairs(form string, p *[][2]string, check func(name, value string) (want string)) value {
	separator := "="
	if strings.Contains(form, ":") {
		separator = ":"
	}
	set := func(in input) (string, string) {
		entries := in.pairs
		switch {
		case in.from.line > 0 && (in.kind != mapping || in.nested):
			return "", "want a mapping of names to plain values, such as {NAME: value}"
		case in.from.line == 0:
			for line := range strings.SplitSeq(strings.Trim(strings.Join(in.texts, "\n"), "\n"), "\n") {
				name, value, found := strings.Cut(line, separator)
				if !found {
					return "", "want " + form
				}
				entries = append(entries, [2]string{name, value})
			}
		}
		for _, entry := range entries {
			if want := check(entry[0], entry[1]); want != "" {
				return "", want
			}
		}
		*p = entries
		return "", ""
	}
	text := func() string {
		out := make([]string, len(*p))
		for i, entry := range *p {
			out[i] = yamlText(entry[0]) + `: "***"`
		}
		return "{" + strings.Join(out, ", ") + "}"
	}
	return value{target: p, unit: form, set: set, text: text, short: func() string { return "" },
		secret: func() bool { return len(*p) > 0 }}
}

// object is a JSON object, in the file also a mapping.
func object(unit string, p *json.RawMessage) value {
	set := func(in input) (string, string) {
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(in.String())); err != nil || !bytes.HasPrefix(compact.Bytes(), []byte("{")) {
			return in.String(), `want a JSON object, such as {"roots":{"listChanged":true}}`
		}
		*p = compact.Bytes()
		return "", ""
	}
	return value{target: p, unit: unit, set: set, text: func() string { return yamlText(string(*p)) }, short: func() string { return "" }}
}

// command is a program and its arguments.
func command(p *[]string) value {
	set := func(in input) (string, string) {
		switch {
		case in.kind != sequence || in.nested || len(in.texts) == 0:
			return in.String(), "want a list of the program and its arguments, such as [npx, -y, server]"
		case in.texts[0] == "":
			return in.String(), "want a program, whose name is not empty"
		}
		*p = in.texts
		return "", ""
	}
	return value{target: p, unit: "command", set: set, text: func() string { return yamlList(*p) },
		short: func() string { return strconv.Quote((*p)[0]) }}
}
