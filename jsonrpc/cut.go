package jsonrpc

import (
	"errors"
	"regexp"
)

// Cut is what is known of a message of which only the ends were kept.
type Cut struct {
	// Kind is Invalid if it is not certain. A request whose id cannot be seen counts as
	// a notification.
	Kind Kind
	// ID is empty for a notification, and Null for a response whose id cannot be seen.
	ID ID
	// Method is empty if it cannot be seen.
	Method string
	// Failed says that a response holds an error.
	Failed bool
}

// ParseCut reads a message of which only its first and its last bytes were kept, which
// may overlap. It looks at members of the top level only: at all that begin in head,
// and at plain ones that end the message, such as "id":5. It never takes a valid message
// for what it is not, but what it says of an invalid one has no meaning.
func ParseCut(head, tail []byte) Cut {
	c := cutter{head: trimSpace(head)}
	if len(c.head) == 0 || c.head[0] != '{' || c.scan() != nil {
		return Cut{}
	}
	return c.cut(tail)
}

// cutter collects the members that begin in the head.
type cutter struct {
	head []byte
	// A member that ends in the head has its value here, and one that is cut off an
	// empty span after its name.
	id, method, params, result, fault span
}

var errDuplicate = errors.New("duplicate member")

// scan notes the members. It fails if there are duplicates.
func (c *cutter) scan() error {
	for i := skipSpace(c.head, 1); ; {
		name, value, err := skipMember(c.head, i, 0)
		if value.from == 0 { // the name is cut off
			return nil
		}
		i = skipSpace(c.head, value.to)
		whole := err == nil && i < len(c.head)
		if !whole {
			value.to = value.from
		}
		if err := c.note(name, value); err != nil || !whole || c.head[i] != ',' {
			return err
		}
		i = skipSpace(c.head, i+1)
	}
}

func (c *cutter) note(name, value span) error {
	var at *span
	switch string(unquote(c.head, name)) {
	case "id":
		at = &c.id
	case "method":
		at = &c.method
	case "params":
		at = &c.params
	case "result":
		at = &c.result
	case "error":
		at = &c.fault
	default:
		return nil
	}
	if at.from > 0 {
		return errDuplicate
	}
	*at = value
	return nil
}

// cut says what the members mean.
func (c *cutter) cut(tail []byte) Cut {
	call := c.method.from > 0 || c.params.from > 0
	response := c.result.from > 0 || c.fault.from > 0
	id := c.visibleID(tail)
	switch {
	case call == response:
		return Cut{}
	case response && id == "":
		return Cut{Kind: Response, ID: Null, Failed: c.fault.from > 0}
	case response:
		return Cut{Kind: Response, ID: id, Failed: c.fault.from > 0}
	case id == "" || id == Null:
		return Cut{Kind: Notification, Method: c.name()}
	}
	return Cut{Kind: Request, ID: id, Method: c.name()}
}

// name returns the method.
func (c *cutter) name() string {
	raw := c.head[c.method.from:c.method.to]
	if len(raw) > MaxMethodBytes {
		return ""
	}
	name, _ := Text(raw)
	return name
}

// endsWithID matches an id that is a number among the plain members that end a message.
// The last brace closes the top level, and a quote that no backslash precedes delimits a
// string. So what lies between them can only be members of the top level.
var endsWithID = regexp.MustCompile(`,\s*"id"\s*:\s*([0-9]+)\s*(?:,\s*"[a-z]+"\s*:\s*(?:"[^"\\]*"|[0-9]+)\s*)*\}\s*$`)

// visibleID returns the id, empty if it cannot be seen.
func (c *cutter) visibleID(tail []byte) ID {
	if c.id.from == 0 {
		if found := endsWithID.FindSubmatch(tail); found != nil && len(found[1]) <= MaxIDBytes {
			return ID(found[1])
		}
		return ""
	}
	raw := c.head[c.id.from:c.id.to]
	if len(raw) == 0 || checkID(raw) != nil {
		return ""
	}
	return ID(raw)
}
