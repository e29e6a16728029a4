package merge

import "fmt"

// Warnings says what is probably a mistake in the rules: those that meet nothing, and tools and prompts that are left
// out although no rule says so.
func (r *Result) Warnings() (texts []string) {
	for _, u := range r.Unmet {
		texts = append(texts, u.Warning())
	}
	for _, l := range r.Left {
		if text := l.Warning(); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// Warning says that the rule meets nothing.
func (u Unmet) Warning() string {
	return u.Member + ": " + u.Rule + " meets nothing that the server lists"
}

// Warning says that a tool or prompt is left out although no rule says so. It is empty for all else: two servers may
// well have one resource.
func (l Left) Warning() string {
	switch {
	case l.Kind > Prompts:
		return ""
	case l.Reason == NameTaken, l.Reason == NoName, l.Reason == OverLimit:
		return fmt.Sprintf("%s of %s is left out: %s", l.Own, l.Member, l.Why())
	default:
		return ""
	}
}

// Why says what leaves it out.
func (l Left) Why() string {
	switch l.Reason {
	case NotIncluded:
		return "not in " + l.By
	case NameTaken:
		return fmt.Sprintf("the name %s is that of %s: rename one of the two", l.Name, l.By)
	case NoName:
		return "it has no name"
	default:
		return l.By
	}
}
