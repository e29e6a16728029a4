package merge

import (
	"regexp"
	"strings"
)

// maxTemplate bounds the templates that are compiled, in bytes.
const maxTemplate = 2048

// compileTemplate returns an expression that matches what a URI template can make (RFC 6570), nil for a text that is
// no template. It is generous: clients do not all escape values, and it only has to find the server, which checks the
// URI itself. A server writes the template, so nothing of it becomes a part of the expression but literal text.
func compileTemplate(template string) *regexp.Regexp {
	if template == "" || len(template) > maxTemplate {
		return nil
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for rest := template; rest != ""; {
		literal, expression, found := strings.Cut(rest, "{")
		b.WriteString(regexp.QuoteMeta(literal))
		if !found {
			break
		}
		variables, after, closed := strings.Cut(expression, "}")
		if !closed || variables == "" {
			return nil
		}
		b.WriteString(expansion(variables[0]))
		rest = after
	}
	b.WriteString(`\z`)
	compiled, err := regexp.Compile(b.String())
	if err != nil { // the text is not UTF-8
		return nil
	}
	return compiled
}

// expansion returns an expression for what variables with an operator can become. Any other first character is that
// of a name.
func expansion(operator byte) string {
	switch operator {
	case '+':
		return `.*`
	case '#', '/', '.', ';', '?', '&':
		return `(?:` + regexp.QuoteMeta(string(operator)) + `.*)?`
	default:
		return `[^/?#]*`
	}
}
